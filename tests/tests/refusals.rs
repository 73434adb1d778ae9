//! Checks that wrong settings and missing resources cause a clear message, and that the program loses nothing.

use largesse_tests::{Exit, Ran, Run, Stage, large_pages_are_available, skipped, users};
use std::path::PathBuf;

/// Returns a stage and the program that prints how many of its blocks are from the library's heap.
fn stage() -> Option<(Stage, PathBuf)> {
    let stage = Stage::new();
    let program = stage.compiled("blocks.c", &["-ldl"])?;
    Some((stage, program))
}

#[track_caller]
fn check(ran: &Ran, exit: Exit, stdout: &str) {
    assert_eq!((ran.exit, ran.stdout.as_str()), (exit, stdout), "{ran:#?}");
}

#[test]
fn wrong_setting_stops_a_preloaded_program_before_it_starts() {
    let Some((stage, program)) = stage() else { return };
    for (name, value, words) in [
        (
            "LARGESSE_PAGES",
            "4K",
            "LARGESSE_PAGES=4K is not understood; it accepts auto, thp, hugetlb, hugetlb-1g, 64k, 4k",
        ),
        ("LARGESSE_MIN_KB", "-1", "LARGESSE_MIN_KB=-1 is not a size"),
        ("LARGESSE_MIN_KB", "99999999999999999999", "above the most, 1P"),
        ("LARGESSE_MAX_KB", "0", "LARGESSE_MAX_KB=0 is 0 KiB without a unit, and the least is 64K"),
        ("LARGESSE_HEADER", "47", "a multiple of 16"),
        ("LARGESSE_CHILDREN", "maybe", "on, off"),
        ("LARGESSE_NODE", "left", "interleave, first-touch"),
        ("LARGESSE_LOCK", "yes", "0, 1"),
    ] {
        for user in users() {
            let run = Run::new(&stage, &[&program]).as_user(user).variable("LD_PRELOAD", stage.library());
            let ran = run.variable(name, value).finish();
            check(&ran, Exit::Code(125), "");
            assert!(ran.hints.contains(words), "{ran:#?}");
        }
    }
}

#[test]
fn lower_limit_above_the_upper_one_is_refused() {
    let Some((stage, program)) = stage() else { return };
    let run = Run::new(&stage, &[&program]).variable("LD_PRELOAD", stage.library());
    let ran = run.variable("LARGESSE_MIN_KB", "2048").variable("LARGESSE_MAX_KB", "1024").finish();
    check(&ran, Exit::Code(125), "");
    assert!(ran.hints.contains("LARGESSE_MIN_KB") && ran.hints.contains("LARGESSE_MAX_KB"), "{ran:#?}");
    let ran = Run::new(&stage, &[&program]).under(&["--min-kb", "2048", "--max-kb", "1024"]).finish();
    check(&ran, Exit::Code(2), "");
    assert!(ran.hints.contains("above --max-kb") || ran.stderr.contains("above --max-kb"), "{ran:#?}");
}

#[test]
fn library_preloaded_twice_serves_blocks_once() {
    let Some((stage, program)) = stage() else { return };
    let preload = format!("{0}:{0}", stage.library().display());
    for user in users() {
        let ran = Run::new(&stage, &[&program]).as_user(user).variable("LD_PRELOAD", &preload).finish();
        check(&ran, Exit::Code(42), "2 blocks\n");
        assert_eq!((ran.hints.as_str(), ran.stderr.as_str()), ("", ""), "{ran:#?}");
    }
}

/// If two copies of the library are loaded, the first one leaves all blocks to the second, and says so.
#[test]
fn second_copy_of_the_library_serves_the_blocks() {
    let Some((stage, program)) = stage() else { return };
    let copy = stage.scratch().join("liblargesse.so");
    std::fs::copy(stage.library(), &copy).expect("a copy");
    let preload = format!("{}:{}", stage.library().display(), copy.display());
    let ran = Run::new(&stage, &[&program]).variable("LD_PRELOAD", &preload).finish();
    check(&ran, Exit::Code(42), "0 blocks\n");
    let said = format!("{}{}", ran.hints, ran.stderr);
    assert!(said.contains("liblargesse.so brings its own malloc"), "{ran:#?}");
}

