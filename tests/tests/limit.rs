//! `largesse run --limit`: programs run at full speed while they fit, and end with the same output in a control group
//! of half their peak, in which they are killed otherwise.

use largesse_tests::{
    Exit, Ran, Run, Stage, User, confined, could_not_confine, events_are_permitted, has_program, is_root,
    large_pages_are_available, skipped, users,
};
use std::process::{Command, Output};

const PYTHON: &str = "/usr/bin/python3";
/// Bytes that the programs fill, in MiB.
const DATA_MIB: u64 = 192;
/// Largest number of KiB of anonymous memory that a limit may add to a program of few blocks.
const ADDED_KIB: u64 = 4 << 10;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the number behind `label`.
fn number(text: &str, label: &str) -> u64 {
    let number =
        text.split(label).nth(1).and_then(|rest| rest.trim_start().split(' ').next()?.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no {label} in {text}"))
}

/// Runs a command in a control group with `limit_mib` MiB of memory and no swap.
fn confine(stage: &Stage, limit_mib: u64, words: &[String]) -> Output {
    let before = confined(limit_mib, 280);
    let mut command = Command::new(&before[0]);
    command.args(&before[1..]).args(words).env("LARGESSE_LIBRARY", stage.library());
    command.current_dir(stage.scratch()).output().expect("a program that starts")
}

/// Returns the words of `largesse run` with these options in front of a program, for a user.
fn limited_as(user: User, stage: &Stage, options: &[&str], program: &[String]) -> Vec<String> {
    let (command, store) = (stage.command().display().to_string(), stage.store());
    let prefix = user.prefix().iter().copied().chain([command.as_str(), "run", "--far", &store]);
    let before = prefix.chain(options.iter().copied()).chain(["--"]);
    before.map(str::to_owned).chain(program.iter().cloned()).collect()
}

fn limited(stage: &Stage, options: &[&str], program: &[String]) -> Vec<String> {
    limited_as(User::Current, stage, options, program)
}

/// Checks that a program is killed in a control group of half its peak, and ends there with the same first line under
/// `--limit auto` as each user, without another kill.
#[track_caller]
fn half_is_enough(stage: &Stage, program: &[String], users: &[User]) {
    let alone = confine(stage, 8 * DATA_MIB, program);
    if could_not_confine(&alone) {
        return;
    }
    let said = text(&alone.stdout);
    let answer = said.lines().next().unwrap_or_default();
    assert!(alone.status.success() && !answer.is_empty(), "{alone:#?}");
    let peak = number(&said, "at most in use") - number(&said, "page cache");
    assert!(peak >= DATA_MIB, "{said}");
    let half = peak / 2;

    let killed = confine(stage, half, program);
    let said = text(&killed.stdout);
    assert!(!killed.status.success() && number(&said, "killed by the kernel:") > 0, "{killed:#?}");

    for &user in users {
        let done = confine(stage, half, &limited_as(user, stage, &["--limit", "auto"], program));
        let (said, hints) = (text(&done.stdout), text(&done.stderr));
        assert!(done.status.success() && said.starts_with(answer), "half is {half} MiB: {answer}\n{done:#?}");
        assert_eq!(number(&said, "killed by the kernel:"), 0, "{user:?}: {said}");
        assert!(number(&said, "at most in use") <= half, "{user:?}: {said}");
        assert_eq!(hints.matches("comes near its limit").count(), 1, "{user:?}: {hints}");
    }
}

/// Returns a user whose system calls are filtered near a limit; those of root wait for far pages.
fn ordinary() -> User {
    if is_root() { User::Unprivileged } else { User::Current }
}

fn c_program(stage: &Stage, how: &[&str]) -> Option<Vec<String>> {
    let program = stage.compiled("limited.c", &["-O2", "-pthread"])?.display().to_string();
    let words = [program, DATA_MIB.to_string(), "8".into()];
    Some(words.into_iter().chain(how.iter().map(ToString::to_string)).collect())
}

#[test]
fn c_program_ends_in_half_of_its_peak() {
    let stage = Stage::new();
    let Some(program) = c_program(&stage, &[]) else { return };
    half_is_enough(&stage, &program, &users());
}

#[test]
fn growing_blocks_end_in_half_of_their_peak() {
    let stage = Stage::new();
    let Some(program) = c_program(&stage, &["grow"]) else { return };
    half_is_enough(&stage, &program, &[User::Current]);
}

#[test]
fn threads_end_in_half_of_their_peak() {
    let stage = Stage::new();
    let Some(program) = c_program(&stage, &["threads"]) else { return };
    half_is_enough(&stage, &program, &users());
}

/// Parent and child each write to half of what they share, which the kernel copies.
#[test]
fn forked_program_ends_in_half_of_its_peak() {
    let stage = Stage::new();
    let Some(program) = c_program(&stage, &["fork"]) else { return };
    half_is_enough(&stage, &program, &users());
}

/// Returns a command in which R forks while its vectors are near: each of `count` workers changes its share of the 16
/// vectors of 8 MiB, one number in each 512 bytes.
fn r_workers(count: u32) -> [String; 4] {
    let script = format!(
        "library(parallel); x <- lapply(1:16, function(k) rep_len(k + 0.5, 2^20))
        f <- function(i) {{ for (k in seq(i, 16, by = {count})) x[[k]][seq(1, 2^20, by = 64)] <- i
        sum(vapply(x, sum, 0)) }}
        cat(unlist(mclapply(1:{count}, f, mc.cores = {count})), sum(vapply(x, sum, 0)), '\\n')"
    );
    ["Rscript", "--vanilla", "-e", &script].map(str::to_owned)
}

/// Forked workers of R finish under a limit below which the kernel kills them otherwise. R forks before its vectors are
/// far, and each worker changes half of them.
#[test]
fn r_workers_end_in_a_tight_group() {
    if !has_program("Rscript", &["--version"]) || !events_are_permitted() {
        return;
    }
    let stage = Stage::new();
    let program = r_workers(2);
    let killed = confine(&stage, 190, &program);
    if could_not_confine(&killed) {
        return;
    }
    assert!(number(&text(&killed.stdout), "killed by the kernel:") > 0, "{killed:#?}");
    let done = confine(&stage, 190, &limited(&stage, &["--limit", "auto"], &program));
    let said = text(&done.stdout);
    assert!(done.status.success() && said.starts_with("150011904 150011904 150994944"), "{done:#?}");
    assert_eq!(number(&said, "killed by the kernel:"), 0, "{said}");
}

/// Copies of R's small objects for four workers at once do not fit: they begin one after the other.
#[test]
fn r_workers_without_room_wait_for_others() {
    if !has_program("Rscript", &["--version"]) || !events_are_permitted() {
        return;
    }
    let stage = Stage::new();
    let program = r_workers(4);
    let done = confine(&stage, 180, &limited(&stage, &["--limit", "auto"], &program));
    if could_not_confine(&done) {
        return;
    }
    let said = text(&done.stdout);
    let answer = format!("{}150994944", "150568960 ".repeat(4));
    assert!(done.status.success() && said.starts_with(&answer), "{done:#?}");
    assert_eq!(number(&said, "killed by the kernel:"), 0, "{said}");
}

/// Blocks at low addresses that the program uses all the time stay, and others that it filled later and left spill.
#[test]
fn coldest_memory_spills_first() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("cold_first.c", &["-O2"]) else { return };
    if !events_are_permitted() {
        return;
    }
    let (store, program) = (stage.store(), program.display().to_string());
    let words = [program.as_str(), "80", "80", "64", "hot", "3.5"];
    let ran = Run::new(&stage, &words).under(&["--limit", "210M", "--far", &store]).finish().succeeded();
    let count = |name: &str| ran.report["far"][name].as_u64().unwrap_or(0);
    assert!(count("write_backs") > 4096, "{:#}", ran.report);
    // By address it would be 6000 and more of the 20,480 hot pages.
    assert!(count("fills") < 3072, "hot pages were read back: {:#}", ran.report);
}

