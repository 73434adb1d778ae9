//! Tests of output to closed pipes and full disks, and of messages.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

mod messages;

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

const SAYING: &[&[&str]] = &[
    &["doctor"],
    &["doctor", "--json"],
    &["machine"],
    &["status", "--json"],
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["help", "report"],
];

fn into(words: &[&str], output: Stdio) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_largesse"))
        .args(words)
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn();
    child.unwrap().wait_with_output().unwrap()
}

fn status_and_words(ended: &Output) -> (Option<i32>, String) {
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

#[test]
fn closed_pipe_is_no_error() {
    for words in SAYING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // `doctor` exits with 1 if it finds a problem.
        assert_eq!(
            status_and_words(&into(words, writer.into())),
            status_and_words(&into(words, Stdio::null())),
            "{words:?}"
        );
    }
}

#[test]
fn full_disk_is_reported_once() {
    for words in SAYING {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (status, said) = status_and_words(&into(words, full.into()));
        assert_eq!(said, "largesse: standard output: No space left on device (os error 28)\n", "{words:?}");
        assert!(status.is_some_and(|status| status != 0), "{words:?}: {status:?}");
    }
}
