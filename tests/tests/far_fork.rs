//! A fork under far memory is a snapshot: neither side sees the writes of the other, and no page reads as zeros.

use largesse_tests::{Exit, Ran, Run, Stage, has_program, users, wait_until};
use std::path::Path;
use std::time::Duration;

/// Runs the program over each kind of store that needs no other program, and passes the result to `check`.
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

/// Waits until the folder is empty. An agent removes its own folder in it shortly after the program has ended.
#[track_caller]
fn is_emptied(folder: &Path) {
    let is_empty = || std::fs::read_dir(folder).unwrap().next().is_none();
    wait_until("the agent has removed its folder", Duration::from_secs(60), is_empty);
}

#[test]
fn both_sides_and_a_grandchild_keep_their_contents() {
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
fn thread_forks_while_others_fault() {
    over_both(&["threads", "32", "6"], "16M", |ran| {
        assert_eq!(ran.succeeded().stdout, "threads: 0 wrong\n");
    });
}

/// Threads that wait for a page yield the only processor to the agent, which handles the child's requests.
#[test]
fn one_processor_is_enough() {
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
fn children_that_execute_a_program_print_nothing() {
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
fn fork_from_a_far_stack_ends_with_a_message() {
    over_both(&["stack", "32"], "16M", |ran| {
        assert_eq!(ran.exit, Exit::Code(74), "{ran:#?}");
        assert!(ran.hints.contains("far memory cannot follow this fork"), "{ran:#?}");
    });
}

#[test]
fn fork_handlers_of_other_libraries_may_use_far_memory() {
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
