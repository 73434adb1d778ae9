//! Reads the settings under which programs run: stock, Largesse, and the peers of
//! `benches/definitions/settings.toml`.

use super::definition::{Bench, SETTINGS};
use super::error::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The part of a setting in a comparison.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// The denominator of every ratio.
    Baseline,
    /// The setting that is judged.
    Subject,
    /// Another setting to compare with.
    Peer,
}

/// One way to start a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) role: Role,
    /// Options of `largesse run`, which starts the program; without them it is started directly.
    launch: Option<Vec<String>>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Name of a library to preload, searched in the `directories` of the file.
    preload: Option<String>,
    /// Debian package with the library.
    package: Option<String>,
    /// First version of the C library that supports the setting.
    glibc: Option<String>,
}

/// The contents of `settings.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// Variables set for every run.
    environment: BTreeMap<String, String>,
    /// Variables removed for every run.
    clear: Vec<String>,
    /// Folders in which libraries are searched.
    directories: Vec<PathBuf>,
    #[serde(rename = "setting")]
    all: Vec<Setting>,
}

impl Settings {
    pub(super) fn read(root: &Path) -> Result<Settings, Error> {
        let path = root.join("definitions").join(SETTINGS);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Error::Definition { path: path.clone(), why: error.to_string() })?;
        toml::from_str(&text).map_err(|error| Error::Definition { path, why: error.to_string() })
    }

    /// Returns the settings of `bench`, peers only if `with_peers`.
    pub(super) fn of(&self, bench: &Bench, with_peers: bool) -> Result<Vec<&Setting>, Error> {
        let find = |asked: &String| {
            self.all.iter().find(|setting| setting.name == *asked).ok_or_else(|| Error::Setting {
                bench: bench.name.clone(),
                asked: asked.clone(),
                there: self.all.iter().map(|setting| setting.name.clone()).collect(),
            })
        };
        let mut chosen = bench.settings.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        chosen.retain(|setting| with_peers || setting.role != Role::Peer);
        Ok(chosen)
    }

    /// Returns the reason why `setting` is not possible here.
    pub(super) fn missing(&self, setting: &Setting) -> Option<String> {
        if let Some(library) = &setting.preload
            && self.library(library).is_none()
        {
            let package = setting.package.as_ref().map(|name| format!(" (apt install {name})"));
            return Some(format!("not installed{}", package.unwrap_or_default()));
        }
        let wanted = setting.glibc.as_ref()?;
        let here = glibc_version();
        (!at_least(&here, wanted)).then(|| format!("needs glibc {wanted}; here is {here}"))
    }

    /// Returns the command that runs `words` under `setting`; `more` are further options of `largesse run`.
    pub(super) fn command(&self, setting: &Setting, more: &[OsString], words: &[OsString]) -> Command {
        let mut line: Vec<OsString> = Vec::new();
        if let Some(options) = &setting.launch {
            line.push(largesse_terminal::own::command().into());
            line.push("run".into());
            line.extend(options.iter().map(OsString::from));
            line.extend_from_slice(more);
            line.push("--".into());
        }
        line.extend_from_slice(words);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        self.clear.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(&self.environment).envs(&setting.environment);
        if let Some(path) = setting.preload.as_ref().and_then(|library| self.library(library)) {
            command.env("LD_PRELOAD", path);
        }
        command
    }

    fn library(&self, name: &str) -> Option<PathBuf> {
        self.directories.iter().map(|directory| directory.join(name)).find(|path| path.exists())
    }
}

fn glibc_version() -> String {
    // SAFETY: the function takes no argument and returns a static C string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

fn at_least(here: &str, wanted: &str) -> bool {
    let numbers =
        |text: &str| text.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>();
    numbers(here) >= numbers(wanted)
}

#[cfg(test)]
mod tests {
    use super::super::definition::{read_all, tests::shipped};
    use super::*;

    #[test]
    fn every_bench_names_known_settings_and_starts_with_the_baseline() {
        let settings = Settings::read(&shipped()).unwrap();
        for bench in read_all(&shipped()).unwrap() {
            let chosen = settings.of(&bench, true).unwrap();
            assert_eq!(chosen[0].role, Role::Baseline, "{}", bench.name);
            assert_eq!(chosen.iter().filter(|setting| setting.role == Role::Baseline).count(), 1);
            assert_eq!(chosen.iter().filter(|setting| setting.role == Role::Subject).count(), 1);
        }
    }

    #[test]
    fn absent_libraries_say_what_to_install() {
        let mut settings = Settings::read(&shipped()).unwrap();
        settings.directories.clear();
        let tcmalloc = settings.all.iter().find(|setting| setting.name == "tcmalloc").unwrap();
        assert_eq!(settings.missing(tcmalloc).unwrap(), "not installed (apt install libtcmalloc-minimal4)");
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(at_least("2.36", "2.35") && at_least("2.35", "2.35") && at_least("2.100", "2.35"));
        assert!(!at_least("2.9", "2.35") && !at_least("2.31", "2.35"));
    }

    #[test]
    fn runs_inherit_no_allocator() {
        let settings = Settings::read(&shipped()).unwrap();
        let stock = settings.command(&settings.all[0], &[], &["true".into()]);
        let removed = |name: &str| stock.get_envs().any(|(key, value)| key == name && value.is_none());
        assert!(removed("LD_PRELOAD") && removed("GLIBC_TUNABLES"));
        let single = |(key, value): (&std::ffi::OsStr, Option<&std::ffi::OsStr>)| {
            key == "OPENBLAS_NUM_THREADS" && value.is_some_and(|value| value == "1")
        };
        assert!(stock.get_envs().any(single));
    }
}