#[test]
fn one_block_ends_in_half_of_its_size() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("passes.c", &["-O2"]) else { return };
    half_is_enough(&stage, &[program.display().to_string(), DATA_MIB.to_string()], &[User::Current]);
}

#[test]
fn r_ends_in_half_of_its_peak() {
    if has_program("Rscript", &["--version"]) {
        let script = format!(
            "x <- lapply(1:32, function(k) rep_len(k + 0.5, {DATA_MIB} / 32 * 2^17)); \
             for (k in 1:32) x[[k]][k] <- 0; cat(sum(vapply(x, sum, 0)), '\\n')"
        );
        half_is_enough(&Stage::new(), &["Rscript", "--vanilla", "-e", &script].map(str::to_owned), &users());
    }
}

#[test]
fn numpy_ends_in_half_of_its_peak() {
    if has_program(PYTHON, &["-c", "import numpy"]) {
        let script = format!(
            "import numpy\n\
             rows = [numpy.arange({DATA_MIB} // 16 << 17, dtype=float) + k for k in range(16)]\n\
             for k, row in enumerate(rows): row[k::1000] = -k\n\
             print(sum(int(row.sum()) for row in rows))"
        );
        half_is_enough(&Stage::new(), &[PYTHON, "-c", &script].map(str::to_owned), &users());
    }
}

