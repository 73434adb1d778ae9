//! A fork under far memory is a snapshot: neither side sees what the other writes, nothing is zero.

use largesse_tests::{Exit, Ran, Run, Stage, has_program, users, wait_until};
use std::path::Path;
use std::time::Duration;

/// What the program says over either store. It says nothing of far memory.
fn over_both(words: &[&str], local: &str, check: impl Fn(Ran)) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_fork.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        for store in stage.stores() {
            let run = words.iter().fold(Run::new(&stage, &[&program]), |run, word| run.arg(word));
            check(run.as_user(user).under(&["--local", local, "--far", &store]).finish());
            is_emptied(&stage.scratch());
        }
    }
}

/// The agent outlasts the program for a moment, and its folder with it.
#[track_caller]
fn is_emptied(folder: &Path) {
    let is_empty = || std::fs::read_dir(folder).unwrap().next().is_none();
    wait_until("the agent has removed its folder", Duration::from_secs(60), is_empty);
}

#[test]
fn both_sides_and_a_grandchild_keep_what_is_theirs() {
    over_both(&["sides", "24"], "16M", all_sides);
}

#[test]
fn static_arrays_are_a_snapshot_too() {
    over_both(&["sides", "0"], "16M", all_sides);
}

#[track_caller]
fn all_sides(ran: Ran) {
    let ran = ran.succeeded();
    for who in [
        "child at first",
        "child",
        "grandchild at first",
        "grandchild",
        "child at last",
        "child again",
        "parent",
    ] {
        assert!(ran.stdout.contains(&format!("{who}: 0 wrong\n")), "{who}: {ran:#?}");
    }
    assert_eq!(ran.hints, "");
}

#[test]
fn a_thread_forks_while_others_fault() {
    over_both(&["threads", "32", "6"], "16M", |ran| {
        assert_eq!(ran.succeeded().stdout, "threads: 0 wrong\n");
    });
}

/// The threads that fault leave the processor to the agent, which does what the child asks for.
#[test]
fn a_single_processor_is_enough() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_fork.c", &["-lpthread", "-O2"]) else { return };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let permitted = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = permitted.trim().split(['-', ',']).next().unwrap();
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg("threads").arg("32").arg("6").as_user(user);
        let run = run.started_by(&["taskset", "-c", first]).under(&["--local=16M", "--far=memory:"]);
        assert_eq!(run.finish().succeeded().stdout, "threads: 0 wrong\n", "{user:?}");
    }
}

#[test]
fn children_that_become_another_program_say_nothing() {
    over_both(&["execs", "32", "10"], "16M", |ran| {
        let ran = ran.succeeded();
        assert_eq!((ran.stdout.as_str(), ran.hints.as_str()), ("parent: 0 wrong\n", ""));
    });
}

#[test]
fn twenty_children_in_a_row_each_have_their_own_snapshot() {
    over_both(&["row", "8", "20"], "4M", |ran| {
        assert_eq!(ran.succeeded().stdout, "parent: 0 wrong\n");
    });
}

#[test]
fn a_fork_from_a_far_stack_is_refused_aloud() {
    over_both(&["stack", "32"], "16M", |ran| {
        assert_eq!(ran.exit, Exit::Code(74), "{ran:#?}");
        assert!(ran.hints.contains("far memory cannot follow this fork"), "{ran:#?}");
    });
}

#[test]
fn handlers_of_other_libraries_find_far_memory_on_both_sides() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_fork.c", &["-lpthread", "-O2"]) else { return };
    let Some(library) = stage.compiled("far_atfork.c", &["-shared", "-fPIC", "-pthread"]) else { return };
    for store in stage.stores() {
        let run = Run::new(&stage, &[&program]).arg("sides").arg("32").variable("LD_PRELOAD", &library);
        let ran = run.under(&["--local", "16M", "--far", &store]).finish().succeeded();
        assert!(!ran.stdout.contains("handler"), "{ran:#?}");
        assert!(ran.stdout.contains("parent: 0 wrong\n"), "{ran:#?}");
    }
}

#[test]
fn children_of_r_give_the_same_answer() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = "library(parallel); set.seed(1); x <- lapply(1:8, function(i) runif(5e5)); \
        s <- mclapply(1:8, function(i) { y <- x[[i]] * 2; x[[i]][7] <- 0; sum(sort(y) + x[[9 - i]]) }, \
        mc.cores = 2); s <- c(unlist(s), vapply(x, sum, 0)); \
        cat(format(s, digits = 17), system('echo out', intern = TRUE), sep = '\\n')";
    let words = ["Rscript", "--vanilla", "-e", script];
    let stock = Run::new(&stage, &words).finish().succeeded();
    assert_eq!(stock.stdout.lines().count(), 17);
    for user in users() {
        for store in stage.stores() {
            let run = Run::new(&stage, &words).as_user(user).under(&["--local=16M", "--far", &store]);
            let far = run.finish().succeeded();
            assert_eq!(far.stdout, stock.stdout);
            assert_eq!(far.hints, "");
        }
    }
}
