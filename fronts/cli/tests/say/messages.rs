//! Tests that names from outside reach a message in one line and without control characters.

use std::process::{Command, Output};

/// A name whose second line a terminal would obey.
const NAME: &str = "one\nTWO\x1b[31m";
/// The name as messages show it.
const SHOWN: &str = "one\\nTWO\\u001b[31m";

fn ended(words: &[&str], variable: Option<(&str, &str)>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
        command.env_remove(name);
    }
    command.args(words).envs(variable).output().unwrap()
}

/// Checks the message of a command, whose words have `NAME` for each `@`.
#[track_caller]
fn escaped(words: &str, variable: Option<(&str, &str)>) {
    let given: Vec<String> = words.split(' ').map(|word| word.replace('@', NAME)).collect();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let output = ended(&given, variable);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{words}: {said}");
    assert!(said.contains(SHOWN), "{words}: {said}");
    assert!(!said.contains(NAME) && !said.contains('\x1b'), "{words}: {said}");
}

#[test]
fn names_in_messages_are_escaped() {
    for words in [
        "@",
        "run --@ true",
        "run --report /nowhere/@ true",
        "run --pages @ true",
        "run --local @ true",
        "run --lock=@ true",
        "run @",
        "run /nowhere/@",
        "status @",
        "report @",
        "report --@",
        "doctor --root @",
        "machine --memory @",
        "machine --seconds @",
        "machine --svg /nowhere/@",
        "pin --cpus @ true",
        "pin --node @ true",
        "pin --cpus 0 @",
        "pin --threads @ true",
        "agent --store @",
    ] {
        escaped(words, None);
    }
    escaped("run true", Some(("LARGESSE_LIBRARY", NAME)));
    escaped("run true", Some(("LARGESSE_PAGES", NAME)));
}

#[test]
fn blank_values_are_quoted() {
    for (words, want) in [
        (&["run", "--local", " ", "true"][..], "--local ' ' is not a size"),
        (&["run", "--pages", "", "true"], "--pages '' is not understood"),
        (&["run", "--local", "4 apples", "true"], "--local '4 apples' is not a size"),
        (&["machine", "--memory", " "], "--memory ' ' is not a size"),
        (&["run", " "], "' ': not found in PATH"),
    ] {
        let said = String::from_utf8_lossy(&ended(words, None).stderr).into_owned();
        assert!(said.contains(want), "{words:?}: {said}");
    }
    let said = ended(&["run", "true"], Some(("LARGESSE_LOCAL", " "))).stderr;
    assert!(String::from_utf8_lossy(&said).contains("LARGESSE_LOCAL=' ' is not a size"));
}

/// Runs a command in a terminal with this locale, and returns all that it prints.
fn in_terminal(words: &str, locale: &str) -> Option<String> {
    let command = format!("{} {words}", env!("CARGO_BIN_EXE_largesse"));
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &command, "/dev/null"]).env("LC_ALL", locale).env("TERM", "xterm");
    terminal.stdin(std::process::Stdio::null());
    let output = terminal.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn locale_without_unicode_gets_ascii() {
    for words in [
        "run --local 4M --page-size 5K true",
        "run --local 4M --far mpi: true",
        "run --help",
        "machine --help",
        "doctor",
        "machine --latency --memory 1M --seconds 1",
    ] {
        let Some(shown) = in_terminal(words, "C") else {
            println!("skipped: no script (apt-get install bsdutils)");
            return;
        };
        // The measurement shows its progress, too.
        assert!(
            !shown.is_empty() && shown.contains(" steps") == words.contains("--latency"),
            "{words}: {shown}"
        );
        let other: Vec<&str> = shown.lines().filter(|line| !line.is_ascii()).collect();
        assert!(other.is_empty(), "{words}: {other:#?}");
    }
    assert!(in_terminal("run --local 4M --far mpi: true", "C.UTF-8").is_some_and(|it| it.contains('…')));
}