#[test]
fn limit_in_bytes_bounds_the_process() {
    let stage = Stage::new();
    let Some(program) = c_program(&stage, &[]) else { return };
    if !events_are_permitted() {
        return;
    }
    let store = stage.store();
    let ran = Run::new(&stage, &program).under(&["--limit", "96M", "--far", &store]).finish().succeeded();
    let peak = number(&ran.stdout, "peak ");
    assert!(peak <= 96 << 10, "{peak} KiB were resident: {ran:#?}");
    assert_eq!(ran.report["limit"]["bytes"], 96 << 20, "{:#}", ran.report);
    assert!(ran.report["limit"]["spilling_seconds"].is_u64(), "{:#}", ran.report);
    assert!(ran.report["far"]["write_backs"].as_u64() > Some(0), "{:#}", ran.report);
    assert_eq!(ran.hints.lines().count(), 1, "{}", ran.hints);
    assert!(ran.hints.contains("its limit of 96M: its coldest memory is kept in file:"), "{}", ran.hints);
}

/// Blocks that spilled are on large pages again once the program has freed half of them, and spill again when it needs
/// more. A thread writes to them all the time.
#[test]
fn freed_memory_makes_the_rest_near_again() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("near_again.c", &["-O2", "-pthread"]) else { return };
    if !large_pages_are_available() {
        return;
    }
    let (store, program) = (stage.store(), program.display().to_string());
    let words = [program.as_str(), "160", "16", "2"];
    std::thread::scope(|scope| {
        for user in users() {
            let run = Run::new(&stage, &words).as_user(user);
            scope.spawn(|| is_near_again_twice(&run.under(&["--limit", "144M", "--far", &store]).finish()));
        }
    });
}

fn is_near_again_twice(ran: &Ran) {
    assert_eq!(ran.exit, Exit::Code(0), "{ran:#?}");
    assert!(ran.stdout.contains("10 blocks, 0 wrong"), "{ran:#?}");
    let large = number(&ran.stdout, " s ");
    assert!(large >= (80 << 10) / 10 * 9, "{large} KiB are on large pages: {ran:#?}");
    let (limit, far) = (&ran.report["limit"], &ran.report["far"]);
    assert_eq!(limit["near_again"], 2, "{:#}", ran.report);
    assert!(limit["near_again_seconds"].is_null(), "they are far again: {:#}", ran.report);
    assert!(far["recalled"].as_u64() > Some(0), "{:#}", ran.report);
    assert_eq!(ran.hints.lines().count(), 1, "{}", ran.hints);
}

/// The C library's small objects cannot be evicted. The program ends with a message before the kernel kills it.
#[test]
fn small_objects_beyond_the_limit_end_the_program() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("small_objects.c", &["-O2"]) else { return };
    if !events_are_permitted() {
        return;
    }
    let program = [program.display().to_string(), "400".to_owned()];
    let options = ["--limit", "auto", "--small-blocks", "off"];
    let ended = confine(&stage, 160, &limited(&stage, &options, &program));
    if could_not_confine(&ended) {
        return;
    }
    let (said, hints) = (text(&ended.stdout), text(&ended.stderr));
    assert_eq!(ended.status.code(), Some(74), "{ended:#?}");
    assert_eq!(number(&said, "killed by the kernel:"), 0, "{said}");
    assert!(hints.contains("cannot be kept below its limit of 160M, and ends: "), "{hints}");
    let causes = ["MiB in small requests and the stack", "probably mappings that cannot become far"];
    assert!(causes.iter().any(|cause| hints.contains(cause)), "{hints}");
}

// Seen to fail in half of the runs when a bound of far memory that stays slightly above the least one counts as if
// something could be evicted.
#[test]
fn fast_growth_that_cannot_be_evicted_ends_the_program() {
    each_touch_of_executable_memory("near", 10, |ended| {
        let (said, hints) = (text(&ended.stdout), text(&ended.stderr));
        assert_eq!(number(&said, "killed by the kernel:"), 0, "{said} {hints}");
        assert_eq!(ended.status.code(), Some(74), "{ended:#?}");
    });
}

