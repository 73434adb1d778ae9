//! Reads what is compared as data: `benches/definitions/*.toml`.

use super::Result;
use crate::args::{GC, KERNELS};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

/// Files in the folder of definitions that define something else than benches.
pub(crate) const OTHER_FILES: [&str; 2] = ["settings.toml", "gc.toml"];

/// One program, its tests and their expected answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bench {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Argument of `largesse bench`, and group of benches that one `--only` chooses.
    pub(crate) comparison: String,
    pub(crate) group: String,
    /// Whether it runs only if `--only` names it, because it takes long.
    #[serde(default)]
    pub(crate) only_by_name: bool,
    /// Command before the program, whose path is below `benches/programs`, and after it.
    pub(crate) interpreter: Vec<String>,
    pub(crate) program: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Advice what to install if the program cannot start.
    pub(crate) needs: String,
    /// Resident memory at scale 1, in MiB; a machine with less available memory skips the bench.
    pub(crate) memory_mib: u64,
    /// Names of settings in `settings.toml`.
    pub(crate) settings: Vec<String>,
    /// Largest relative error of an answer that passes: other processors round differently.
    pub(crate) tolerance: f64,
    pub(crate) far: Option<FarSpec>,
    #[serde(rename = "test")]
    pub(crate) tests: Vec<Test>,
}

/// One test of a bench, which is one line of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) tolerance: Option<f64>,
    /// Expected answer by scale. Without one the program checks itself, and the bits must equal the baseline's.
    #[serde(default)]
    pub(crate) expect: BTreeMap<String, Vec<f64>>,
}

/// The table `[bench.far]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FarSpec {
    /// Columns: local memory in per cent of the footprint.
    pub(crate) local_percent: Vec<u8>,
    /// Rows: arguments of `--page-size`; `auto` is compared with the others. `marked` is `auto` for a program that
    /// marks its compute core.
    pub(crate) page_sizes: Vec<String>,
    /// Arguments that make the program mark its core.
    #[serde(default)]
    pub(crate) marked: Vec<String>,
    /// MiB that the program touches at scale 1; without it the footprint is measured.
    pub(crate) far_mib: Option<u64>,
    pub(crate) published: Option<Published>,
}

/// A table that others have published, to print next to the measured one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) title: String,
    /// Denominator of the ratios.
    pub(crate) baseline_seconds: f64,
    pub(crate) local_percent: Vec<u8>,
    /// Rows by page size, with one number for each share.
    #[serde(rename = "row")]
    pub(crate) rows: Vec<PublishedRow>,
}

/// One row of a published table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedRow {
    pub(crate) page_size: String,
    pub(crate) seconds: Vec<f64>,
}

impl Bench {
    /// Returns the expected answer of `test` at `scale` and its tolerance; `None` if the definition has none.
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

    /// Returns the title of its table, with the size and the program's own description.
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

    /// Returns the names after `--only` that choose a test: the group, the bench, and its own.
    fn names(&self, test: &Test) -> [String; 3] {
        [self.group.clone(), self.name.clone(), format!("{}/{}", self.name, test.name)]
    }
}

/// Returns an amount of memory at `scale`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "memory of one machine")]
pub(crate) fn scaled(amount: u64, scale: f64) -> u64 {
    (amount as f64 * scale) as u64
}

/// Reads a file in the folder of definitions; the error names it.
pub(crate) fn read<T: DeserializeOwned>(root: &Path, name: impl AsRef<Path>) -> Result<T> {
    let path = root.join("definitions").join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string());
    let parsed = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
    parsed.map_err(|why| format!("{}: {}", path.display(), why.trim_end()))
}

/// Reads every definition below `root`, in the order of file names.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Bench>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct DefinitionFile {
        bench: Vec<Bench>,
    }
    let folder = root.join("definitions");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|is| is == "toml"));
    names.retain(|name| !OTHER_FILES.iter().any(|other| name == other));
    names.sort();
    let files = names.iter().map(|name| Ok(read::<DefinitionFile>(root, name)?.bench));
    Ok(files.collect::<Result<Vec<_>>>()?.concat())
}

