//! Reads the settings under which programs run from `benches/definitions/settings.toml`: stock, Largesse, and its
//! peers.

use super::definition::OTHER_FILES;
use super::{Bench, Result, read};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The purpose of a setting: it is the denominator of every ratio, it is judged, or it is another one to compare with.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Baseline,
    Subject,
    Peer,
}

/// A setting: one way to start a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) role: Role,
    /// Options of `largesse run`, which starts the program. If they are missing, the program is started directly.
    launch: Option<Vec<String>>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Name of a library to preload. (`package` is the Debian package that has it.)
    preload: Option<String>,
    package: Option<String>,
    /// First version of the C library that supports the setting.
    glibc: Option<String>,
}

/// The contents of `settings.toml`: environment variables that are set and removed for every run, and folders in which
/// libraries are searched.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    environment: BTreeMap<String, String>,
    clear: Vec<String>,
    directories: Vec<PathBuf>,
    #[serde(rename = "setting")]
    all: Vec<Setting>,
}

impl Settings {
    pub(crate) fn read(root: &Path) -> Result<Settings> {
        read(root, OTHER_FILES[0])
    }

    /// Returns the settings under which `bench` runs, the baseline first. Peers are left out unless `with_peers`.
    pub(crate) fn of(&self, bench: &Bench, with_peers: bool) -> Result<Vec<&Setting>> {
        let there: Vec<_> = self.all.iter().map(|setting| setting.name.as_str()).collect();
        let (name, there) = (&bench.name, there.join(", "));
        let find = |asked: &String| {
            self.all.iter().find(|setting| setting.name == *asked).ok_or_else(|| {
                format!(
                    "bench {name} asks for the setting `{asked}`, which settings.toml lacks; it has: {there}"
                )
            })
        };
        let mut chosen = bench.settings.iter().map(find).collect::<Result<Vec<_>>>()?;
        chosen.retain(|setting| with_peers || setting.role != Role::Peer);
        chosen.sort_by_key(|setting| setting.role != Role::Baseline);
        match chosen.first() {
            Some(first) if first.role == Role::Baseline => Ok(chosen),
            _ => Err(format!("bench {} names no baseline in `settings`", bench.name)),
        }
    }

    /// Returns the reason for which `setting` is not possible on this machine, or `None` if it is.
    pub(crate) fn missing(&self, setting: &Setting) -> Option<String> {
        if let Some(library) = &setting.preload
            && self.library(library).is_none()
        {
            let package = setting.package.as_ref().map(|name| format!(" (apt install {name})"));
            return Some(format!("not installed{}", package.unwrap_or_default()));
        }
        let wanted = setting.glibc.as_ref()?;
        // SAFETY: the function takes no argument and returns a static C string.
        let here = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy();
        let numbers = |text: &str| -> Vec<u32> { text.split('.').flat_map(str::parse).collect() };
        (numbers(&here) < numbers(wanted)).then(|| format!("needs glibc {wanted}; here is {here}"))
    }

    /// Returns the command that runs `words` under `setting`. The words of a `launcher`, if it has any, are put in
    /// front; `more` are further options of `largesse run`.
    pub(crate) fn command(
        &self,
        setting: &Setting,
        launcher: &[&str],
        more: &[OsString],
        words: &[OsString],
    ) -> Command {
        let mut all: Vec<OsString> = launcher.iter().map(OsString::from).collect();
        if let Some(options) = &setting.launch {
            all.extend([largesse_terminal::own::command().into(), "run".into()]);
            all.extend(options.iter().map(OsString::from).chain(more.iter().cloned()).chain(["--".into()]));
        }
        all.extend_from_slice(words);
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]);
        for name in &self.clear {
            command.env_remove(name);
        }
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
