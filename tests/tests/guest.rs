//! Tests in an emulated machine of four NUMA nodes with Debian 12's kernel: placement on several nodes, and whole
//! programs where newer calls (`PAGEMAP_SCAN`, `UFFDIO_MOVE`) do not exist.

use largesse_tests::{Done, Guest, deep};

const PRELOADED: &str = "LD_PRELOAD=/bin/liblargesse.so";
const NOBODY: &str = "/bin/setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs";

/// Runs command lines in the guest. Each line has a name, the command, its expected exit status and a part of its
/// expected output.
#[track_caller]
fn check(guest: &mut Guest, lines: &[(&str, String, i32, &str)]) {
    for (name, words, ..) in lines {
        guest.command(name, words);
    }
    let done = guest.run();
    assert_eq!(done.len(), lines.len(), "{done:#?}");
    for (Done { name, exit, output }, (_, words, wanted, part)) in done.iter().zip(lines) {
        assert!(
            exit == wanted && output.contains(part),
            "{name}: {words}\nexit {exit}, not {wanted}; '{part}' in\n{output}"
        );
    }
}

#[test]
fn memory_is_on_the_requested_nodes() {
    let Some(mut guest) = Guest::new() else { return };
    guest.compiled("placement.c", &["-ldl"]);
    guest.compiled("placement-of-blocks.c", &[]);
    let asked = "as asked";
    let library = |words: &str| format!("{PRELOADED} placement {words}");
    let pinned =
        |options: &str, words: &str| format!("largesse pin {options} -- env {PRELOADED} placement {words}");
    let lines: Vec<(&str, String, i32, &str)> = vec![
        ("bind 0", library("bind 0"), 0, asked),
        ("bind 1", library("bind 1"), 0, asked),
        ("bind 2", library("bind 2"), 0, asked),
        ("bind 3", library("bind 3"), 0, asked),
        // Negative controls: if these checks passed, the checks above would prove nothing.
        ("control 0", library("wrong 0 1"), 1, "FAIL: pages on the node: 0, not 4096"),
        ("control 3", library("wrong 3 2"), 1, "FAIL: pages on the node: 0, not 4096"),
        ("interleave", library("interleave 4"), 0, asked),
        ("move 0", library("move 0 1"), 0, asked),
        ("move 1", library("move 1 3"), 0, asked),
        ("move 3", library("move 3 0"), 0, asked),
        ("first touch", library("touch 4"), 0, asked),
        ("absent", library("absent 4 4 0-3"), 0, asked),
        ("maxnode", library("maxnode 3"), 0, asked),
        ("topology", library("topology 4"), 0, asked),
        ("unprivileged", format!("{NOBODY} env {}", library("move 2 1")), 0, asked),
        ("pin node", pinned("--node 2", "spread 2 64 64"), 0, asked),
        ("pin cpus", pinned("--cpus 1", "spread 1 64 64"), 0, asked),
        ("pin both", pinned("--cpus 1 --node 3", "spread 3 64 64"), 0, asked),
        ("pin interleave", pinned("--interleave", "spread 1 64 15"), 0, asked),
        // The second program needs more than the node has, so that the rest of it is on other nodes.
        ("pin preferred", pinned("--preferred 3", "spread 3 64 64"), 0, asked),
        ("pin preferred, more", pinned("--preferred 3", "spread 3 450 200"), 0, asked),
        // The program runs on the processor of node 2, because the kernel prefers the nearest permitted node.
        ("pin nodes", pinned("--cpus 2 --membind 2-3", "spread 2 64 64"), 0, asked),
        ("pin cpus of a node", pinned("-N 3", "spread 3 64 64"), 0, asked),
        ("pin some nodes", pinned("--interleave=1,3", "spread 3 64 31"), 0, asked),
        (
            "pin scatter",
            "largesse pin -c E:N:1@M3:0 -- cat /proc/self/status".into(),
            0,
            "Cpus_allowed_list:\t0,3",
        ),
        (
            "pin absent node",
            pinned("--node 4", "spread 0 1 1"),
            2,
            "NUMA node 4 does not exist, or has no memory; with memory: 0-3",
        ),
        (
            "pin absent cpu",
            pinned("--cpus 2,9", "spread 0 1 1"),
            2,
            "processor 9 does not exist, or is offline; this machine has 0-3",
        ),
        ("pin control", pinned("--node 2", "spread 1 64 64"), 1, "FAIL: pages on the node: 0, not 16384"),
        ("run node", "largesse run --node 1 -- placement-of-blocks 1".into(), 0, asked),
        ("run interleave", "largesse run --interleave -- placement-of-blocks -1".into(), 0, asked),
        ("machine", "largesse machine".into(), 0, "from \\ to   0   1   2   3"),
        ("distances", "largesse machine".into(), 0, "        0  10  16  22  16"),
    ];
    check(&mut guest, &lines);
}

