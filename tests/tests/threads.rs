//! Tests threads that share blocks, forks while threads run, and libraries that are loaded and unloaded.

use largesse_tests::{Exit, Run, Stage, users};

#[track_caller]
fn check(mode: &str, options: &[&str]) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("threads.c", &["-pthread"]) else { return };
    let Some(plugin) = stage.compiled("plugin.c", &["-shared", "-fPIC"]) else { return };
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg(mode).arg(&plugin).as_user(user).under(options);
        let ran = run.finish();
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(0), "every block was right\n"),
            "{user:?} {ran:#?}"
        );
        assert!(ran.counter("allocations") > 10, "{user:?} {ran:#?}");
    }
}

#[test]
fn short_lived_threads_pass_blocks_to_each_other() {
    check("hand", &[]);
    check("hand", &["--pages", "4k", "--min-kb", "64", "--header", "48"]);
}

#[test]
fn both_sides_work_after_a_fork_among_threads() {
    check("fork", &[]);
}

/// The thread that creates the heap reads the dynamic linker's list of objects under a lock. A fork at that time would
/// leave the child with a lock that is never released.
#[test]
fn both_sides_work_after_a_fork_during_the_first_request() {
    check("first", &[]);
}

#[test]
fn two_threads_may_fork_at_once() {
    check("forks", &[]);
}

#[test]
fn heap_can_be_listed_while_threads_allocate_and_fork() {
    check("watch", &[]);
}

#[test]
fn blocks_outlive_the_library_that_allocated_them() {
    check("plugin", &[]);
}

#[test]
fn fork_handlers_of_other_libraries_may_allocate() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("threads.c", &["-pthread"]) else { return };
    let Some(handlers) = stage.compiled("atfork.c", &["-shared", "-fPIC", "-pthread"]) else { return };
    // A library that is preloaded after ours runs its constructor before ours, like a dependency of a library.
    let run = Run::new(&stage, &[&program]).arg("fork").variable("LD_PRELOAD", &handlers);
    let without = run.finish();
    assert_eq!((without.exit, without.stdout.as_str()), (Exit::Code(0), "every block was right\n"));
    let ran = run.under(&[]).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(0), "every block was right\n"), "{ran:#?}");
}

#[test]
fn threads_share_a_heap_with_an_empty_pool() {
    check("hand", &["--pages", "hugetlb"]);
}
