//! Tests the prompt of `largesse lisp` in a pseudo-terminal, which `script` (util-linux) makes.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// Types `input` into the prompt, all of it at once, and returns what the terminal shows.
fn typed(input: &str) -> String {
    let lisp = env!("CARGO_BIN_EXE_largesse-lisp");
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", lisp, "/dev/null"]);
    command.env("HOME", env!("CARGO_TARGET_TMPDIR")).env_remove("XDG_STATE_HOME").env("TERM", "xterm");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn text_typed_ahead_is_evaluated() {
    let input: String = (1..=5).map(|number| format!("(list 'line (* {number} 111))\n")).collect();
    let shown = typed(&format!("{input}(exit 0)\n"));
    for number in 1..=5 {
        assert!(shown.contains(&format!("(line {})", number * 111)), "{number}: {shown}");
    }
}

#[test]
fn text_typed_during_an_evaluation_is_evaluated() {
    let shown = typed("(unix:usleep 300000)\n(list 'one\n 'two)\n(list 'three (+ 1 2))\n(exit 0)\n");
    assert!(shown.contains("(one two)") && shown.contains("(three 3)"), "{shown}");
}

#[test]
fn commands_of_the_prompt_work() {
    let shown = typed(":help car\n:inspect '(11 22)\nq\n:bt\n:quit\n");
    assert!(shown.contains("returns the first element"), "{shown}");
    assert!(shown.contains("0 0: 11"), "{shown}");
}
