//! Runs programs with far memory in a control group whose limit is a quarter of their data. There is no swap, so that
//! the data cannot be resident.

use largesse_tests::{Stage, User, confined, could_not_confine, has_program, is_root, workspace};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const LOCAL_MIB: u64 = 32;
const LIMIT_MIB: u64 = LOCAL_MIB + 256;
const DATA_MIB: u64 = 4 * LIMIT_MIB;

/// Runs the R script, whose data are four times the limit, with the words `before` in front of its command.
fn script(stage: &Stage, before: &[String], cores: &str) -> Output {
    let script = stage.path("larger.R").display().to_string();
    let after = ["Rscript", "--vanilla", &script, &DATA_MIB.to_string(), cores].map(str::to_owned);
    let words: Vec<&String> = before.iter().chain(&after).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("LARGESSE_LIBRARY", stage.library()).current_dir(stage.scratch());
    command.output().expect("a program that starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn forked_children_over_four_times_the_limit_give_the_same_answer() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let examples = workspace().join("docs/examples");
    // The copy is in a folder that all users may read.
    std::fs::copy(examples.join("larger.R"), stage.path("larger.R")).expect("an example");
    let store = stage.store();
    let local = format!("{LOCAL_MIB}M");
    let far = ["--local", &local, "--far", &store, "--page-size", "256K", "--"].map(str::to_owned);
    let confined = confined(LIMIT_MIB, 300);
    let largesse = [stage.command().display().to_string(), "run".into()];

    let answer = text(&script(&stage, &[], "1").stdout);
    assert!(answer.starts_with(&format!("{DATA_MIB} MiB: ")), "{answer}");
    // This test takes long, so that it does not run the engine that only root may use. Other tests do.
    let user = if is_root() { User::Unprivileged } else { User::Current };
    let user_words = user.prefix().iter().map(|&word| word.to_owned());
    let before = confined.iter().cloned().chain(user_words).chain(largesse.iter().chain(&far).cloned());
    let done = script(&stage, &before.collect::<Vec<_>>(), "2");
    if could_not_confine(&done) {
        return;
    }
    let said = text(&done.stdout);
    assert!(done.status.success() && said.starts_with(&answer), "{answer}{done:#?}");
    let peak = said.split("at most in use ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(peak.is_some_and(|mib| (LOCAL_MIB..=LIMIT_MIB).contains(&mib)), "{said}");
    // Without far memory the limit ends the same script, which shows that the limit is effective.
    let killed = script(&stage, &confined, "1");
    assert!(!killed.status.success() && !text(&killed.stdout).starts_with(&answer), "{killed:#?}");
}

#[test]
fn the_report_needs_little_memory_beside_far_memory() {
    const LOCAL_MIB: u64 = 32;
    // The program's own memory and Largesse's take 8 MiB of it. A time line that is collected whole takes as much again.
    const LIMIT_MIB: u64 = LOCAL_MIB + 11;
    let stage = Stage::new();
    let Some(program) = stage.compiled("passes.c", &["-O2"]) else { return };
    let report = stage.path("report.json");
    let mut words = confined(LIMIT_MIB, 120);
    words.extend([&stage.command(), Path::new("run")].map(|path| path.display().to_string()));
    words.extend(["--local", &format!("{LOCAL_MIB}M"), "--far", &stage.store()].map(str::to_owned));
    words.extend(
        ["--report", &report.display().to_string(), "--", &program.display().to_string()].map(str::to_owned),
    );
    words.extend(["128", "40"].map(str::to_owned));
    let mut command = Command::new(&words[0]);
    let done = command.args(&words[1..]).env("LARGESSE_LIBRARY", stage.library()).output().expect("a shell");
    if could_not_confine(&done) {
        return;
    }
    assert!(done.status.success(), "{done:#?}");
    let written = std::fs::read_to_string(report).expect("a report");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let rows = written["timeline"].as_array().map_or(0, Vec::len);
    assert!(rows >= 100, "{rows} intervals are few");
}
