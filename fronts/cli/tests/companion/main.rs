//! Tests of subcommands that are separate programs, with stand-ins for these.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with a copy of the command and an empty folder `path`; removed when dropped.
struct Installed(PathBuf);

impl Installed {
    fn new() -> Installed {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("largesse-companion-{}-{number}", std::process::id()));
        std::fs::create_dir_all(path.join("path")).unwrap();
        let folder = Installed(path);
        folder.install(Path::new(env!("CARGO_BIN_EXE_largesse")), "largesse", "755");
        folder
    }

    /// Copies a program by another process: a child forked by another test would hold a file open that this process
    /// writes, so that it could not be executed.
    fn install(&self, from: &Path, name: &str, mode: &str) {
        let done = Command::new("install").args(["-m", mode]).arg(from).arg(self.0.join(name)).status();
        assert!(done.is_ok_and(|done| done.success()), "{name} was not installed");
    }

    /// Installs a program that prints `word`, then each of its arguments, and exits with status 3.
    fn stand_in(&self, name: &str, word: &str, mode: &str) {
        let source = self.0.join("source");
        std::fs::write(&source, format!("#!/bin/sh\nprintf '[%s]' {word} \"$@\"\nexit 3\n")).unwrap();
        self.install(&source, name, mode);
    }

    fn largesse(&self, words: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin", self.0.join("path").display());
        Command::new(self.0.join("largesse")).args(words).env("PATH", path).output().unwrap()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn prints(output: &Output, want: &str) {
    assert_eq!(
        (String::from_utf8_lossy(&output.stdout).as_ref(), output.status.code()),
        (want, Some(3)),
        "{output:?}"
    );
}

#[test]
fn all_arguments_are_passed() {
    let folder = Installed::new();
    for verb in ["lisp", "bench"] {
        folder.stand_in(&format!("largesse-{verb}"), verb, "755");
        for words in [&[][..], &["--help"], &["-V"], &["--", "-x"], &["a b", "--", "--json", ""], &["help"]] {
            let want: String = [verb].iter().chain(words).map(|word| format!("[{word}]")).collect();
            prints(&folder.largesse(&[&[verb], words].concat()), &want);
        }
    }
}

#[test]
fn own_folder_comes_before_path() {
    let folder = Installed::new();
    folder.stand_in("path/largesse-lisp", "path", "755");
    prints(&folder.largesse(&["lisp"]), "[path]");
    folder.stand_in("largesse-lisp", "own", "755");
    prints(&folder.largesse(&["lisp"]), "[own]");
}

#[test]
fn missing_program_names_its_package() {
    let folder = Installed::new();
    for verb in ["lisp", "bench"] {
        let output = folder.largesse(&[verb, "--help"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(127), "{said}");
        assert!(said.contains(&format!("install the package largesse-{verb}")), "{said}");
        folder.stand_in(&format!("largesse-{verb}"), verb, "644");
        let output = folder.largesse(&[verb]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(126), "{said}");
        assert!(said.contains("was not started: Permission denied"), "{said}");
    }
}

#[test]
fn help_lists_companions() {
    let output = Installed::new().largesse(&["--help"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    for words in ["lisp ", "bench ", "Run Lisp", "Compare programs"] {
        assert!(shown.contains(words), "no '{words}' in {shown}");
    }
}
