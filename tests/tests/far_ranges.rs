//! Tests calls on ranges of far memory: direct input, `mmap`, `mremap`, `madvise`, `mprotect` and `mlock`.

use largesse_tests::{Exit, Run, Stage, User, events_are_permitted, fault_engines, skipped, users};
use std::path::PathBuf;

/// Returns a run of the program that reads a file in this way (such as io_uring or direct input).
fn reader<'a>(stage: &'a Stage, program: &PathBuf, way: &str) -> Run<'a> {
    let file = stage.scratch().join("input");
    let mib = if ["own", "other", "stranger"].contains(&way) { "24" } else { "48" };
    Run::new(stage, &[program]).arg(way).arg(file).arg(mib).arg("1")
}

/// Returns whether the program can read in this way without Largesse: io_uring may be switched off, and a file system
/// may have no direct input.
fn is_offered(stage: &Stage, program: &PathBuf, way: &str) -> bool {
    let stock = reader(stage, program, way).finish();
    if stock.exit == Exit::Code(3) {
        skipped(&format!("{way}: {}", stock.stdout.trim()));
        return false;
    }
    assert_eq!(stock.stdout, "0 wrong\n", "{stock:#?}");
    true
}

/// Returns whether the kernel waits for far pages in system calls under this fault engine. If not, io_uring and other
/// processes cannot write to far pages, as documented.
fn kernel_waits(user: User, engine: &str) -> bool {
    user == User::Current && engine == "auto" && events_are_permitted()
}

/// Data that a device or the kernel writes to far memory are not lost while pages are filled and evicted.
#[test]
fn input_into_far_memory_arrives() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("direct.c", &["-O2", "-lpthread"]) else { return };
    for user in users() {
        for &engine in fault_engines(user) {
            for way in ["pread", "plain", "own", "uring", "fixed", "other", "stranger"] {
                let reaches = kernel_waits(user, engine) || ["pread", "plain", "own"].contains(&way);
                if !reaches || !is_offered(&stage, &program, way) {
                    continue;
                }
                for size in ["4K", "auto"] {
                    let options =
                        ["--local=12M", "--far=memory:", "--page-size", size, "--fault-engine", engine];
                    let ran =
                        reader(&stage, &program, way).as_user(user).under(&options).finish().succeeded();
                    assert_eq!(ran.stdout, "0 wrong\n", "{user:?} {engine} {way} {size}");
                    let far = &ran.report["far"];
                    let evictions = far["evictions"].as_u64().unwrap();
                    assert!(evictions > 10_000, "{user:?} {engine} {way} {size}: {far:#}");
                    // Pages that are registered with io_uring are pinned for long, so that some evictions meet them.
                    assert!(way != "fixed" || far["pinned"].as_u64().unwrap() > 0, "{size}: {far:#}");
                }
            }
        }
    }
}

/// Before Linux 6.8 the kernel does not tell which pages a device writes to, so that far memory refuses direct input
/// there. Other input arrives, because pages to which the kernel refers for `process_vm_writev` are not evicted.
#[test]
fn direct_input_is_refused_before_linux_6_8() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("direct.c", &["-O2", "-lpthread"]) else { return };
    let Some(older) = stage.compiled("older.c", &["-O2"]) else { return };
    for user in users() {
        for &engine in fault_engines(user) {
            for (way, exit, said) in [
                ("pread", 3, "open: Invalid argument\n"),
                ("uring", 3, "io_uring_setup: Function not implemented\n"),
                ("plain", 0, "0 wrong\n"),
                ("own", 0, "0 wrong\n"),
                ("other", 0, "0 wrong\n"),
                ("stranger", 0, "0 wrong\n"),
            ] {
                let reaches = kernel_waits(user, engine) || !["other", "stranger"].contains(&way);
                if !reaches || !is_offered(&stage, &program, way) {
                    continue;
                }
                let options = ["--local=12M", "--far=memory:", "--fault-engine", engine];
                let run = reader(&stage, &program, way).started_by(&[&older]).as_user(user);
                let ran = run.under(&options).finish();
                let got = (ran.exit, ran.stdout.as_str());
                assert_eq!(got, (Exit::Code(exit), said), "{user:?} {engine} {way}: {ran:#?}");
                assert_eq!(ran.not_granted("direct-input-refused"), 1, "{way}: {:#}", ran.report);
                // Most of what another process writes meets an eviction.
                let pinned = ran.report["far"]["pinned"].as_u64().unwrap();
                assert!(way != "stranger" || pinned > 0, "{engine}: {:#}", ran.report);
            }
        }
    }
}

/// Far memory can be mapped, moved, discarded, protected and replaced like any other memory, with the same signals.
#[test]
fn calls_on_far_ranges_have_their_usual_effects() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("ranges.c", &["-O2"]) else { return };
    let file = stage.store();
    let (root, user) = (User::Current, User::Unprivileged);
    for (user, words, store, size, engine) in [
        (root, &[][..], "memory:", "4K", "auto"),
        (root, &["heap"], "memory:", "auto", "auto"),
        (root, &[], &file, "64K", "auto"),
        (root, &[], "memory:", "auto", "user-mode"),
        (root, &["heap"], "memory:", "4K", "thread"),
        (root, &[], &file, "auto", "thread"),
        (user, &["heap"], &file, "auto", "auto"),
        (user, &[], "memory:", "auto", "thread"),
    ] {
        if !users().contains(&user) {
            continue;
        }
        let stock = words.iter().fold(Run::new(&stage, &[&program]), |run, word| run.arg(word));
        let stock = stock.as_user(user);
        let native = stock.finish().succeeded();
        let options = ["--local=8M", "--far", store, "--page-size", size, "--fault-engine", engine];
        let far = stock.under(&options).finish().succeeded();
        assert_eq!(far.stdout, native.stdout, "{user:?} {store} {size} {engine}");
        assert_eq!(far.stderr, "", "{user:?} {store} {size} {engine}");
        let report = &far.report["far"];
        assert!(
            report["evictions"].as_u64().unwrap() > 10_000,
            "{user:?} {store} {size} {engine}: {report:#}"
        );
        // These mappings are not far: two reservations of a tebibyte, and a file in the middle of far memory.
        assert_eq!(far.not_granted("mapping-near"), 3, "{:#}", far.report);
        let regions = report["regions"].as_array().unwrap();
        let mapping = regions.iter().find(|region| region["region"] == "mapping").unwrap();
        assert_eq!(mapping["mapped_bytes"], 0, "something was not given back: {mapping:#}");
        assert_eq!(mapping["stored_bytes"], 0, "something was not given back: {mapping:#}");
    }
}

/// Far memory refuses the calls that it cannot carry out. It returns the errors of a kernel that does not support
/// these calls, and counts the refusals.
#[test]
fn locking_far_memory_or_hiding_it_from_children_is_refused() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("unlocked.c", &["-O2"]) else { return };
    for user in users() {
        let run = Run::new(&stage, &[&program]).as_user(user);
        let ran = run.under(&["--local=8M", "--far=memory:"]).finish().succeeded();
        assert_eq!(
            ran.stdout,
            "mlock: Cannot allocate memory\nmlock2: Cannot allocate memory\nmlockall: Cannot allocate memory\n\
             near: Success\nMADV_DONTFORK: Invalid argument\nMREMAP_DONTUNMAP: Invalid argument\n0 wrong\n",
            "{user:?}"
        );
        assert_eq!((ran.not_granted("far-not-locked"), ran.not_granted("far-advice")), (3, 2), "{ran:#?}");
    }
}
