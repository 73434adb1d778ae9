//! Reads what is compared as data: `benches/definitions/gc.toml`.

use super::super::definition::GC;
use super::super::error::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The contents of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    /// Name of the system whose time with one thread is the denominator of ratios.
    pub(super) reference: String,
    /// Seconds that a run of one thread is to take, at scale 1.
    pub(super) seconds: f64,
    /// MiB that are touched and freed before every run.
    pub(super) touch_mib: u64,
    /// Largest relative error of an answer that passes.
    pub(super) tolerance: f64,
    #[serde(rename = "program")]
    pub(super) programs: Vec<GcProgram>,
    #[serde(rename = "system")]
    pub(super) systems: Vec<System>,
}

/// The work that every thread repeats.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GcProgram {
    pub(super) name: String,
    pub(super) title: String,
    /// Repetitions of the first run, from which the number of repetitions is computed.
    pub(super) times: u64,
    /// Expected answer of each thread.
    pub(super) answer: f64,
    /// Whether each pause for a collection is printed.
    #[serde(default)]
    pub(super) pauses: bool,
}

/// A language and the way its threads share a heap.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    pub(super) name: String,
    pub(super) title: String,
    /// Advice what to type if it is not installed.
    #[serde(default)]
    pub(super) needs: String,
    /// Names of the programs that it has; empty for all.
    #[serde(default)]
    pub(super) programs: Vec<String>,
    /// Commands that build what is run.
    #[serde(default)]
    pub(super) build: Vec<Vec<String>>,
    pub(super) run: Vec<String>,
    #[serde(default)]
    pub(super) environment: BTreeMap<String, String>,
}

impl System {
    pub(super) fn has(&self, program: &GcProgram) -> bool {
        self.programs.is_empty() || self.programs.contains(&program.name)
    }
}

impl Definition {
    pub(super) fn read(root: &Path) -> Result<Definition, Error> {
        let path = root.join("definitions").join(GC);
        let why = |why: String| Error::Definition { path: path.clone(), why };
        let text = std::fs::read_to_string(&path).map_err(|error| why(error.to_string()))?;
        toml::from_str(&text).map_err(|error| why(error.to_string()))
    }

    /// Keeps the programs and the systems in `names`; a kind of which none is named is kept wholly.
    pub(super) fn only(mut self, names: &[String]) -> Result<Definition, Error> {
        let programs: Vec<_> = self.programs.iter().map(|it| it.name.clone()).collect();
        let systems: Vec<_> = self.systems.iter().map(|it| it.name.clone()).collect();
        let there = || programs.iter().chain(&systems).cloned();
        if let Some(asked) = names.iter().find(|asked| there().all(|it| it != **asked)) {
            return Err(Error::Only { asked: asked.clone(), there: there().collect() });
        }
        if names.iter().any(|name| programs.contains(name)) {
            self.programs.retain(|program| names.contains(&program.name));
        }
        if names.iter().any(|name| systems.contains(name)) {
            self.systems.retain(|system| names.contains(&system.name));
        }
        let chosen = std::mem::take(&mut self.systems).into_iter();
        self.systems = chosen.filter(|it| self.programs.iter().any(|program| it.has(program))).collect();
        Ok(self)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::definition::tests::shipped;
    use super::*;

    /// Returns the definition of this checkout.
    pub(in super::super) fn ours() -> Definition {
        Definition::read(&shipped()).unwrap()
    }

    #[test]
    fn shipped_definition_is_complete() {
        let definition = ours();
        assert_eq!((definition.programs.len(), definition.systems.len()), (9, 7));
        assert!(definition.systems.iter().any(|it| it.name == definition.reference));
        let driver = std::fs::read_to_string(shipped().join("programs/lisp/threads.l")).unwrap();
        for program in &definition.programs {
            assert!(driver.contains(&format!("\"{}\"", program.name)), "{}", program.name);
            assert!(program.times > 0 && program.answer != 0.0, "{}", program.name);
        }
        for system in &definition.systems {
            assert_eq!(system.build.is_empty(), system.needs.is_empty(), "{}", system.name);
            let known = |name: &String| definition.programs.iter().any(|it| it.name == *name);
            assert!(system.programs.iter().all(known), "{}", system.name);
            for word in system.run.iter().chain(system.build.iter().flatten()) {
                if let Some((_, file)) = word.split_once("{programs}/") {
                    let file = file.split('"').next().unwrap();
                    assert!(shipped().join("programs").join(file).is_file(), "{file}");
                }
            }
        }
    }

    #[track_caller]
    fn check(only: &[&str], programs: usize, systems: &[&str]) {
        let only: Vec<_> = only.iter().map(ToString::to_string).collect();
        let chosen = ours().only(&only).unwrap();
        let names: Vec<_> = chosen.systems.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((chosen.programs.len(), &names[..]), (programs, systems));
    }

    #[test]
    fn only_chooses_programs_and_systems() {
        check(&["mutex", "go"], 9, &["mutex", "go"]);
        check(&["copy-seq"], 1, &["mutex", "rwlock", "safepoint", "euslisp", "boehm", "sbcl", "go"]);
        check(&["compfib"], 1, &["mutex", "rwlock", "safepoint", "euslisp"]);
        check(&["compfib", "go", "rwlock"], 1, &["rwlock"]);
        let message = ours().only(&["nothing".into()]).unwrap_err().to_string();
        assert!(message.contains("make-cube") && message.contains("boehm"), "{message}");
    }
}
