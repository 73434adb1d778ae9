//! Many threads, forks in their midst, objects that come and go.

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
fn threads_that_come_and_go_hand_blocks_to_each_other() {
    check("hand", &[]);
    check("hand", &["--pages", "4k", "--min-kb", "64", "--header", "48"]);
}

#[test]
fn a_fork_in_the_midst_of_threads_leaves_both_sides_working() {
    check("fork", &[]);
}

/// The thread that makes the heap looks at what the dynamic linker loaded, under a lock that stays taken in a child.
#[test]
fn a_fork_beside_the_first_block_leaves_both_sides_working() {
    check("first", &[]);
}

#[test]
fn two_threads_fork_at_once() {
    check("forks", &[]);
}

#[test]
fn threads_look_at_the_heap_while_others_allocate_and_fork() {
    check("watch", &[]);
}

#[test]
fn blocks_outlive_the_object_that_made_them() {
    check("plugin", &[]);
}

#[test]
fn fork_handlers_of_other_libraries_may_allocate() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("threads.c", &["-pthread"]) else { return };
    let Some(handlers) = stage.compiled("atfork.c", &["-shared", "-fPIC", "-pthread"]) else { return };
    // Preloaded behind ours, its constructor runs before ours, and a library's dependency likewise.
    let run = Run::new(&stage, &[&program]).arg("fork").variable("LD_PRELOAD", &handlers);
    let without = run.finish();
    assert_eq!((without.exit, without.stdout.as_str()), (Exit::Code(0), "every block was right\n"));
    let ran = run.under(&[]).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(0), "every block was right\n"), "{ran:#?}");
}

#[test]
fn threads_share_a_heap_whose_pool_has_nothing() {
    check("hand", &["--pages", "hugetlb"]);
}
