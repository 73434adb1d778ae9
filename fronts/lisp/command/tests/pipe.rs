//! Tests `largesse lisp` with a pipe as its input.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Runs the Lisp with `input`. Returns its standard output, its standard error and its exit status.
fn run_with(input: &str) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse-lisp"));
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_STATE_HOME");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&ended.stdout), text(&ended.stderr), ended.status.code())
}

#[test]
fn program_with_an_error_runs_on_and_fails() {
    let (printed, said, status) = run_with("(+ 1\n 2)\n(nosuch)\n(* 2 3)");
    assert_eq!((printed.as_str(), status), ("3\n6\n", Some(1)), "{said}");
    assert!(said.starts_with("undefined-function: undefined function nosuch\n"), "{said}");
}

#[test]
fn unfinished_form_is_an_error() {
    let (printed, said, status) = run_with("(+ 1 2)\n(list 1 2");
    assert_eq!((printed.as_str(), status), ("3\n", Some(1)));
    assert_eq!(said, "largesse lisp: the text ends inside of a form\n");
}
