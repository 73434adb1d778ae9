//! Tests processors, NUMA nodes and time through the C interface and `largesse pin`, on this machine. `guest.rs`
//! covers several nodes.

use largesse_tests::{Exit, Run, Stage, User, has_program, skipped, users};
use std::path::Path;

const STATUS: &[&str] = &["/bin/cat", "/proc/self/status"];

/// Returns a run of `largesse pin OPTIONS -- WORDS`.
fn pinned<'a>(stage: &'a Stage, options: &[&str], words: &[&str]) -> Run<'a> {
    let command = stage.command();
    let pin = [command.to_str().unwrap(), "pin"];
    let all: Vec<&str> = pin.iter().chain(options).chain(&["--"]).chain(words).copied().collect();
    Run::new(stage, &all)
}

#[test]
fn c_interface_places_memory_and_explains_refusals() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("placement.c", &["-Wall", "-ldl"]) else { return };
    if Path::new("/sys/devices/system/node/node1").exists() {
        return skipped("this machine has several nodes: the checks are for one");
    }
    let checks: &[&[&str]] = &[
        &["bind", "0"],
        &["move", "0", "0"],
        &["touch", "1"],
        &["absent", "900", "8000", "0"],
        &["cycles"],
        &["topology", "1"],
    ];
    for user in users() {
        for check in checks {
            let run = check.iter().fold(Run::new(&stage, &[&program]), |run, word| run.arg(*word));
            let ran = run.as_user(user).under(&[]).finish().succeeded();
            assert_eq!(ran.stdout, format!("placement {}: as asked\n", check[0]), "{user:?}");
        }
    }
}

#[test]
fn pinned_program_runs_on_the_processor_without_the_library() {
    let stage = Stage::new();
    for user in users() {
        let ran = pinned(&stage, &["--cpus", "0"], STATUS).as_user(user).finish().succeeded();
        assert!(ran.stdout.contains("\nCpus_allowed_list:\t0\n"), "{user:?} {}", ran.stdout);
    }
    // busybox is a static program, into which the library cannot be preloaded.
    if Path::new("/bin/busybox").exists() && has_program("/bin/busybox", &["true"]) {
        let ran =
            pinned(&stage, &["--cpus=0"], &["/bin/busybox", "cat", "/proc/self/status"]).finish().succeeded();
        assert!(ran.stdout.contains("\nCpus_allowed_list:\t0\n"), "{}", ran.stdout);
    }
}

#[test]
fn memory_of_the_program_has_the_policy() {
    let stage = Stage::new();
    for (options, policy) in [
        (&["--node", "0"][..], " bind:0 "),
        (&["--preferred", "0"], " prefer:0 "),
        (&["--interleave"], " interleave:0 "),
    ] {
        for user in users() {
            let ran = pinned(&stage, options, &["/bin/cat", "/proc/self/numa_maps"]).as_user(user).finish();
            let stack = ran.stdout.lines().find(|line| line.contains(" stack ")).unwrap_or_default();
            assert!(stack.contains(policy), "{options:?} {user:?}: {stack} {ran:#?}");
        }
    }
}

#[test]
fn missing_processors_and_nodes_are_named_and_nothing_is_started() {
    let stage = Stage::new();
    let cases: &[(&[&str], &str)] = &[
        (&["--cpus", "0,8000"], "--cpus: processor 8000 does not exist, or is offline; this machine has 0"),
        (&["--cpus", "0-"], "--cpus: '0-' is not a list of processors; write 0-3,8"),
        (&["--cpus", ""], "--cpus: no processor was named"),
        (&["--node", "900"], "NUMA node 900 does not exist, or has no memory; with memory: 0"),
        (&["--preferred", "900"], "NUMA node 900 does not exist, or has no memory; with memory: 0"),
        (&[], "nothing to do: give --cpus CPUS, --threads CPUS, --cpunodebind NODES, --node NODES"),
    ];
    for (options, words) in cases {
        let ran = pinned(&stage, options, &["/bin/echo", "started"]).finish();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(2), ""), "{options:?}");
        assert!(ran.hints.starts_with(&format!("largesse: {words}")), "{options:?}: {}", ran.hints);
    }
    let ran = pinned(&stage, &["--cpus=0"], &["no-such-program"]).as_user(User::Current).finish();
    assert_eq!((ran.exit, ran.hints.as_str()), (Exit::Code(127), "largesse: no-such-program: not found\n"));
    let ran = pinned(&stage, &["--cpus=0"], &["/etc/passwd"]).finish();
    assert_eq!(ran.exit, Exit::Code(126), "{ran:#?}");
}

/// The kernel silently ignores processors that a cpuset does not permit. `largesse pin` refuses them with a message.
#[test]
fn processor_outside_the_cpuset_is_refused() {
    let stage = Stage::new();
    let Some(group) = Cpuset::new("0") else { return };
    let script = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let command = stage.command();
    let words = [
        "/bin/sh",
        "-c",
        &script,
        "sh",
        command.to_str().unwrap(),
        "pin",
        "--cpus",
        "0-1",
        "--",
        "/bin/true",
    ];
    let ran = Run::new(&stage, &words).finish();
    let said =
        "largesse: --cpus: this process may not run on processor 1: its control group (cpuset) permits 0\n";
    assert_eq!((ran.exit, ran.hints.as_str()), (Exit::Code(2), said));
}

/// A control group with processors of its own. It is removed when this is dropped.
struct Cpuset(std::path::PathBuf);

impl Cpuset {
    fn new(cpus: &str) -> Option<Cpuset> {
        let skip = |why: &str| {
            skipped(why);
            None
        };
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        if !online.starts_with("0-") {
            return skip("one processor only");
        }
        for root in ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"] {
            let group = Cpuset(Path::new(root).join(format!("largesse-test-{}", std::process::id())));
            if std::fs::create_dir(&group.0).is_ok() {
                let mems = std::fs::write(group.0.join("cpuset.mems"), "0");
                if std::fs::write(group.0.join("cpuset.cpus"), cpus).is_ok() && mems.is_ok() {
                    return Some(group);
                }
            }
        }
        skip("no cpuset of control groups may be made here")
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}