#[test]
fn home_that_cannot_be_written_changes_nothing() {
    let Some((stage, program)) = stage() else { return };
    for home in ["/proc", "/nowhere"] {
        // Far memory has one more block, in which the small ones lie.
        for (options, blocks) in
            [(&[][..], "2 blocks\n"), (&["--local", "32M", "--far", "memory:"], "3 blocks\n")]
        {
            let ran = Run::new(&stage, &[&program]).under(options).variable("HOME", home).finish();
            check(&ran, Exit::Code(42), blocks);
            assert_eq!(ran.stderr, "", "{ran:#?}");
        }
    }
}

#[test]
fn blocks_of_other_allocators_pass_between_threads() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("threads.c", &["-pthread"]) else { return };
    for file in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"] {
        let other = format!("/usr/lib/x86_64-linux-gnu/{file}");
        if !std::path::Path::new(&other).exists() {
            skipped(&format!("no {file}"));
            continue;
        }
        for mode in ["hand", "fork"] {
            let run = Run::new(&stage, &[&program]).arg(mode).variable("LD_PRELOAD", &other);
            check(&run.under(&[]).finish(), Exit::Code(0), "every block was right\n");
        }
    }
}

#[test]
fn transparent_huge_pages_that_a_parent_disabled_are_counted() {
    let Some((stage, program)) = stage() else { return };
    if !large_pages_are_available() {
        return;
    }
    for user in users() {
        // The launched program disables huge pages and then executes itself, which inherits the setting.
        let run = Run::new(&stage, &[&program]).arg("thp-off").arg(&program).as_user(user).under(&[]);
        let ran = run.finish();
        check(&ran, Exit::Code(42), "2 blocks\n");
        assert!(ran.not_granted("thp-disabled-for-process") > 0, "{user:?} {ran:#?}");
    }
}

#[test]
fn empty_pool_is_counted_and_the_program_runs() {
    let Some((stage, program)) = stage() else { return };
    let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    if free.is_ok_and(|free| free.trim() != "0") {
        skipped("the hugetlb pool has free pages");
        return;
    }
    for user in users() {
        let ran = Run::new(&stage, &[&program]).as_user(user).under(&["--pages", "hugetlb"]).finish();
        check(&ran, Exit::Code(42), "2 blocks\n");
        assert!(ran.not_granted("hugetlb-pool-empty") + ran.not_granted("hugetlb-refused") > 0, "{ran:#?}");
        assert_eq!(ran.not_granted("out-of-memory"), 0, "{ran:#?}");
        assert!(ran.hints.contains("pool"), "{ran:#?}");
    }
}

#[test]
fn children_option_decides_whether_children_use_the_heap() {
    let Some((stage, program)) = stage() else { return };
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg("exec").as_user(user);
        check(&run.clone().under(&[]).finish(), Exit::Code(42), "exec2 blocks\n2 blocks\n");
        check(&run.under(&["--children", "off"]).finish(), Exit::Code(42), "exec2 blocks\n0 blocks\n");
    }
}

#[test]
fn exec_keeps_the_settings_of_the_process() {
    let Some((stage, program)) = stage() else { return };
    let script = format!("exec {}", program.display());
    for children in ["on", "off"] {
        let ran = Run::new(&stage, &["sh", "-c", &script]).under(&["--children", children]).finish();
        check(&ran, Exit::Code(42), "2 blocks\n");
        assert_eq!(ran.report["state"], "finished", "{ran:#?}");
        assert_eq!(ran.report["command"][0], program.display().to_string(), "{ran:#?}");
    }
}

#[test]
fn launcher_ends_with_the_programs_status_or_signal() {
    let Some((stage, program)) = stage() else { return };
    for user in users() {
        for signal in
            [libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM, libc::SIGABRT, libc::SIGBUS, libc::SIGPIPE]
        {
            let run = Run::new(&stage, &[&program]).arg("signal").arg(signal.to_string()).as_user(user);
            check(&run.under(&[]).finish(), Exit::Signal(signal), "signal2 blocks\n");
        }
        check(
            &Run::new(&stage, &["sh", "-c", "exit 200"]).as_user(user).under(&[]).finish(),
            Exit::Code(200),
            "",
        );
    }
}

#[test]
fn double_free_stops_the_program_with_a_message() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("twice.c", &[]) else { return };
    for mode in ["free", "realloc", "usable", "inside"] {
        let ran = Run::new(&stage, &[&program]).arg(mode).under(&[]).finish();
        check(&ran, Exit::Signal(libc::SIGABRT), "");
        assert!(ran.hints.contains("not a block of this heap"), "{mode} {ran:#?}");
    }
}
