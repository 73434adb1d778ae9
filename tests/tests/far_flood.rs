//! Tests an agent under a flood of connections from another user. The test is in a file of its own, so that it runs
//! alone, because it loads two processors for 30 s.

use largesse_tests::{
    Owner, Ran, Run, Stage, User, agent_for, agents, end, first_thread_ms, is_root, skipped,
};
use std::path::Path;

/// Times in ms while disturbers run.
struct Times {
    /// Ten forks of a program with an agent.
    far: u64,
    /// The same of a program without far memory: what the disturbers cost without an agent.
    plain: u64,
    /// CPU time of the agent's first thread during these forks.
    agent: u64,
}

fn forks_during(stage: &Stage, program: &Path, name: &str, agent: u32, disturbers: &[&Run<'_>]) -> Times {
    let mut running: Vec<_> = disturbers.iter().map(|it| it.start()).collect();
    let before = first_thread_ms(agent);
    let far = format!("--far=agent:{name}");
    let run = Run::new(stage, &[program]).arg("timed").arg("32").arg("10");
    let took = |ran: Ran| ran.succeeded().stdout.trim().parse::<u64>().expect("microseconds") / 1000;
    let far = took(run.clone().under(&["--local=8M", &far]).finish());
    let spent = first_thread_ms(agent) - before;
    let plain = took(run.finish());
    running.iter_mut().for_each(end);
    Times { far, plain, agent: spent }
}

/// Checks that four processes that connect as fast as they can slow an agent no more than four busy loops do.
// This test has been seen to fail when programs and the agent use only the fallback socket, without pauses.
#[test]
fn flood_costs_no_more_than_busy_loops() {
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
    // Other work on the machine can slow the runs with a flood more than those with loops: then they are repeated.
    let mut failures = Vec::new();
    for _ in 0..5 {
        let (mut floods, mut loops) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            floods.push(forks_during(&stage, &program, &name, agent, &[&flood, &queue, &flood, &queue]));
            loops.push(forks_during(&stage, &program, &name, agent, &[&busy; 4]));
        }
        match compare(&floods, &loops) {
            Ok(()) => return,
            Err(why) => failures.push(why),
        }
    }
    panic!("{failures:#?}");
}

/// Compares the runs with a flood with those with busy loops. The error says what took longer.
fn compare(floods: &[Times], loops: &[Times]) -> Result<(), String> {
    let sorted = |all: &[Times], time: fn(&Times) -> u64| {
        let mut all: Vec<_> = all.iter().map(time).collect();
        all.sort_unstable();
        all
    };
    let times = |time| (sorted(floods, time), sorted(loops, time));
    // On some days the kernel takes seconds to end a process while sockets are made and closed at this rate.
    let (flood, busy) = times(|it| it.plain);
    let kernel = flood[2].saturating_sub(busy[2]) + flood[4] - flood[0];
    let plain = format!("without an agent {flood:?} and {busy:?}");
    let (flood, busy) = times(|it| it.far);
    let bound = busy[2] * 6 / 5 + busy[4] - busy[0] + kernel;
    if flood[2] > bound {
        return Err(format!("ten forks took {flood:?} ms, and {busy:?} ms with busy loops; {plain}"));
    }
    // On a machine with other work the time of the forks says little.
    let (flood, busy) = times(|it| it.agent);
    if flood[2] > busy[2] + 100 {
        return Err(format!("the agent ran for {flood:?} ms, and {busy:?} ms with busy loops"));
    }
    Ok(())
}
