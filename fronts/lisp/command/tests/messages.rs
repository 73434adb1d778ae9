//! Tests that names from outside are harmless in messages of `largesse lisp`, and that lost output is an error.

use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

/// A name whose second line a terminal would obey.
const NAME: &str = "one\nTWO\x1b[31m";

fn ended(words: &[&str], output: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse-lisp"));
    command.args(words).stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn names_in_messages_are_escaped() {
    let file = format!("{NAME}.l");
    let option = format!("--{NAME}");
    for words in [&[file.as_str()][..], &[&option], &["--heap", NAME], &["--local", NAME]] {
        let output = ended(words, Stdio::null());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(0), "{words:?}: {said}");
        assert!(said.contains("one\\nTWO\\u"), "{words:?}: {said}");
        assert!(!said.contains("\nTWO") && !said.contains('\x1b'), "{words:?}: {said}");
    }
}

#[test]
fn lost_output_is_an_error() {
    for words in [&["--help"][..], &["--version"], &["-e", "(princ 1)"], &["-e", "(print 1)"]] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = ended(words, full.into());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() != Some(0) && said.contains("No space left"), "{words:?}: {output:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        if words != ["-e", "(print 1)"] {
            let output = ended(words, writer.into());
            assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{words:?}: {output:?}");
        }
    }
}
