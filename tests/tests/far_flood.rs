//! Tests an agent under a flood of connections from another user. The test is in a file of its own, so that it runs
//! alone, because it loads two processors for 30 s.

use largesse_tests::{
    Owner, Run, Stage, User, agent_for, agents, deep, end, first_thread_ms, is_root, skipped,
};
use std::path::Path;

/// Returns two times in ms that are measured while `disturbers` run: that of ten forks of a program with an agent, and
/// the CPU time of the agent's first thread.
fn forks_during(stage: &Stage, program: &Path, name: &str, agent: u32, disturbers: &[&Run<'_>]) -> [u64; 2] {
    let mut running: Vec<_> = disturbers.iter().map(|it| it.start()).collect();
    let before = first_thread_ms(agent);
    let far = format!("--far=agent:{name}");
    let run = Run::new(stage, &[program]).arg("timed").arg("32").arg("10");
    let ran = run.under(&["--local=8M", &far]).finish().succeeded();
    let spent = first_thread_ms(agent) - before;
    running.iter_mut().for_each(end);
    [ran.stdout.trim().parse::<u64>().expect("microseconds") / 1000, spent]
}

/// Checks that four processes that connect as fast as they can slow an agent no more than four busy loops do.
// This test has been seen to fail when programs and the agent use only the fallback socket, without pauses. Since
// 26 November it also fails about every second time without a change: some forks take seconds. The cause is open.
#[test]
fn flood_costs_no_more_than_busy_loops() {
    if !deep() {
        skipped("it fails about every second time; LARGESSE_DEEP=1 runs it");
        return;
    }
    if !is_root() {
        skipped("only root can become another user");
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_fork.c", &["-lpthread", "-O2"]) else { return };
    let Some(knock) = stage.compiled("knock.c", &[]) else { return };
    let owner = Owner::new();
    let name = agent_for(&stage, User::Current, &stage.scratch(), owner.id());
    let [agent] = agents("memory:", owner.id())[..] else { panic!("there is no agent") };
    let knock = |what: &str| Run::new(&stage, &[&knock]).arg(what).arg(&name).as_user(User::Unprivileged);
    let (flood, queue, busy) = (knock("flood"), knock("queue"), knock("busy"));
    let (mut floods, mut loops) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        floods.push(forks_during(&stage, &program, &name, agent, &[&flood, &queue, &flood, &queue]));
        loops.push(forks_during(&stage, &program, &name, agent, &[&busy; 4]));
    }
    let sorted = |all: &[[u64; 2]], which: usize| {
        let mut all: Vec<_> = all.iter().map(|it| it[which]).collect();
        all.sort_unstable();
        all
    };
    let (flood, busy) = (sorted(&floods, 0), sorted(&loops, 0));
    let bound = busy[2] * 6 / 5 + busy[4] - busy[0];
    assert!(flood[2] <= bound, "ten forks took {flood:?} ms, and {busy:?} ms with busy loops");
    // On a machine with other work the time of the forks says little.
    let (flood, busy) = (sorted(&floods, 1), sorted(&loops, 1));
    assert!(flood[2] <= busy[2] + 100, "the agent ran for {flood:?} ms, and {busy:?} ms with busy loops");
}