/// Runs a program that touches 400 MiB of executable memory in a group of 160 MiB several times, and has `check` look at
/// each end.
fn each_touch_of_executable_memory(way: &str, times: u32, check: impl Fn(&Output)) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("executable.c", &["-O2"]) else { return };
    if !events_are_permitted() {
        return;
    }
    let program = [program.display().to_string(), "400".to_owned(), way.to_owned()];
    for _ in 0..times {
        let ended = confine(&stage, 160, &limited(&stage, &["--limit", "auto"], &program));
        if could_not_confine(&ended) {
            return;
        }
        check(&ended);
    }
}

/// Memory from which code may run becomes far, also if it is the first thing that a program asks for, and is filled at
/// once.
// Seen to fail in a third of the runs when the program gets such a mapping before the helper's first look at the limit, and
// in each run when executable memory stays near.
#[test]
fn executable_memory_ends_in_less_than_its_size() {
    each_touch_of_executable_memory("far", 6, |done| {
        let said = text(&done.stdout);
        assert!(done.status.success() && said.starts_with("6553600\n"), "{done:#?}");
        assert_eq!(number(&said, "killed by the kernel:"), 0, "{said}");
    });
}

/// SBCL maps its heap by the number of the system call, executable, and maps its core file over the beginning.
#[test]
fn sbcl_ends_in_half_of_its_peak() {
    if !has_program("sbcl", &["--version"]) {
        return;
    }
    let form = format!(
        "(let ((vectors (loop for k below {DATA_MIB} collect (make-array (expt 2 17) :element-type 'double-float \
         :initial-element (float k 1d0)))) (items (loop for i below 1000000 collect (mod (* i 7919) 10007)))) \
         (format t \"~a ~a~%\" (reduce #'+ (mapcar (lambda (v) (reduce #'+ v)) vectors)) (reduce #'+ items)))"
    );
    let words = ["sbcl", "--dynamic-space-size", "2GB", "--noinform", "--non-interactive", "--eval", &form];
    half_is_enough(&Stage::new(), &words.map(str::to_owned), &users());
}

/// Python maps memory for small objects itself, and these mappings are far once the limit is near.
#[test]
fn python_objects_end_in_less_than_their_peak() {
    if !has_program(PYTHON, &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = "x = [b'%060d' % k for k in range(2_000_000)]; print(sum(map(len, x)), x[1_234_567])";
    let program = [PYTHON, "-c", script].map(str::to_owned);
    for user in users() {
        let done = confine(&stage, 160, &limited_as(user, &stage, &["--limit", "auto"], &program));
        if could_not_confine(&done) {
            return;
        }
        let said = text(&done.stdout);
        assert!(done.status.success() && said.starts_with("120000000 b'0000"), "{user:?}: {done:#?}");
        assert_eq!(number(&said, "killed by the kernel:"), 0, "{user:?}: {said}");
    }
}

/// A program sets its limit while it has large blocks, and then changes it.
#[test]
fn running_program_sets_its_limit() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("set_limit.c", &["-O2", "-pthread"]) else { return };
    let (store, program) = (stage.store(), program.display().to_string());
    let refused =
        if events_are_permitted_to_all() { "kept" } else { "of it is at work, or waits for an event" };
    // The second one is exceeded already when it is set.
    for (user, before, after, how) in [
        (User::Current, "64", "128", ""),
        (User::Current, "160", "32", ""),
        (ordinary(), "64", "128", "waiting"),
        (ordinary(), "160", "32", ""),
    ] {
        let words = [program.as_str(), before, after, "128M", &store, how];
        let ran = Run::new(&stage, &words).as_user(user).under(&[]).finish().succeeded();
        assert!(how.is_empty() || ran.stdout.contains(refused), "{ran:#?}");
        assert!(ran.stdout.contains("24 blocks, 0 wrong"), "{ran:#?}");
        let resident = number(&ran.stdout, "resident ");
        assert!(before == "160" || resident <= 128 << 10, "{resident} KiB were resident: {ran:#?}");
        assert!(ran.report["far"]["write_backs"].as_u64() > Some(0), "{:#}", ran.report);
        assert_eq!(ran.report["limit"]["bytes"], 4_u64 << 30, "{:#}", ran.report);
        assert!(ran.hints.contains("comes near its limit of 128M"), "{}", ran.hints);
    }
}

