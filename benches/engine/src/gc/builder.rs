//! Builds and starts systems in a temporary directory.

use super::super::temp_dir::TempDir;
use super::definition::{GcProgram, System};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary directory for builds, which is removed when dropped.
#[derive(Debug)]
pub(super) struct Builder {
    folder: TempDir,
    programs: PathBuf,
    largesse: PathBuf,
}

impl Builder {
    /// Makes the directory; `root` holds the folder `programs`.
    pub(super) fn open(root: &Path) -> Result<Builder, String> {
        Ok(Builder {
            folder: TempDir::new()?,
            programs: std::path::absolute(root.join("programs")).unwrap_or_else(|_| root.join("programs")),
            largesse: largesse_terminal::own::command(),
        })
    }

    /// Builds `system`; the error says why it cannot be built here, and what to install.
    pub(super) fn build(&self, system: &System) -> Result<(), String> {
        let folder = self.folder_of(system);
        std::fs::create_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        for words in &system.build {
            let output = self.line(system, words).stdin(Stdio::null()).output();
            let output = output.map_err(|_| format!("not installed: {}", system.needs))?;
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                let why = errors.lines().find(|line| line.contains("error")).or(errors.lines().last());
                let why = why.unwrap_or("it gives no reason");
                return Err(format!("{} fails: {why}; needed: {}", words[0], system.needs));
            }
        }
        Ok(())
    }

    /// Returns the command that runs `program` with `threads` threads, each of which repeats it `times` times.
    pub(super) fn command(&self, system: &System, program: &GcProgram, threads: u32, times: u64) -> Command {
        let mut command = self.line(system, &system.run);
        command.env("PROGRAM", &program.name);
        command.env("THREADS", threads.to_string()).env("TIMES", times.to_string());
        command
    }

    fn line(&self, system: &System, words: &[String]) -> Command {
        let filled = |word: &String| {
            let places = [("{programs}", &self.programs), ("{largesse}", &self.largesse)];
            let filled = places
                .into_iter()
                .fold(word.clone(), |word, (name, place)| word.replace(name, &place.display().to_string()));
            filled.replace("{build}", &self.folder_of(system).display().to_string())
        };
        let mut command = Command::new(words.first().map(filled).unwrap_or_default());
        command.args(words.iter().skip(1).map(filled)).current_dir(self.folder_of(system));
        command.envs(system.environment.iter().map(|(name, value)| (name, filled(value))));
        command
    }

    fn folder_of(&self, system: &System) -> PathBuf {
        self.folder.path().join(&system.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::tests::ours;
    use super::*;

    fn system(build: &[&str]) -> System {
        let mut system = ours().systems.remove(0);
        system.needs = "apt-get install it".into();
        system.build = vec![build.iter().map(ToString::to_string).collect()];
        system.run = ["sh", "-c", "cat made; echo $PROGRAM $THREADS $TIMES"].map(String::from).into();
        system
    }

    #[test]
    fn builds_are_run_and_removed() {
        let builder = Builder::open(Path::new(".")).unwrap();
        let system = system(&["sh", "-c", "echo {build} > made"]);
        builder.build(&system).unwrap();
        let output = builder.command(&system, &ours().programs[0], 3, 70).output().unwrap();
        let folder = builder.folder_of(&system);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, format!("{}\ncompfib 3 70\n", folder.display()));
        drop(builder);
        assert!(!folder.exists());
    }

    #[test]
    fn failed_builds_say_what_to_install() {
        let check = |build: &[&str], why: &str| {
            let builder = Builder::open(Path::new(".")).unwrap();
            let printed = builder.build(&system(build)).unwrap_err();
            assert!(printed.contains(why) && printed.contains("apt-get install it"), "{printed}");
        };
        check(&["/nowhere/gcc"], "not installed");
        check(&["sh", "-c", "echo fatal error: no gc.h >&2; echo bye >&2; exit 1"], "no gc.h");
        check(&["false"], "false fails");
    }
}
