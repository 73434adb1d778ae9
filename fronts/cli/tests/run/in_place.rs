//! Tests that the program replaces the command, so that its parent sees its exit status and signals.

use crate::{Folder, largesse, stderr, stdout};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

/// Runs `script` in a shell under the stand-in library, or returns `None` without a compiler.
fn shell(options: &[&str], script: &str) -> Option<Output> {
    let folder = Folder::new();
    let library = folder.library()?;
    let mut command = largesse();
    command.env("LARGESSE_LIBRARY", library).args(options);
    Some(command.args(["--", "sh", "-c", script]).output().unwrap())
}

#[track_caller]
fn check(options: &[&str], script: &str, want: &str) {
    let Some(output) = shell(options, script) else { return };
    assert_eq!(stdout(&output), want, "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn exit_status_is_the_programs() {
    let Some(output) = shell(&[], "exit 7") else { return };
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(stderr(&output), "");
}

#[test]
fn parent_sees_fatal_signal() {
    for (name, number) in [("TERM", libc::SIGTERM), ("SEGV", libc::SIGSEGV), ("PIPE", libc::SIGPIPE)] {
        let Some(output) = shell(&[], &format!("kill -{name} $$")) else { return };
        assert_eq!(output.status.signal(), Some(number));
    }
}

#[test]
fn program_keeps_process_number() {
    check(&[], r#"[ "$LARGESSE_PID" = $$ ] && echo same"#, "same\n");
}

#[test]
fn only_needed_variables_are_set() {
    check(&[], "basename $LD_PRELOAD; env | grep -c ^LARGESSE_", "liblargesse.so\n2\n");
    check(
        &["--pages", "4k", "--min-kb", "128", "--header", "48", "--align", "native"],
        "echo $LARGESSE_PAGES $LARGESSE_MIN_KB $LARGESSE_HEADER $LARGESSE_ALIGN",
        "4k 128 48 native\n",
    );
    check(
        &["--interleave", "--children", "off", "--max-kb", "4096"],
        "echo $LARGESSE_NODE $LARGESSE_CHILDREN $LARGESSE_MAX_KB",
        "interleave off 4096\n",
    );
}

#[test]
fn program_gets_name_and_arguments() {
    let folder = Folder::new();
    let Some(library) = folder.library() else { return };
    let source = r#"#include <stdio.h>
        int main(int n, char **v) { for (int i = 0; i < n; i++) printf("[%s]", v[i]); return 0; }"#;
    let Some(_) = folder.compiled("say", source, &[]) else { return };
    let path = format!("{}:/bin:/usr/bin", folder.0.display());
    for separator in [&["--"][..], &[]] {
        let mut command = largesse();
        command.env("LARGESSE_LIBRARY", &library).env("PATH", &path).args(separator);
        let output = command.args(["say", "--pages", "", "-x", "--", "a b"]).output().unwrap();
        assert_eq!(stdout(&output), "[say][--pages][][-x][--][a b]", "{}", stderr(&output));
    }
}

#[test]
fn sigpipe_and_mask_are_inherited() {
    let folder = Folder::new();
    let Some(library) = folder.library() else { return };
    let lines = "grep -E ^Sig(Ign|Blk) /proc/self/status";
    for trap in ["", "trap '' PIPE; "] {
        let seen = |prefix: &str| {
            let script = format!("{trap}{prefix} {lines}").replace("^Sig(Ign|Blk)", "'^Sig(Ign|Blk)'");
            let mut command = Command::new("sh");
            command.args(["-c", &script]).env("LARGESSE_LIBRARY", &library);
            stdout(&command.output().unwrap())
        };
        let ours = format!("{} run --", env!("CARGO_BIN_EXE_largesse"));
        let (with, without) = (seen(&ours), seen(""));
        assert!(without.contains("SigIgn"));
        assert_eq!(with, without);
    }
}

#[test]
fn other_preloaded_libraries_are_kept() {
    let folder = Folder::new();
    let Some(library) = folder.library() else { return };
    let source = "int other(void) { return 0; }";
    let Some(other) = folder.compiled("libother.so", source, &["-shared", "-fPIC"]) else { return };
    let mut command = largesse();
    command.env("LARGESSE_LIBRARY", &library).env("LD_PRELOAD", &other);
    let output = command.args(["--", "sh", "-c", "echo $LD_PRELOAD"]).output().unwrap();
    assert_eq!(stdout(&output), format!("{}:{}\n", library.display(), other.display()));
    assert_eq!(stderr(&output), "");
}
