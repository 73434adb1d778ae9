//! Tests children of a program with large blocks, under `thp`, and under `hugetlb` with an almost empty pool. Linux
//! kills a child that writes to a hugetlb page which it shares with its parent if the pool is empty.

use largesse_tests::{Exit, Pool, Ran, Run, Stage, User, has_program, users};

#[track_caller]
fn delivered(ran: &Ran, user: User, words: &str) {
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(0), words), "{user:?} {ran:#?}");
}

#[test]
fn r_children_return_results_under_thp() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = stage.program("pool.R");
    for user in users() {
        let run = Run::new(&stage, &["Rscript", "--vanilla"]).arg(&script).as_user(user);
        let ran = run.under(&["--pages", "thp"]).finish();
        delivered(&ran, user, "every child delivered\n");
        assert!(ran.counter("allocations") > 20, "{ran:#?}");
    }
}

#[test]
fn r_children_return_results_on_an_almost_empty_pool() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = stage.program("pool.R");
    let Some(_pool) = Pool::of(8) else { return };
    for user in users() {
        let run = Run::new(&stage, &["Rscript", "--vanilla"]).arg(&script).as_user(user);
        let ran = run.under(&["--pages", "hugetlb"]).finish();
        delivered(&ran, user, "every child delivered\n");
        assert!(ran.not_granted("hugetlb-pool-empty") > 0, "{ran:#?}");
        assert!(ran.counter("allocations") > 20, "{ran:#?}");
    }
}

#[test]
fn child_has_no_pool_pages_and_counts_the_demotion() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("pool.c", &["-pthread"]) else { return };
    let Some(_pool) = Pool::of(7) else { return };
    for user in users() {
        let ran = Run::new(&stage, &[&program]).as_user(user).under(&["--pages", "hugetlb"]).finish();
        let (first, rest) = ran.stdout.split_once('\n').unwrap_or_default();
        assert!(first.starts_with("parent: ") && !first.contains(" 0 hugetlb"), "{user:?} {ran:#?}");
        assert!(first.contains("pool empty yes"), "{user:?} {ran:#?}");
        assert_eq!((ran.exit, rest), (Exit::Code(0), "both went on\n"), "{user:?} {ran:#?}");
    }
}

#[test]
fn child_survives_a_fork_while_another_thread_writes() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("pool.c", &["-pthread"]) else { return };
    let Some(_pool) = Pool::of(7) else { return };
    let ran = Run::new(&stage, &[&program]).arg("writer").under(&["--pages", "hugetlb"]).finish();
    assert!(ran.exit == Exit::Code(0) && ran.stdout.ends_with("both went on\n"), "{ran:#?}");
}

#[test]
fn threads_and_forks_work_on_an_almost_empty_pool() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("threads.c", &["-pthread"]) else { return };
    let Some(_pool) = Pool::of(12) else { return };
    for mode in ["hand", "fork", "forks"] {
        let ran = Run::new(&stage, &[&program]).arg(mode).under(&["--pages", "hugetlb"]).finish();
        delivered(&ran, User::Current, "every block was right\n");
    }
}