#[test]
fn programs_run_on_an_older_kernel() {
    let Some(mut guest) = Guest::new() else { return };
    for (name, options) in [
        ("family.c", &["-Wall"]),
        ("blocks.c", &["-O2"]),
        ("paged.c", &["-pthread"]),
        ("kernel_facts.c", &["-O2"]),
    ] {
        guest.compiled(name, options);
    }
    let pool = "echo 80 > /proc/sys/vm/nr_hugepages";
    let far = |options: &str| format!("largesse run --local=4M {options} -- paged 10 2 100");
    let lines: Vec<(&str, String, i32, &str)> = vec![
        ("kernel", "cat /proc/sys/kernel/osrelease".into(), 0, "6.1."),
        ("thp", format!("{NOBODY} largesse run --pages thp -- family"), 0, "all as it should be"),
        ("hugetlb", format!("{pool} && largesse run --pages hugetlb -- blocks exec"), 42, "exec2 blocks"),
        ("hugetlb fork", "largesse run --pages hugetlb -- blocks fork".into(), 42, "child 3 blocks"),
        ("no pool", "echo 0 > /proc/sys/vm/nr_hugepages; largesse run --pages hugetlb -- blocks".into(), 42, "2 blocks"),
        (
            "status",
            "sleep 60 | largesse run -- blocks wait > said & until grep -q . said; do sleep 0.1; done; largesse status $(pidof blocks); kill $(pidof blocks)"
                .into(),
            0,
            "64 MiB  thp",
        ),
        ("facts", "kernel_facts call".into(), 0, "populated large page registered: yes\nit is still large: yes"),
        ("limit", "largesse run --limit auto -- paged 10 2 100".into(), 125, "it needs Linux 6.8 or later"),
        ("doctor", "largesse doctor".into(), 0, "without PAGEMAP_SCAN"),
        ("far, memory", far("--far=memory:"), 0, "1310720 words, 0 wrong"),
        ("far, file", far("--far=file:/scratch/pages"), 0, "1310720 words, 0 wrong"),
        ("far, thread", far("--far=memory: --fault-engine=thread"), 0, "1310720 words, 0 wrong"),
        ("far, user-mode", far("--far=memory: --fault-engine=user-mode"), 0, "1310720 words, 0 wrong"),
        (
            "far, unprivileged",
            format!("{NOBODY} {}", far("--far=file:/scratch/theirs --fault-engine=thread")),
            0,
            "1310720 words, 0 wrong",
        ),
    ];
    check(&mut guest, &lines);
}

/// Takes minutes, because the machine is emulated, and runs only if [`deep`] says so.
#[test]
fn threads_and_static_arrays_are_far_on_an_older_kernel() {
    if !deep() {
        return;
    }
    let Some(mut guest) = Guest::new() else { return };
    guest.compiled("threads.c", &["-pthread"]);
    guest.compiled("statics.c", &["-O2"]);
    let lines: Vec<(&str, String, i32, &str)> = vec![
        ("threads", "largesse run -- threads hand".into(), 0, "every block was right"),
        ("forks", "largesse run -- threads fork".into(), 0, "every block was right"),
        ("far, statics", "largesse run --local=8M --far=memory: -- statics".into(), 0, "0 wrong"),
    ];
    check(&mut guest, &lines);
}

/// Takes minutes, because the machine is emulated, and runs only if [`deep`] says so.
#[test]
fn mappings_are_far_on_an_older_kernel() {
    if !deep() {
        return;
    }
    let Some(mut guest) = Guest::new() else { return };
    guest.compiled("ranges.c", &["-O2"]);
    let ranges = "ranges mapped 512 2048";
    let far = format!("largesse run --local=1M --far=memory: -- {ranges}");
    let both = format!("{ranges} > near && {far} > far && cmp near far && cat far");
    check(&mut guest, &[("far, ranges", both, 0, "reserved: 0 wrong")]);
}

/// Takes minutes, because the machine is emulated, and runs only if [`deep`] says so.
#[test]
fn system_calls_work_on_far_memory_on_an_older_kernel() {
    if !deep() {
        return;
    }
    for engine in ["auto", "thread"] {
        let Some(mut guest) = Guest::new() else { return };
        guest.compiled("far_calls.c", &["-O2", "-pthread"]);
        let far = format!("largesse run --local=1M --far=memory: --fault-engine={engine} -- far_calls 1 100");
        check(&mut guest, &[("far, calls", far, 0, "0 failed")]);
    }
}
