//! Programs whose data do not fit into the local memory they are given.

use largesse_tests::{
    Exit, Run, Stage, User, anonymous_kib, has_program, is_root, skipped, store_in, users, wait_until,
};
use serde_json::Value;
use std::ffi::OsString;
use std::process::Command;

#[test]
fn threads_read_every_word_as_it_was_written() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let stores = stage.stores();
    for (user, store) in users().into_iter().flat_map(|user| stores.iter().map(move |store| (user, store))) {
        for size in ["4K", "64K", "auto"] {
            let options = ["--local=16M", "--far", store, "--page-size", size];
            let ran = Run::new(&stage, &[&program])
                .arg("64")
                .arg("4")
                .arg("5000")
                .as_user(user)
                .under(&options)
                .finish()
                .succeeded();
            assert_eq!(ran.stdout, "8388608 words, 0 wrong\n", "{user:?} {store} {size}");
            let far = &ran.report["far"];
            assert!(far["evictions"].as_u64().unwrap() > 5_000, "nothing left: {far:#}");
            assert_eq!(far["over_limit"], 0, "{far:#}");
        }
    }
}

// Seen to fail without room for the data: the library's threads do not start, or their stacks overflow.
#[test]
fn thread_local_data_leave_room_on_the_librarys_stacks() {
    let stage = Stage::new();
    for kib in [120, 4096] {
        let options = ["-lpthread", "-O2", &format!("-DTHREAD_LOCAL={kib}")];
        let Some(program) = stage.compiled("paged.c", &options) else { return };
        for store in stage.stores() {
            let options = ["--local=16M", "--far", &store];
            let run = Run::new(&stage, &[&program]).arg("48").arg("2").arg("1000");
            let ran = run.under(&options).finish().succeeded();
            assert_eq!(ran.stdout, "6291456 words, 0 wrong\n", "{kib} KiB, {store}");
            let far = &ran.report["far"];
            assert!(far["evictions"].as_u64().unwrap() > 5_000, "{kib} KiB, {store}: {far:#}");
        }
    }
}

#[test]
fn local_percentage_keeps_a_share_of_mapped_memory_resident() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let options = ["--local=50%", "--far=memory:"];
    let ran =
        Run::new(&stage, &[&program]).arg("64").arg("2").arg("10000").under(&options).finish().succeeded();
    let far = &ran.report["far"];
    let word = |name: &str| far[name].as_u64().unwrap();
    assert!(word("zero_fills") >= 16384 && word("fills") > 0, "{far:#}");
    let half = word("mapped_bytes") / 2;
    assert!(word("local_bytes").abs_diff(half) < 64 << 10 && word("resident_bytes") <= half, "{far:#}");
}

/// The initialised and the zeroed arrays of a program are neighbours, and transfer units cross the boundary between
/// them. The program is compiled with and without position-independent code.
#[test]
fn static_arrays_larger_than_local_memory_keep_their_contents() {
    let stage = Stage::new();
    let ways: [&[&str]; 3] =
        [&["-fPIE", "-pie"], &["-fno-pie", "-no-pie"], &["-fno-pie", "-no-pie", "-mcmodel=medium"]];
    for how in ways {
        let Some(program) = stage.compiled("statics.c", how) else { return };
        let ordinary = users().into_iter().skip(1).map(|user| (user, "64K"));
        for (user, size) in
            ["4K", "256K", "auto"].map(|size| (User::Current, size)).into_iter().chain(ordinary)
        {
            let options = ["--local=8M", "--far=memory:", "--page-size", size];
            let ran = Run::new(&stage, &[&program]).as_user(user).under(&options).finish().succeeded();
            assert_eq!(ran.stdout, "0 wrong\n", "{how:?} {size}");
            assert!(ran.report["far"]["evictions"].as_u64().unwrap() > 10_000, "{how:?} {size}: {ran:#?}");
        }
    }
}

/// The heap, the mappings and each piece of the static data have counts of their own, whose sums are the totals.
#[test]
fn report_counts_faults_by_segment() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("statics.c", &[]) else { return };
    let ran = Run::new(&stage, &[&program]).under(&["--local=8M", "--far=memory:"]).finish().succeeded();
    let far = &ran.report["far"];
    let regions = far["regions"].as_array().unwrap();
    let named = |name: &str| regions.iter().filter(|region| region["region"] == name).count();
    assert_eq!((named("heap"), named("mapping"), named("static")), (1, 1, regions.len() - 2), "{far:#}");
    let heap = regions.iter().find(|region| region["region"] == "heap").unwrap();
    assert!(regions.len() >= 3 && heap["mapped_bytes"] == 0, "{far:#}");
    for name in ["faults", "fills", "evictions", "write_backs", "stored_bytes", "resident_bytes"] {
        let sum: u64 = regions.iter().map(|region| region[name].as_u64().unwrap()).sum();
        assert!(sum > 0 && sum == far[name].as_u64().unwrap(), "{name}: {far:#}");
    }
}

