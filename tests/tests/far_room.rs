//! Checks how much memory a process needs in addition to `--local`: its own memory that is not far, 8 MiB, and 32
//! bytes for each far page of 4 KiB. In a control group with a limit of that size, nothing is killed.

use largesse_tests::{Stage, confined, could_not_confine, has_program};
use std::process::{Command, Output};

const DATA_MIB: u64 = 256;
const LOCAL_MIB: u64 = 64;
/// MiB for buffers, tables of fixed size, threads and the library.
const FIXED_MIB: u64 = 8;
/// MiB for the page table of far memory: 24 bytes for each page, and 8 bytes of the kernel's own page table.
const TABLES_MIB: u64 = DATA_MIB * 32 / 4096;

/// Runs a command in a control group with `limit_mib` MiB of memory and no swap.
fn confine(stage: &Stage, limit_mib: u64, words: &[String]) -> Output {
    let before = confined(limit_mib, 120);
    let mut command = Command::new(&before[0]);
    command.args(&before[1..]).args(words).env("LARGESSE_LIBRARY", stage.library());
    command.current_dir(stage.scratch()).output().expect("a program that starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the number of MiB that follows `label` in `text`.
fn mib(text: &str, label: &str) -> u64 {
    let number = text.split(label).nth(1).and_then(|rest| rest.trim_start().split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no {label} in {text}"))
}

/// Runs a program that writes [`DATA_MIB`] of data: alone, and with far memory in the smallest control group that must
/// suffice.
fn check(stage: &Stage, program: &[String]) {
    let alone = confine(stage, 4 * DATA_MIB, program);
    if could_not_confine(&alone) {
        return;
    }
    let said = text(&alone.stdout);
    let answer = said.lines().next().unwrap_or_default();
    assert!(alone.status.success() && !answer.is_empty(), "{alone:#?}");
    let own = mib(&said, "at most in use").saturating_sub(mib(&said, "page cache") + DATA_MIB);

    let limit = LOCAL_MIB + own + FIXED_MIB + TABLES_MIB;
    for engine in ["events", "thread"] {
        let (local, store) = (format!("{LOCAL_MIB}M"), stage.store());
        let command = stage.command().display().to_string();
        let options = [&command, "run", "--local", &local, "--far", &store, "--fault-engine", engine, "--"];
        let words: Vec<String> =
            options.iter().map(|&it| it.to_owned()).chain(program.iter().cloned()).collect();
        let done = confine(stage, limit, &words);
        let far = text(&done.stdout);
        assert!(
            done.status.success() && far.starts_with(answer),
            "{engine}: {program:?} needs {own} MiB, and ended in {limit} MiB with {}: {far}{}",
            done.status,
            text(&done.stderr)
        );
        // The limit is effective: most of the data were not resident.
        assert!(mib(&far, "at most in use") <= limit && limit < DATA_MIB, "{far}");
    }
}

#[test]
fn c_program_runs_in_the_documented_room() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("passes.c", &["-O2"]) else { return };
    check(&stage, &[program.display().to_string(), DATA_MIB.to_string()]);
}

#[test]
fn r_runs_in_the_documented_room() {
    if has_program("Rscript", &["--version"]) {
        let script = format!("x <- rep_len(1.5, {DATA_MIB} * 2^17); cat(sum(x) + sum(x), '\\n')");
        check(&Stage::new(), &["Rscript", "--vanilla", "-e", &script].map(str::to_owned));
    }
}

#[test]
fn python_runs_in_the_documented_room() {
    if has_program("python3", &["--version"]) {
        let script = format!(
            "data, part = bytearray({DATA_MIB} << 20), bytes(range(256)) * 4096\n\
             for at in range(0, len(data), len(part)): data[at:at + len(part)] = part\n\
             print(sum(data[at] for _ in range(2) for at in range(0, len(data), 4095)))"
        );
        check(&Stage::new(), &["python3", "-c", &script].map(str::to_owned));
    }
}
