//! Reads the definitions of what is compared, which are data: `benches/definitions/*.toml`.

use super::Result;
use crate::args::{GC, KERNELS};
use largesse_terminal::{line, name, word};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

/// Files in the folder of definitions that do not define benches.
pub(crate) const OTHER_FILES: [&str; 2] = ["settings.toml", "gc.toml"];

/// One program, its tests and their expected answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bench {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Argument of `largesse bench` that runs this bench. (`group` names several benches that one `--only` chooses.)
    pub(crate) comparison: String,
    pub(crate) group: String,
    /// Whether the bench runs only if `--only` names it, because it takes long.
    #[serde(default)]
    pub(crate) only_by_name: bool,
    /// Words of the command line before the program. (`program` is a path below `benches/programs`; `args` follow it.)
    pub(crate) interpreter: Vec<String>,
    pub(crate) program: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Advice on what to install if the program cannot start.
    pub(crate) needs: String,
    /// Resident memory of the program at scale 1, in MiB. A machine with less available memory skips the bench.
    pub(crate) memory_mib: u64,
    /// Names of the settings in `settings.toml` under which the program runs.
    pub(crate) settings: Vec<String>,
    /// Largest relative error of an answer that passes. It is not zero, because other processors round differently.
    pub(crate) tolerance: f64,
    pub(crate) far: Option<FarSpec>,
    #[serde(rename = "test")]
    pub(crate) tests: Vec<Test>,
}

/// One test of a bench, which becomes one line of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) tolerance: Option<f64>,
    /// Expected answer by scale. If there is none, the program checks itself, and the bits must equal the baseline's.
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, Vec<f64>>,
}

/// The table `[bench.far]` of a definition: how `largesse bench far` runs the program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FarSpec {
    /// Columns of the result: local memory in per cent of the program's data.
    pub(crate) local_percent: Vec<u8>,
    /// Rows of the result: values of `--page-size`. `auto` is compared with the others; `marked` is `auto` for a
    /// program that marks its compute core.
    pub(crate) page_sizes: Vec<String>,
    /// Arguments that make the program mark its compute core.
    #[serde(default)]
    pub(crate) marked: Vec<String>,
    /// Number of MiB that the program touches at scale 1. If it is missing, the number is measured.
    pub(crate) far_mib: Option<u64>,
    /// Published figures of other systems, printed below the table.
    pub(crate) published: Option<String>,
}

impl Bench {
    /// Returns the expected answer of `test` at `scale` and its tolerance, or `None` if the definition has none.
    pub(crate) fn expected(&self, test: &str, scale: f64) -> Option<(&[f64], f64)> {
        let test = self.tests.iter().find(|known| known.name == test)?;
        let at_scale = |text: &String| text.parse::<f64>().is_ok_and(|known| (known - scale).abs() < 1e-9);
        let (_, answer) = test.expect.iter().find(|(text, _)| at_scale(text))?;
        Some((answer, test.tolerance.unwrap_or(self.tolerance)))
    }

    /// Returns the program's command line. Without `times` the program chooses its number of repetitions.
    pub(crate) fn words(&self, root: &Path, scale: f64, times: Option<u32>) -> Vec<OsString> {
        let program = root.join("programs").join(&self.program).into();
        let tests: Vec<_> = self.tests.iter().map(|test| test.name.as_str()).collect();
        let options = ["--only".into(), tests.join(","), "--scale".into(), scale.to_string()];
        let times = times.iter().flat_map(|times| ["--times".into(), times.to_string()]);
        let options = self.args.iter().cloned().chain(options).chain(times).map(OsString::from);
        self.interpreter.iter().map(OsString::from).chain([program]).chain(options).collect()
    }

    /// Returns the title of the bench's table, with the size of the data and the program's own description.
    pub(crate) fn headline(&self, scale: f64, about: &str) -> String {
        let size =
            if (scale - 1.0).abs() < 1e-9 { String::new() } else { format!(", at {scale} of its size") };
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        format!("{}{size}{about}", self.title)
    }

    /// Returns the program's resident memory at `scale`, in MiB.
    pub(crate) fn needed_mib(&self, scale: f64) -> u64 {
        scaled(self.memory_mib, scale)
    }

    /// Returns the names after `--only` that choose a test: its group, its bench, and its own name.
    fn names(&self, test: &Test) -> [String; 3] {
        [self.group.clone(), self.name.clone(), format!("{}/{}", self.name, test.name)]
    }
}

/// Returns an amount of memory at `scale`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "memory of one machine")]
pub(crate) fn scaled(amount: u64, scale: f64) -> u64 {
    (amount as f64 * scale) as u64
}

/// Reads a file in the folder of definitions. The error names the file.
pub(crate) fn read<T: DeserializeOwned>(root: &Path, name: impl AsRef<Path>) -> Result<T> {
    let path = root.join("definitions").join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let parsed = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
    parsed.map_err(|why| format!("{}: {}", largesse_terminal::name(&path), why.trim_end()))
}

/// Reads every definition below `root`, in the order of file names.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Bench>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct DefinitionFile {
        bench: Vec<Bench>,
    }
    let folder = root.join("definitions");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", name(&folder)))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|is| is == "toml"));
    names.retain(|name| !OTHER_FILES.iter().any(|other| name == other));
    names.sort();
    let files = names.iter().map(|name| Ok(read::<DefinitionFile>(root, name)?.bench));
    Ok(files.collect::<Result<Vec<_>>>()?.concat())
}

/// Returns the benches of `comparison` that `only` names. If `only` is empty, returns all that do not take long.
pub(crate) fn choose(benches: Vec<Bench>, comparison: &str, only: &[String]) -> Result<Vec<Bench>> {
    let is_ours = |bench: &Bench| bench.comparison == comparison;
    let (mut ours, others): (Vec<_>, Vec<_>) = benches.into_iter().partition(is_ours);
    if ours.is_empty() {
        let there = others.iter().map(|bench| &*bench.comparison).chain([GC, KERNELS]);
        let there = Vec::from_iter(BTreeSet::from_iter(there)).join(", ");
        let comparison = line(comparison);
        return Err(format!("there is no comparison `{comparison}` here; type one of: {there}"));
    }
    let names = ours.iter().flat_map(|bench| bench.tests.iter().flat_map(|test| bench.names(test)));
    check_names(only, &Vec::from_iter(BTreeSet::from_iter(names)))?;
    for bench in &mut ours {
        let mut tests = std::mem::take(&mut bench.tests);
        let named = |test: &Test| bench.names(test).iter().any(|name| only.contains(name));
        tests.retain(|test| if only.is_empty() { !bench.only_by_name } else { named(test) });
        bench.tests = tests;
    }
    ours.retain(|bench| !bench.tests.is_empty());
    Ok(ours)
}

/// Checks that all names after `--only` are among those that are `there`.
pub(crate) fn check_names(only: &[String], there: &[String]) -> Result<()> {
    let Some(asked) = only.iter().find(|asked| !there.contains(asked)) else { return Ok(()) };
    let (asked, there) = (word(asked), there.join(", "));
    Err(format!("--only {asked}: no such bench, group or test; there are: {there}"))
}