/// Faults of a single thread are handled on the faulting CPU if the library measures that this is faster, and also for
/// the time of that measurement, which other work on the machine can end early. Faults of many threads are handled on
/// another CPU.
#[test]
fn faults_of_one_thread_are_handled_on_its_cpu_and_those_of_many_are_not() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for (user, threads) in users().into_iter().flat_map(|user| ["1", "4"].map(|threads| (user, threads))) {
        let options = ["--local=16M", "--far=memory:", "--page-size=4K"];
        let run = Run::new(&stage, &[&program]).arg("64").arg(threads).arg("3").as_user(user);
        let ran = run.under(&options).finish().succeeded();
        assert_eq!(ran.stdout, "0 wrong\n", "{user:?} {threads}");
        let word = |name: &str| ran.report["far"][name].as_u64().unwrap();
        let (beside, all) = (word("beside"), word("faults"));
        let as_wanted = if threads == "1" { beside > 0 } else { beside < all / 8 };
        assert!(as_wanted, "{user:?}, {threads} threads: {beside} of {all}");
    }
}

/// The time line in the report has every fault, and a picture of it is in the folder of the report.
#[test]
fn report_has_a_time_line_and_a_picture() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let report = stage.scratch().join("over time.json");
    let command = [stage.command().into(), "run".into(), "--report".into(), report.clone().into_os_string()];
    let far = ["--local=16M", "--far=memory:", "--page-size=64K", "--"].map(Into::into);
    let words: Vec<OsString> = command.into_iter().chain(far).chain([program.into_os_string()]).collect();
    let _ = Run::new(&stage, &words).arg("64").arg("2").arg("200000").finish().succeeded();
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let intervals = report["timeline"].as_array().unwrap();
    assert!((2..=512).contains(&intervals.len()), "{}", intervals.len());
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    for name in ["faults", "fills", "evictions", "write_backs", "bytes_in", "wait_ns"] {
        let sum: u64 = intervals.iter().map(|row| number(row, name)).sum();
        let all = number(&report["far"], name);
        // The first sample is taken after the first faults, which it does not count.
        assert!(sum > 0 && sum <= all && all - sum < all / 10, "{name}: {sum} of {all}");
    }
    let last = intervals.last().unwrap();
    assert_eq!((number(last, "set_bytes"), number(last, "local_bytes")), (64 << 10, 16 << 20));
    assert!(intervals.iter().any(|row| number(row, "resident_bytes") > 12 << 20));
    let picture = std::fs::read_to_string(stage.scratch().join("over time.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("working set"), "{picture}");
    let mut command = Command::new(stage.command());
    command.args(["report", "over time.json", "--svg", "-"]).current_dir(stage.scratch());
    let later = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&later.stdout), picture, "drawn later: {later:?}");
}

#[test]
fn killed_program_leaves_no_store_file() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let folder = stage.scratch().join("store");
    std::fs::create_dir(&folder).unwrap();
    let store = store_in(&folder);
    let run = Run::new(&stage, &[&program]).arg("64").arg("1").arg("1000000000");
    let mut child = run.under(&["--local=16M", "--far", &store]).start();
    // Once local memory is full, pages are evicted to the store.
    let is_full = || anonymous_kib(child.id()) > 12 << 10;
    wait_until("the program has filled its local memory", std::time::Duration::from_secs(60), is_full);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn unusable_store_is_refused_before_the_program_starts() {
    let stage = Stage::new();
    for (store, words) in [("file:/dev/shm/pages", "tmpfs"), ("file:/nowhere/pages", "/nowhere/pages")] {
        let ran = Run::new(&stage, &["echo", "started"]).under(&["--local=16M", "--far", store]).finish();
        assert_eq!(ran.exit, Exit::Code(125), "{ran:#?}");
        assert_eq!(ran.stdout, "");
        let said = format!("{}{}", ran.hints, ran.stderr);
        assert!(said.contains("no far memory") && said.contains(words), "{ran:#?}");
    }
}

#[test]
fn user_without_permission_is_told_what_to_do() {
    if !is_root() {
        skipped("only root can become another user");
        return;
    }
    let stage = Stage::new();
    let ran = Run::new(&stage, &["echo", "started"])
        .as_user(User::Unprivileged)
        .under(&["--local=16M", "--far=memory:", "--fault-engine=events"])
        .finish();
    if ran.exit == Exit::Code(0) {
        skipped("every user may have system calls wait for far pages here");
        return;
    }
    assert_eq!(ran.exit, Exit::Code(125), "{ran:#?}");
    let said = format!("{}{}", ran.hints, ran.stderr);
    assert!(said.contains("userfaultfd") && said.contains("largesse doctor"), "{ran:#?}");
}

#[test]
fn r_script_larger_than_local_memory_gives_the_same_answer() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = "set.seed(1); x <- lapply(1:12, function(i) runif(5e5)); \
        s <- vapply(x, function(v) sum(sort(v) * seq_along(v)), 0); y <- do.call(cbind, x); \
        cat(format(c(s, crossprod(y)[7, 9]), digits = 17), sep = '\\n')";
    let words = ["Rscript", "--vanilla", "-e", script];
    let stock = Run::new(&stage, &words).finish().succeeded();
    for user in users() {
        for options in [&["--local=24M", "--far=memory:"][..], &["--local=30%", "--far=memory:"]] {
            let far = Run::new(&stage, &words).as_user(user).under(options).finish().succeeded();
            assert_eq!(far.stdout, stock.stdout);
        }
    }
}
