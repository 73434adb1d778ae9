//! Reads what is compared as data: `benches/definitions/*.toml`.

use super::error::Error;
use super::far::Spec;
use super::{gc, kernels};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Files in the folder of definitions that define something else than benches.
pub(super) const SETTINGS: &str = "settings.toml";
pub(super) const GC: &str = "gc.toml";

/// One program, its tests and their expected answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bench {
    pub(super) name: String,
    pub(super) title: String,
    /// Comparison that the bench belongs to: the argument of `largesse bench`.
    pub(super) comparison: String,
    /// Group of benches that one `--only` chooses.
    pub(super) group: String,
    /// Whether it runs only if `--only` names it, because it takes long.
    #[serde(default)]
    pub(super) only_by_name: bool,
    pub(super) interpreter: Vec<String>,
    /// Path below `benches/programs`.
    pub(super) program: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// Advice what to install if the program cannot start.
    pub(super) needs: String,
    /// Resident memory at scale 1, in MiB; a machine with less available memory skips the bench.
    pub(super) memory_mib: u64,
    /// Names of settings in `settings.toml`.
    pub(super) settings: Vec<String>,
    /// Largest relative error of an answer that passes: other processors round differently.
    pub(super) tolerance: f64,
    /// Parameters that `largesse bench far` varies.
    pub(super) far: Option<Spec>,
    #[serde(rename = "test")]
    pub(super) tests: Vec<Test>,
}

/// One test of a bench, which is one line of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) tolerance: Option<f64>,
    /// Expected answer by scale. Without one the program checks itself, and the bits must equal the baseline's.
    #[serde(default)]
    pub(super) expect: BTreeMap<String, Vec<f64>>,
}

impl Bench {
    /// Returns the expected answer of `test` at `scale` and its tolerance; `None` if the definition has none.
    pub(super) fn expected(&self, test: &str, scale: f64) -> Option<(&[f64], f64)> {
        let test = self.tests.iter().find(|known| known.name == test)?;
        let at_scale = |text: &String| text.parse::<f64>().is_ok_and(|known| (known - scale).abs() < 1e-9);
        let (_, answer) = test.expect.iter().find(|(text, _)| at_scale(text))?;
        Some((answer, test.tolerance.unwrap_or(self.tolerance)))
    }

    /// Returns the program's command line. Without `times` the program chooses its number of repetitions.
    pub(super) fn words(&self, root: &Path, scale: f64, times: Option<u32>) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.interpreter.iter().map(OsString::from).collect();
        words.push(root.join("programs").join(&self.program).into());
        words.extend(self.args.iter().map(OsString::from));
        let tests: Vec<_> = self.tests.iter().map(|test| test.name.as_str()).collect();
        words.extend(["--only".into(), tests.join(",").into()]);
        words.extend(["--scale".into(), scale.to_string().into()]);
        if let Some(times) = times {
            words.extend(["--times".into(), times.to_string().into()]);
        }
        words
    }

    /// Returns the program's resident memory at `scale`, in MiB.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "MiB of one machine, and the scale is at most 16"
    )]
    pub(super) fn needed_mib(&self, scale: f64) -> u64 {
        (self.memory_mib as f64 * scale) as u64
    }

    /// Keeps the tests that `only` names as `bench/test`; the name of the bench or its group keeps all.
    fn narrowed(mut self, only: &[String]) -> Option<Bench> {
        let whole = if only.is_empty() { !self.only_by_name } else { self.is_named_in(only) };
        if !whole {
            let name = self.name.clone();
            self.tests.retain(|test| only.contains(&format!("{name}/{}", test.name)));
        }
        (!self.tests.is_empty()).then_some(self)
    }

    fn is_named_in(&self, only: &[String]) -> bool {
        only.contains(&self.name) || only.contains(&self.group)
    }

    fn names(&self) -> Vec<String> {
        let tests = self.tests.iter().map(|test| format!("{}/{}", self.name, test.name));
        [self.group.clone(), self.name.clone()].into_iter().chain(tests).collect()
    }
}

/// Reads every definition below `root`, in the order of file names.
pub(super) fn read_all(root: &Path) -> Result<Vec<Bench>, Error> {
    let folder = root.join("definitions");
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| Error::Definition {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let entries = std::fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    let others = [SETTINGS, GC];
    paths.retain(|path| path.extension().is_some_and(|is| is == "toml"));
    paths.retain(|path| !others.iter().any(|other| path.ends_with(other)));
    paths.sort();
    let mut benches = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
        benches.extend(parse(&text).map_err(|error| unreadable(&path, &error))?);
    }
    Ok(benches)
}

