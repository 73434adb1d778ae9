//! Checks how far memory reaches a store in a file: many transfers in flight, by io_uring or without it, and past the
//! page cache.
#![expect(clippy::disallowed_methods, reason = "the test asks the kernel about files and io_uring itself")]

use largesse_tests::{Exit, Ran, Run, Stage, Steps, skipped, users};
use serde_json::Value;
use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// Values of the report's counter `mechanism`: transfers by io_uring, or by threads.
const IO_URING: u64 = 1;
const THREADS: u64 = 2;

#[track_caller]
fn check(ran: &Ran, far: &Value, mechanism: u64, refusal: i32) {
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(0), "8388608 words, 0 wrong\n"), "{ran:#?}");
    assert_eq!((&far["mechanism"], &far["refusal"]), (&mechanism.into(), &refusal.into()), "{far:#}");
    let word = |name: &str| far[name].as_u64().unwrap();
    assert!(word("reads") > 1000 && word("writes") > 100, "{far:#}");
    // Four threads fault at once, and prefetches are in flight with them.
    assert!(word("most_reads") >= 4 && word("most_writes") >= 2, "{far:#}");
    assert!(word("read_busy_ns") <= word("read_ns") && word("hidden_ns") <= word("read_ns"), "{far:#}");
    for direction in ["read", "write"] {
        let [median, most] = ["median", "p99"].map(|name| word(&format!("{direction}_{name}_ns")));
        assert!(0 < median && median <= most, "{far:#}");
    }
    assert_eq!(word("over_limit"), 0, "{far:#}");
}

/// Returns whether this user may create an io_uring.
fn has_io_uring() -> bool {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    // SAFETY: numbers only: with no entries and no structure the call fails, by EFAULT or EINVAL if it is permitted.
    unsafe { libc::syscall(libc::SYS_io_uring_setup, 0, 0) };
    let permitted = std::io::Error::last_os_error().raw_os_error();
    let has =
        !matches!(permitted, Some(libc::ENOSYS | libc::EPERM)) && disabled.is_ok_and(|it| it.trim() == "0");
    if !has {
        skipped("io_uring is not permitted here");
    }
    has
}

#[test]
fn file_is_read_and_written_by_io_uring() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    if !has_io_uring() {
        return;
    }
    for (user, engine) in users().into_iter().flat_map(|user| ["auto", "thread"].map(|engine| (user, engine)))
    {
        let store = stage.store();
        let options = ["--local=16M", "--far", &store, "--fault-engine", engine];
        let run = Run::new(&stage, &[&program]).arg("64").arg("4").arg("5000").as_user(user);
        let ran = run.under(&options).finish();
        check(&ran, &ran.report["far"], IO_URING, 0);
    }
}

/// Where a container forbids io_uring, by EPERM or ENOSYS, the library uses threads for its transfers.
#[test]
fn where_io_uring_is_forbidden_threads_make_the_transfers() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let Some(filtered) = stage.compiled("filtered.c", &[]) else { return };
    let report = stage.scratch().join("threads.json");
    for (errno, engine) in [(libc::EPERM, "auto"), (libc::ENOSYS, "thread")] {
        let words: [OsString; 3] =
            [filtered.clone().into(), errno.to_string().into(), "io_uring_setup".into()];
        let under: [OsString; 11] = [
            stage.command().into(),
            "run".into(),
            "--local=16M".into(),
            "--far".into(),
            stage.store().into(),
            "--fault-engine".into(),
            engine.into(),
            "--report".into(),
            report.clone().into(),
            "--".into(),
            program.clone().into(),
        ];
        let run = under.into_iter().fold(Run::new(&stage, &words), Run::arg);
        let ran = run.arg("64").arg("4").arg("5000").finish();
        let text = std::fs::read_to_string(&report).unwrap_or_else(|_| panic!("no report: {ran:#?}"));
        let parsed: Value = serde_json::from_str(&text).unwrap();
        check(&ran, &parsed["far"], THREADS, errno);
    }
}

/// Returns the number of pages of a file that are in the page cache.
fn cached_pages(path: &Path) -> usize {
    let file = std::fs::File::open(path).unwrap();
    let len = usize::try_from(file.metadata().unwrap().len()).unwrap();
    assert!(len > 0, "nothing was written");
    // SAFETY: a new mapping, which is not touched.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    assert_ne!(at, libc::MAP_FAILED);
    let mut cached = vec![0_u8; len.div_ceil(4096)];
    // SAFETY: the mapping has `len` bytes, and there is a byte for each of its pages.
    assert_eq!(unsafe { libc::mincore(at, len, cached.as_mut_ptr()) }, 0);
    // SAFETY: the mapping made above.
    unsafe { libc::munmap(at, len) };
    cached.iter().filter(|&&page| page & 1 != 0).count()
}

/// If the store were in the page cache, pages would take memory twice, and more memory than `--local` would be used.
#[test]
fn file_bypasses_the_page_cache() {
    for user in users() {
        let stage = Stage::new();
        let Some(mut steps) = Steps::written(user, &stage) else { return };
        let store = steps.store();
        let number = store.file_name().unwrap();
        let thread = store.parent().unwrap().parent().unwrap();
        let info = std::fs::read_to_string(thread.join("fdinfo").join(number)).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        let flags = i32::from_str_radix(flags.trim(), 8).unwrap();
        assert_ne!(flags & libc::O_DIRECT, 0, "{user:?}: {info}");
        assert_eq!(cached_pages(&store), 0, "{user:?}");
        assert_eq!(steps.does("read 1"), "0 wrong", "{user:?}");
        assert_eq!(cached_pages(&store), 0, "{user:?}: after reads");
    }
}