/// Returns the benches of `comparison` that `only` names; if it is empty, all that do not take long.
pub(crate) fn choose(benches: Vec<Bench>, comparison: &str, only: &[String]) -> Result<Vec<Bench>> {
    let is_ours = |bench: &Bench| bench.comparison == comparison;
    let (mut ours, others): (Vec<_>, Vec<_>) = benches.into_iter().partition(is_ours);
    if ours.is_empty() {
        let there = others.into_iter().map(|bench| bench.comparison);
        let there = sorted(there.chain([GC, KERNELS].map(str::to_owned)));
        return Err(format!("there is no comparison `{comparison}` here; type one of: {there}"));
    }
    let names = ours.iter().flat_map(|bench| bench.tests.iter().flat_map(|test| bench.names(test)));
    let names: Vec<_> = names.collect();
    if let Some(asked) = only.iter().find(|asked| !names.contains(asked)) {
        return Err(unknown(asked, &sorted(names)));
    }
    for bench in &mut ours {
        let mut tests = std::mem::take(&mut bench.tests);
        let named = |test: &Test| bench.names(test).iter().any(|name| only.contains(name));
        tests.retain(|test| if only.is_empty() { !bench.only_by_name } else { named(test) });
        bench.tests = tests;
    }
    ours.retain(|bench| !bench.tests.is_empty());
    Ok(ours)
}

/// Returns the message for a name after `--only` that does not exist.
pub(crate) fn unknown(asked: &str, there: &str) -> String {
    format!("--only {asked}: no such bench, group or test; there are: {there}")
}

fn sorted(names: impl IntoIterator<Item = String>) -> String {
    Vec::from_iter(BTreeSet::from_iter(names)).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Settings, settings::Role};

    #[test]
    fn shipped_definitions_are_complete() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
        let (benches, settings) = (read_all(&root).unwrap(), Settings::read(&root).unwrap());
        assert_eq!(benches.iter().filter(|bench| bench.far.is_some()).count(), 11);
        for bench in &benches {
            let name = &bench.name;
            let roles = settings.of(bench, false).unwrap().into_iter().map(|setting| setting.role);
            assert_eq!(roles.collect::<Vec<_>>(), [Role::Baseline, Role::Subject], "{name}");
            let program = match bench.args.first() {
                Some(name) if bench.program == "c/far/run.sh" => format!("c/far/{name}.c"),
                _ => bench.program.clone(),
            };
            let text = std::fs::read_to_string(root.join("programs").join(&program)).expect(&program);
            assert!(root.join("programs").join(&bench.program).is_file() && !bench.interpreter.is_empty());
            let tests = if program.ends_with(".R") { bench.tests.len() } else { 0 };
            assert_eq!(text.matches("\nmeasure(\"").count(), tests, "{name}");
            for test in &bench.tests {
                let measured = ["\nmeasure(\"", "result(\"", "\"test\": \""]
                    .map(|call| format!("{call}{}\"", test.name));
                assert!(measured.iter().any(|call| text.contains(call)), "{name}/{}", test.name);
                let right = |(answer, tolerance): (&[f64], f64)| !answer.is_empty() && tolerance < 0.01;
                assert!(bench.far.is_some() || bench.expected(&test.name, 1.0).is_some_and(right), "{name}");
            }
            let Some(far) = &bench.far else { continue };
            let has = |name: &str| far.page_sizes.iter().any(|size| size == name);
            assert!(has("auto") && has("marked") != far.marked.is_empty(), "{name}");
            assert!(bench.tests.len() == 1 && far.local_percent.iter().all(|it| *it <= 100), "{name}");
            let Some(published) = &far.published else { continue };
            let complete = |row: &PublishedRow| row.seconds.len() == published.local_percent.len();
            assert!(published.rows.iter().all(|row| complete(row) && has(&row.page_size)), "{name}");
        }
    }
}