#[test]
fn r_session_sets_its_limit() {
    let stage = Stage::new();
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let Some(shim) = stage.compiled("shim.c", &["-shared", "-fPIC"]) else { return };
    let named = stage.path("shim.so");
    std::fs::rename(shim, &named).unwrap();
    let script = "a <- commandArgs(TRUE); dyn.load(a[1], local = FALSE); dyn.load(a[2])
        stopifnot(.C('enable', 1L, r = 9L)$r == 0L)
        x <- lapply(1:6, function(k) rep_len(k + 0.5, 2^20))
        stopifnot(identical(.C('limit', '160M', a[3], why = '')$why, ''))
        x <- c(x, lapply(7:24, function(k) rep_len(k + 0.5, 2^20)))
        cat(identical(vapply(x, sum, 0), (1:24 + 0.5) * 2^20))";
    let [library, named] = [stage.library(), named].map(|path| path.display().to_string());
    let words = ["Rscript", "--vanilla", "-e", script, &library, &named, &stage.store()];
    for user in users() {
        let ran = Run::new(&stage, &words).as_user(user).finish().succeeded();
        assert_eq!(ran.stdout, "TRUE", "{user:?}: {ran:#?}");
        assert!(ran.hints.contains("comes near its limit of 160M"), "{user:?}: {}", ran.hints);
    }
}

/// Both are kept below the limit, each by a helper and a pager of its own.
#[test]
fn forked_child_sees_the_same_words() {
    let stage = Stage::new();
    let store = stage.store();
    for (user, limit) in [(User::Current, "96M"), (User::Current, "1G"), (ordinary(), "96M")] {
        // With the second limit the memory is still near at the fork.
        let Some(program) = c_program(&stage, &["fork"]) else { return };
        let options = ["--limit", limit, "--far", &store];
        let ran = Run::new(&stage, &program).as_user(user).under(&options).finish().succeeded();
        assert!(ran.stdout.contains("24 blocks, 0 wrong"), "{ran:#?}");
        assert_eq!(ran.report["far"].is_null(), limit == "1G", "{:#}", ran.report);
    }
}

/// A program that stays below nine tenths of its limit has large pages, and no far memory.
#[test]
fn nothing_spills_below_nine_tenths() {
    let stage = Stage::new();
    let Some(program) = c_program(&stage, &[]) else { return };
    if !events_are_permitted() || !large_pages_are_available() {
        return;
    }
    let store = stage.store();
    // The reserve is a tenth, 25 MiB. Program, library and threads take less than 38 MiB in addition to the data.
    let limit = format!("{}M", DATA_MIB + 64);
    let ran = Run::new(&stage, &program).under(&["--limit", &limit, "--far", &store]).finish().succeeded();
    assert!(
        ran.report["far"].is_null() && ran.report["limit"]["spilling_seconds"].is_null(),
        "{:#}",
        ran.report
    );
    assert!(ran.report["limit"]["bytes"].is_u64(), "{:#}", ran.report);
    assert_eq!(ran.hints, "");
    let large = ran.report["large_peak_bytes"].as_u64().unwrap_or(0);
    assert!(large >= (DATA_MIB * 9 / 10) << 20, "only {large} bytes were on large pages: {:#}", ran.report);
}

/// A program of few blocks, of many sizes, takes hardly more memory while its limit is far away.
#[test]
fn limit_adds_little_to_a_small_program() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("few_blocks.c", &["-O2"]) else { return };
    if !events_are_permitted() {
        return;
    }
    let run = Run::new(&stage, &[&program]);
    let alone = number(&run.finish().succeeded().stdout, "anonymous");
    let ran = run.under(&["--limit", "8G", "--far", &stage.store()]).finish().succeeded();
    let added = number(&ran.stdout, "anonymous").saturating_sub(alone);
    assert!(added <= ADDED_KIB, "{added} KiB more than {alone}: {ran:#?}");
}

