//! What a program does to ranges of memory, when the memory is far.

use largesse_tests::{Exit, Run, Stage, is_root, skipped};
use std::path::PathBuf;

/// Far memory for ordinary users needs `/dev/userfaultfd` or the sysctl.
fn permitted() -> bool {
    let yes = is_root() || std::fs::File::options().read(true).write(true).open("/dev/userfaultfd").is_ok();
    if !yes {
        skipped("userfaultfd is not permitted here");
    }
    yes
}

/// A program that reads a file in one of its ways.
fn reader<'a>(stage: &'a Stage, program: &PathBuf, way: &str) -> Run<'a> {
    let file = stage.scratch().join("input");
    Run::new(stage, &[program]).arg(way).arg(file).arg("48").arg("1")
}

/// io_uring may be switched off, and a file system may have no direct input.
fn is_offered(stage: &Stage, program: &PathBuf, way: &str) -> bool {
    let stock = reader(stage, program, way).finish();
    if stock.exit == Exit::Code(3) {
        skipped(&format!("{way}: {}", stock.stdout.trim()));
        return false;
    }
    assert_eq!(stock.stdout, "0 wrong\n", "{stock:#?}");
    true
}

/// Nothing of what a device or the kernel writes to far memory is lost while pages come and go.
#[test]
fn what_is_read_into_far_memory_arrives() {
    if !permitted() {
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("direct.c", &["-O2", "-lpthread"]) else { return };
    for way in ["pread", "uring", "fixed", "plain"] {
        if !is_offered(&stage, &program, way) {
            continue;
        }
        for size in ["4K", "auto"] {
            let options = ["--local=12M", "--far=memory:", "--page-size", size];
            let ran = reader(&stage, &program, way).under(&options).finish().succeeded();
            assert_eq!(ran.stdout, "0 wrong\n", "{way} {size}");
            let far = &ran.report["far"];
            assert!(far["evictions"].as_u64().unwrap() > 10_000, "{way} {size}: {far:#}");
            // Pages that stay registered with io_uring are in the way for long.
            assert!(way != "fixed" || far["pinned"].as_u64().unwrap() > 0, "{size}: {far:#}");
        }
    }
}

/// Such a kernel cannot tell the pages that a device writes to: nobody may ask a device to.
#[test]
fn before_linux_6_8_direct_input_is_refused_and_all_else_works() {
    if !permitted() {
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("direct.c", &["-O2", "-lpthread"]) else { return };
    let Some(older) = stage.compiled("older.c", &["-O2"]) else { return };
    let options = ["--local=12M", "--far=memory:"];
    for (way, exit, said) in [
        ("pread", 3, "open: Invalid argument\n"),
        ("uring", 3, "io_uring_setup: Function not implemented\n"),
        ("plain", 0, "0 wrong\n"),
    ] {
        if !is_offered(&stage, &program, way) {
            continue;
        }
        let ran = reader(&stage, &program, way).started_by(&[&older]).under(&options).finish();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(exit), said), "{way}: {ran:#?}");
        assert_eq!(ran.not_granted("direct-input-refused"), 1, "{way}: {:#}", ran.report);
    }
}