/// Returns the benches of `comparison` that `only` names; if it is empty, all that do not take long.
pub(super) fn choose(benches: Vec<Bench>, comparison: &str, only: &[String]) -> Result<Vec<Bench>, Error> {
    let (ours, others): (Vec<_>, Vec<_>) =
        benches.into_iter().partition(|bench| bench.comparison == comparison);
    if ours.is_empty() {
        let mut there: Vec<_> = others.into_iter().map(|bench| bench.comparison).collect();
        there.extend([gc::NAME, kernels::NAME].map(str::to_owned));
        there.sort();
        there.dedup();
        return Err(Error::Comparison { asked: comparison.to_owned(), there });
    }
    let names: Vec<_> = ours.iter().flat_map(Bench::names).collect();
    if let Some(asked) = only.iter().find(|asked| !names.contains(asked)) {
        let mut there = names;
        there.sort();
        there.dedup();
        return Err(Error::Only { asked: asked.clone(), there });
    }
    Ok(ours.into_iter().filter_map(|bench| bench.narrowed(only)).collect())
}

fn parse(text: &str) -> Result<Vec<Bench>, toml::de::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        bench: Vec<Bench>,
    }
    Ok(toml::from_str::<File>(text)?.bench)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the folder `benches` of this checkout.
    pub(in super::super) fn shipped() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches")
    }

    #[test]
    fn every_shipped_definition_is_complete() {
        let benches = read_all(&shipped()).unwrap();
        assert!(benches.iter().any(|bench| bench.name == "fifteen" && bench.tests.len() == 15));
        for bench in &benches {
            assert_eq!(bench.far.is_some(), bench.comparison == "far", "{}", bench.name);
            assert!(shipped().join("programs").join(&bench.program).is_file(), "{}", bench.program);
            assert!(!bench.interpreter.is_empty(), "{}", bench.name);
            for test in bench.tests.iter().filter(|_| bench.far.is_none()) {
                let (answer, tolerance) = bench.expected(&test.name, 1.0).expect(&test.name);
                assert!(!answer.is_empty() && tolerance > 0.0 && tolerance < 0.01, "{}", test.name);
            }
        }
    }

    #[test]
    fn shipped_programs_have_the_tests_of_their_definitions() {
        for bench in read_all(&shipped()).unwrap().into_iter().filter(|bench| bench.comparison == "r") {
            let text = std::fs::read_to_string(shipped().join("programs").join(&bench.program)).unwrap();
            let mut measured: Vec<_> = text
                .match_indices("\nmeasure(\"")
                .filter_map(|(at, found)| text[at + found.len()..].split('"').next())
                .collect();
            let mut defined: Vec<_> = bench.tests.iter().map(|test| test.name.as_str()).collect();
            measured.sort_unstable();
            defined.sort_unstable();
            assert_eq!(measured, defined, "{}", bench.program);
        }
    }

    #[track_caller]
    fn check(only: &[&str], want: &[&str]) {
        let only: Vec<_> = only.iter().map(|&name| name.to_owned()).collect();
        let chosen = choose(read_all(&shipped()).unwrap(), "r", &only).unwrap();
        let found: Vec<_> =
            chosen.iter().map(|bench| format!("{}:{}", bench.name, bench.tests.len())).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn only_chooses_benches_groups_and_single_tests() {
        check(&[], &["fifteen:15", "frames:5", "arrays:6", "lists:5", "micro:3"]);
        check(&["memory"], &["frames:5", "arrays:6", "lists:5"]);
        check(&["slides"], &["slides:6"]);
        check(&["slides/qr-1000", "slides/qr-1024", "micro"], &["micro:3", "slides:2"]);
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let benches = read_all(&shipped()).unwrap();
        let message = choose(benches.clone(), "r", &["nothing".into()]).unwrap_err().to_string();
        assert!(message.contains("nothing") && message.contains("fifteen/sort"), "{message}");
        let message = choose(benches, "near", &[]).unwrap_err().to_string();
        assert!(
            message.contains("near") && message.contains("type one of: far, gc, kernels, r"),
            "{message}"
        );
    }
}
