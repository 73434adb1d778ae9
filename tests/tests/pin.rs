//! Tests `largesse pin`, which accepts the options of `taskset`, `numactl` and `likwid-pin`. Machines of other shapes
//! are covered by the unit tests of `largesse_machine::selection`, and several NUMA nodes by `guest.rs`.

use largesse_tests::{Exit, Run, Stage, has_program, skipped, users};
use std::path::Path;

/// Returns a run of `largesse pin` with these words, in an environment that does not set the number of threads.
fn pin<'a>(stage: &'a Stage, words: &[&str]) -> Run<'a> {
    let command = stage.command();
    let start = ["/usr/bin/env", "-u", "OMP_NUM_THREADS", command.to_str().unwrap(), "pin"];
    Run::new(stage, &[&start[..], words].concat())
}

/// Returns whether this machine has processors 0 and 1, which the tests below need.
fn has_two_processors() -> bool {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if !online.starts_with("0-") {
        skipped("one processor only");
    }
    online.starts_with("0-")
}

#[test]
fn processors_are_named_in_many_ways() {
    if !has_two_processors() {
        return;
    }
    let stage = Stage::new();
    for (options, list) in [
        (&["--cpus", "0-1"][..], "0-1"),
        (&["-c", "0-1:2"], "0"),
        (&["-c", "0x2"], "1"),
        (&["--physcpubind=1,0"], "0-1"),
        (&["-C", "!0,2-4095"], "1"),
        (&["-c", "+1"], "1"),
        (&["-c", "N:1"], "1"),
        (&["-c", "E:N:1"], "0"),
        (&["-c", "N:0@N:1"], "0-1"),
        (&["--threads", "1,0"], "1"),
    ] {
        for user in users() {
            let words = [options, &["--", "/bin/cat", "/proc/self/status"]].concat();
            let ran = pin(&stage, &words).as_user(user).finish().succeeded();
            let line = format!("\nCpus_allowed_list:\t{list}\n");
            assert!(
                ran.stdout.contains(&line),
                "{options:?} {user:?}: {} is not in {}",
                line.trim(),
                ran.stdout
            );
        }
    }
}

#[test]
fn nodes_may_be_lists() {
    let stage = Stage::new();
    for (options, policy) in [
        (&["--node", "all"][..], " bind:"),
        (&["--membind=0"], " bind:0 "),
        (&["-m", "0"], " bind:0 "),
        (&["--interleave=all"], " interleave:"),
        (&["-i=0"], " interleave:0 "),
        (&["-i", "0"], " interleave:0 "),
        (&["--interleave", "all", "-c", "0"], " interleave:"),
        (&["-m", "+0"], " bind:0 "),
        (&["-m", "!4095"], " bind:"),
        (&["-i", "!4095"], " interleave:"),
        (&["-N", "+0", "-l"], " default "),
        (&["-p", "0"], " prefer:0 "),
        (&["--localalloc", "-c", "0"], " default "),
        (&["--cpunodebind=0", "-m0"], " bind:0 "),
    ] {
        let words = [options, &["--", "/bin/cat", "/proc/self/numa_maps"]].concat();
        let ran = pin(&stage, &words).finish().succeeded();
        let stack = ran.stdout.lines().find(|line| line.contains(" stack ")).unwrap_or_default();
        assert!(stack.contains(policy), "{options:?}: '{policy}' is not in '{stack}'");
    }
}

#[test]
fn local_allocation_undoes_a_policy() {
    let stage = Stage::new();
    let command = stage.command();
    let inner = [command.to_str().unwrap(), "pin", "--localalloc", "--", "/bin/cat", "/proc/self/numa_maps"];
    let ran = pin(&stage, &[&["--interleave=0", "--"][..], &inner].concat()).finish().succeeded();
    let stack = ran.stdout.lines().find(|line| line.contains(" stack ")).unwrap_or_default();
    assert!(stack.contains(" default "), "the inner --localalloc must win: '{stack}'");
}

#[test]
fn each_thread_has_its_processor() {
    if !has_two_processors() {
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("pinned_threads.c", &["-Wall", "-pthread"]) else { return };
    let program = program.to_str().unwrap();
    let command = stage.command();
    let command = command.to_str().unwrap();
    let wanted = "1\n0\n1\n0\n1\nOMP_NUM_THREADS 2\n";
    for user in users() {
        for run in [&[program, "3"][..], &[command, "run", "--", program, "3"]] {
            let ran =
                pin(&stage, &[&["--threads", "1,0", "--"], run].concat()).as_user(user).finish().succeeded();
            assert_eq!(ran.stdout, wanted, "{run:?} {user:?}");
        }
    }
    let ran = pin(&stage, &["-t", "0", "--", "/usr/bin/env", "OMP_NUM_THREADS=7", program, "1"]).finish();
    assert_eq!(ran.stdout, "0\n0\n0\nOMP_NUM_THREADS 7\n", "a number that the user gives stays");
}

#[test]
fn refusals_say_what_exists() {
    let stage = Stage::new();
    for (options, part) in [
        (&["-c", "S99:0"][..], "--cpus: there is no S99; this machine has S0"),
        (&["-c", "N:4096"], "that may be used, so there is no place 4096"),
        (&["-c", "0-3:0"], "--cpus: '0-3:0' is not a list of processors; write 0-3,8"),
        (&["-t", "0,9000"], "--threads: processor 9000 does not exist"),
        (&["-N", "900"], "NUMA node 900 does not exist"),
        (&["-N", ""], "--cpunodebind: no processor was named"),
        (&["-m", "900"], "NUMA node 900 does not exist, or has no memory"),
        (&["-m", ""], "no NUMA node was named: give a list such as 0-1, or all"),
        (&["--interleave=x"], "'x' is not a list of NUMA nodes; write 0-1,3 or all"),
    ] {
        let ran = pin(&stage, &[options, &["--", "/bin/echo", "started"]].concat()).finish();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(2), ""), "{options:?}: {}", ran.hints);
        assert!(ran.hints.contains(part), "{options:?}: '{part}' is not in '{}'", ran.hints);
    }
    if Path::new("/bin/busybox").exists() && has_program("/bin/busybox", &["true"]) {
        let ran = pin(&stage, &["-t", "0", "--", "/bin/busybox", "true"]).finish();
        assert_eq!(ran.exit, Exit::Code(126), "a static program cannot load the library: {ran:#?}");
        assert!(ran.hints.contains("--threads: /bin/busybox"), "{}", ran.hints);
    }
}
