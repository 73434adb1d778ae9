//! Tests that names from outside are harmless in messages of `largesse bench`, and that lost output is an error.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

/// A name whose second line a terminal would obey.
const NAME: &str = "one\nTWO\x1b[31m";

fn ended(words: &[&str], output: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse-bench"));
    command.args(words).stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn names_in_messages_are_escaped() {
    for words in [
        &[NAME][..],
        &["r", "--touch", NAME],
        &["far", "--page-sizes", NAME],
        &["far", "--store", NAME],
        &["r", "--only", NAME],
        &["kernels", "--only", NAME],
        &["gc", "--only", NAME],
        &["r", "--programs", NAME],
        &["r", "--runs", NAME],
    ] {
        let output = ended(words, Stdio::null());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("one\\nTWO\\u001b[31m"), "{words:?}: {said}");
        assert!(!said.contains("\nTWO") && !said.contains('\x1b'), "{words:?}: {said}");
    }
}

#[test]
fn lost_output_is_an_error() {
    for words in [&["--help"][..], &["r", "--list"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = ended(words, full.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() != Some(0) && said.contains("No space left"), "{words:?}: {output:?}");
    }
}
