//! Checks that a refused request is explained: one line on standard error names the limit, and the report counts it.

use largesse_tests::{Run, Stage, is_root, skipped, users};

/// Runs a program that asks for memory until there is none, under this limit in the words of `prlimit`.
#[track_caller]
fn check(limit: &str, options: &[&str], words: &str) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("refused.c", &[]) else { return };
    let store = stage.store();
    let options: Vec<_> =
        options.iter().map(|&option| if option == "STORE" { &store } else { option }).collect();
    for user in users() {
        let run = Run::new(&stage, &[&program]).as_user(user).started_by(&["prlimit", limit, "--"]);
        let ran = run.under(&options).finish().succeeded();
        assert!(ran.stdout.starts_with("NULL after ") && ran.stdout.contains("ENOMEM"), "{limit} {ran:#?}");
        let lines: Vec<_> =
            ran.hints.lines().filter(|line| line.contains("no memory for 20971520 bytes")).collect();
        assert_eq!(lines.len(), 1, "the first refusal is explained, and only it: {limit} {user:?} {ran:#?}");
        assert!(lines[0].contains(words), "the line names the limit: {limit} {user:?} {ran:#?}");
        let counted = ran.not_granted("out-of-memory") + ran.not_granted("range-full");
        assert!(counted > 0, "the refusal is counted: {limit} {user:?} {ran:#?}");
    }
}

#[test]
fn limit_on_data_is_named() {
    check("--data=209715200", &[], "ulimit -d is 204800 KiB: raise it");
    check("--data=209715200", &["--local", "8M", "--far", "STORE"], "ulimit -d is 204800 KiB: raise it");
}

#[test]
fn limit_on_addresses_is_named() {
    check("--as=419430400", &[], "ulimit -v is 409600 KiB: raise it");
    check("--as=419430400", &["--local", "8M", "--far", "STORE"], "ulimit -v is 409600 KiB: raise it");
}

#[test]
fn limit_on_files_is_named() {
    check("--fsize=41943040", &["--local", "8M", "--far", "STORE"], "ulimit -f limits files to 40960 KiB");
}

/// The library's tables count towards the limit on data, too. If they were not small, the program would get fewer
/// blocks.
#[test]
fn program_gets_as_many_blocks_as_without_the_library() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("refused.c", &[]) else { return };
    for megabytes in [100_u64, 400] {
        let data = format!("--data={}", megabytes << 20);
        let run = Run::new(&stage, &[&program]).started_by(&["prlimit", &data, "--"]);
        let blocks = |ran: largesse_tests::Ran| -> u64 {
            ran.stdout.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a number of blocks")
        };
        let (without, with) = (blocks(run.clone().finish()), blocks(run.under(&[]).finish()));
        assert!(with + 1 >= without, "{data}: {with} blocks with the library, {without} without it");
    }
}

#[test]
fn program_runs_without_proc() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("refused.c", &[]) else { return };
    let hidden = |words: &str| format!("mount --bind {} /proc && {words}", stage.scratch().display());
    let possible = std::process::Command::new("unshare").args(["-m", "sh", "-c", &hidden("true")]).status();
    if !is_root() || !possible.is_ok_and(|status| status.success()) {
        skipped("/proc cannot be hidden here");
        return;
    }
    // The launcher finds the library in its own folder.
    let script = hidden(&format!(
        "env -u LARGESSE_LIBRARY {} run -- {}",
        stage.command().display(),
        program.display()
    ));
    let ran = Run::new(&stage, &["unshare", "-m", "sh", "-c", &script]).finish().succeeded();
    assert!(ran.stdout.contains("after"), "{ran:#?}");
    assert!(!ran.hints.contains("not found"), "{ran:#?}");
}
