//! Small blocks are far memory, too, with `--local` and with `--limit`.

use largesse_tests::{
    Exit, Ran, Run, Stage, confined, could_not_confine, events_are_permitted, fault_engines, has_program,
    users,
};
use std::process::Command;

/// Mebibytes of nodes of the program.
const MIB: &str = "20";
/// Resident bytes, in KiB, that the program may have besides far memory: tables, buffers, stacks and code.
const BESIDES_KIB: u64 = 10 << 10;

/// Runs the program with the argument `way` under every fault engine, as every user, at a bound of 4 MiB.
#[track_caller]
fn check(way: &str, mib: &str, seen: impl Fn(&Ran)) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("small_blocks.c", &["-O2", "-pthread"]) else { return };
    let store = stage.store();
    for user in users() {
        for engine in fault_engines(user) {
            let run = Run::new(&stage, &[&program]).arg(way).arg(mib).as_user(user);
            let options = ["--local", "4M", "--far", &store, "--fault-engine", engine];
            let ran = run.under(&options).finish();
            assert!(
                ran.exit == Exit::Code(0) && ran.stdout.ends_with(&format!("{way}: 0 wrong\n")),
                "{way} as {user:?}, {engine}: {ran:#?}"
            );
            assert_eq!(ran.hints, "", "{way} as {user:?}, {engine}");
            seen(&ran);
        }
    }
}

fn resident_kib(ran: &Ran) -> u64 {
    let number = ran.stdout.lines().find_map(|line| line.strip_prefix("resident ")?.parse().ok());
    number.unwrap_or_else(|| panic!("no number of resident bytes in {ran:#?}"))
}

#[test]
fn small_blocks_obey_the_bound() {
    check("list", MIB, |ran| {
        let resident = resident_kib(ran);
        assert!(resident <= (4 << 10) + BESIDES_KIB, "{resident} KiB were resident: {ran:#?}");
        assert!(ran.report["far"]["write_backs"].as_u64() > Some(2000), "{:#}", ran.report);
        assert!(
            ran.report["small_bytes"].as_u64() < Some(12 << 20),
            "Only the thread has slabs: {:#}",
            ran.report
        );
    });
}

#[test]
fn threads_free_each_others_small_blocks() {
    check("threads", "8", |_| ());
}

#[test]
fn children_keep_their_small_blocks() {
    check("fork", "8", |_| ());
}

#[test]
fn system_calls_use_small_blocks() {
    check("calls", "12", |_| ());
}

// Without the wait in `heap_or_wait`, small blocks are not served: the program's first thread finds no heap yet.
#[test]
fn library_may_start_threads_before_the_program() {
    let stage = Stage::new();
    let Some(early) = stage.compiled("early_thread.c", &["-shared", "-fPIC", "-pthread"]) else { return };
    let early = early.to_str().unwrap();
    let options = ["-O2", "-pthread", "-Wl,--no-as-needed", early];
    let Some(program) = stage.compiled("small_blocks.c", &options) else { return };
    let ran =
        Run::new(&stage, &[&program]).arg("list").arg("2").under(&["--limit", "1G"]).finish().succeeded();
    assert!(ran.report["small_bytes"].as_u64() >= Some(2 << 20), "{:#}", ran.report);
}

#[test]
fn switched_off_small_blocks_stay_near() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("small_blocks.c", &["-O2", "-pthread"]) else { return };
    let store = stage.store();
    for options in [&["--small-blocks", "off"][..], &["--min-kb", "64"]] {
        let run = Run::new(&stage, &[&program]).arg("list").arg(MIB);
        let ran = run.under(&[&["--local", "4M", "--far", &store], options].concat()).finish().succeeded();
        assert!(resident_kib(&ran) >= 20 << 10, "{ran:#?}");
        assert_eq!(ran.report["small_bytes"], 0, "{:#}", ran.report);
    }
}

#[test]
fn rules_of_the_malloc_family_hold() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("family.c", &["-Wall"]) else { return };
    let store = stage.store();
    for user in users() {
        let run = Run::new(&stage, &[&program]).as_user(user);
        let ran = run.under(&["--local", "64M", "--far", &store]).finish().succeeded();
        assert_eq!(ran.stdout, "all as it should be\n", "{user:?}");
    }
    if events_are_permitted() {
        let run = Run::new(&stage, &[&program]);
        let ran = run.under(&["--limit", "1G", "--far", &store]).finish().succeeded();
        assert_eq!(ran.stdout, "all as it should be\n", "with --limit");
    }
}

/// Runs a program in a control group with `limit_mib` MiB of memory; `None` if there can be none.
fn in_group(stage: &Stage, limit_mib: u64, words: &[&str]) -> Option<(String, String)> {
    let before = confined(limit_mib, 280);
    let mut command = Command::new(&before[0]);
    command.args(&before[1..]).arg(stage.command()).args(["run", "--limit", "auto", "--far", &stage.store()]);
    command.arg("--").args(words).env("LARGESSE_LIBRARY", stage.library());
    let done = command.current_dir(stage.scratch()).output().expect("a program that starts");
    if could_not_confine(&done) {
        return None;
    }
    assert!(done.status.success(), "{done:#?}");
    let [said, hints] = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(said.contains("killed by the kernel: 0"), "{said}");
    Some((said, hints))
}

#[test]
fn small_blocks_spill_at_a_limit() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("small_blocks.c", &["-O2", "-pthread"]) else { return };
    if !events_are_permitted() {
        return;
    }
    let program = program.display().to_string();
    for (way, mib) in [("list", "100"), ("fork", "64")] {
        let Some((said, hints)) = in_group(&stage, 80, &[&program, way, mib]) else { return };
        assert!(said.contains(&format!("{way}: 0 wrong\n")), "{said}");
        assert_eq!(hints.matches("comes near its limit").count(), 1, "{hints}");
    }
}

#[test]
fn list_of_strings_in_r_obeys_the_bound() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = "x <- as.list(sprintf('%d', 1:200000)); n <- sum(nchar(unlist(x))); \
        x[seq(1, 200000, 7)] <- 'other'; cat(n, sum(nchar(unlist(x))), x[[2]], x[[8]], '\\n')";
    let run = Run::new(&stage, &["Rscript", "--vanilla", "-e", script]);
    let alone = run.finish().succeeded();
    for user in users() {
        let options = ["--local", "32M", "--far", &stage.store()];
        let ran = run.clone().as_user(user).under(&options).finish().succeeded();
        assert_eq!(ran.stdout, alone.stdout, "{user:?}");
        assert!(ran.report["small_bytes"].as_u64() > Some(24 << 20), "{user:?} {:#}", ran.report);
        assert!(ran.report["far"]["write_backs"].as_u64() > Some(0), "{user:?} {:#}", ran.report);
    }
}