/// Blocks that began on small pages are on large ones once they are used as a whole.
#[test]
fn dense_spans_become_large() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("few_blocks.c", &["-O2"]) else { return };
    if !events_are_permitted() || !large_pages_are_available() {
        return;
    }
    let run = Run::new(&stage, &[&program]).arg("fill");
    let ran = run.under(&["--limit", "8G", "--far", &stage.store()]).finish().succeeded();
    assert!(number(&ran.stdout, "large") >= 7 << 10, "{ran:#?}");
    assert!(ran.stdout.ends_with("\n0 wrong\n"), "{ran:#?}");
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let stage = Stage::new();
    for (options, words) in [
        (&["--limit", "1G", "--lock"][..], "--lock cannot be combined with --limit"),
        (&["--limit", "1G", "--pages", "hugetlb"], "--pages hugetlb cannot be combined with --limit"),
        (&["--limit", "1G", "--interleave"], "--interleave cannot be combined with --limit"),
        (&["--limit", "1G", "--far", "memory:"], "file:PATH with --limit"),
        (&["--limit", "32M"], "is below the least, 64M"),
        (&["--limit", "much"], "type auto, or a number with a unit"),
    ] {
        let ran = Run::new(&stage, &["true"]).under(options).finish();
        assert_eq!(ran.exit, Exit::Code(2), "{options:?}: {ran:#?}");
        assert!(ran.hints.contains(words), "{options:?}: {}", ran.hints);
    }
    let ran = Run::new(&stage, &["true"]).under(&["--limit", "1G", "--far", "file:/dev/shm/x"]).finish();
    assert!(ran.exit == Exit::Code(125) && ran.hints.contains("lies in memory (tmpfs)"), "{ran:#?}");
}

/// A thread waits in `read` when its block becomes far memory, and the program blocks the filter's signal, has a signal
/// stack in a large block, forks and executes.
#[test]
fn system_calls_survive_the_change_over() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("limit_calls.c", &["-O2", "-pthread"]) else { return };
    let (store, program) = (stage.store(), program.display().to_string());
    for (user, engine, how) in [
        (ordinary(), "auto", ""),
        (ordinary(), "auto", "mapped"),
        (ordinary(), "thread", ""),
        (ordinary(), "thread", "mapped"),
        (User::Current, "user-mode", ""),
    ] {
        let words = [program.as_str(), "160", how];
        let options = ["--limit", "96M", "--far", &store, "--fault-engine", engine];
        // Nothing touches the block in which the thread waits for bytes.
        let run = Run::new(&stage, &words).as_user(user).variable("LARGESSE_AHEAD", "off").under(&options);
        let ran = run.finish().succeeded();
        assert!(ran.stdout.contains("0 wrong, child 0"), "{user:?} {engine} {how}: {ran:#?}");
        assert!(ran.report["far"]["write_backs"].as_u64() > Some(0), "{user:?} {engine}: {:#}", ran.report);
    }
}

/// A thread that a library started with a `pthread_create` that it had looked up blocks all signals, as jemalloc's
/// does.
#[test]
fn looked_up_threads_have_the_filter() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("found_thread.c", &["-O2", "-pthread", "-ldl"]) else { return };
    let (store, program) = (stage.store(), program.display().to_string());
    let words = [program.as_str(), "160"];
    let options = ["--limit", "96M", "--far", &store];
    let ran = Run::new(&stage, &words).as_user(ordinary()).under(&options).finish().succeeded();
    assert_eq!(ran.stdout, "0 wrong\n", "{ran:#?}");
    assert!(ran.hints.contains("comes near its limit of 96M"), "{ran:#?}");
}

/// Programs that an ordinary user's program starts can gain rights, unless it needed the filter of system calls.
#[test]
fn filter_comes_only_when_it_is_needed() {
    if !is_root() {
        return skipped("only root can become a user that may gain rights");
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("limit_calls.c", &["-O2", "-pthread"]) else { return };
    let store = stage.store();
    let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let options = ["--limit", "512M", "--far", &store];
    let shell = ["sh", "-c", "grep NoNewPrivs /proc/self/status"];
    let ran = Run::new(&stage, &shell).started_by(&user).under(&options).finish().succeeded();
    assert_eq!(ran.stdout, "NoNewPrivs:\t0\n", "{ran:#?}");
    // This one starts a thread.
    let words = [program.display().to_string(), "16".to_owned()];
    let ran = Run::new(&stage, &words).started_by(&user).under(&options).finish().succeeded();
    let filtered = u32::from(!events_are_permitted_to_all());
    assert!(ran.stdout.contains(&format!("excluded: 0 before, {filtered} after")), "{ran:#?}");
}

fn events_are_permitted_to_all() -> bool {
    std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|it| it.trim() == "1")
}
