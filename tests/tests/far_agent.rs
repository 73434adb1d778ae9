//! The process beside the program that holds its far pages: it comes and goes with the program.

use largesse_tests::{Exit, Run, Stage, Steps, User, has_program, is_root, skipped, users};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const OVER_MEMORY: [&str; 2] = ["--local=16M", "--far=memory:"];

fn paged(stage: &Stage) -> Option<PathBuf> {
    stage.compiled("paged.c", &["-lpthread", "-O2"])
}

/// The agents that were started with this store for this process.
fn agents(store: &str, owner: u32) -> Vec<u32> {
    let words = format!("agent\0--store\0{store}\0--owner\0{owner}\0");
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let says = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.filter(|pid| says(pid).ends_with(words.as_bytes())).collect()
}

#[track_caller]
fn gone_within(patience: Duration, owner: u32) {
    let since = Instant::now();
    while let left @ [_, ..] = &agents("-", owner)[..] {
        assert!(since.elapsed() < patience, "agents {left:?} of {owner} are left");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One that would run for minutes.
fn for_minutes(stage: &Stage, user: User) -> Option<(Child, u32)> {
    Some(running(stage, user, &[paged(stage)?, "64".into(), "4".into(), "1000000000".into()]))
}

/// A program that has written to some of its 64 MiB, and its agent.
#[expect(clippy::zombie_processes, reason = "callers wait for it; without an agent the test is over")]
fn running(stage: &Stage, user: User, words: &[PathBuf]) -> (Child, u32) {
    let child = Run::new(stage, words).as_user(user).under(&OVER_MEMORY).start();
    let since = Instant::now();
    loop {
        // It has its block, and writes to it.
        if let [agent] = agents("-", child.id())[..]
            && anonymous(child.id()) > 12 << 10
        {
            return (child, agent);
        }
        assert!(since.elapsed() < Duration::from_secs(20), "there is no agent, or nothing is written");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// KiB of its anonymous memory that are here.
fn anonymous(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Its end, which must come in time.
#[track_caller]
fn ends_within(patience: Duration, child: &mut Child) -> ExitStatus {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if since.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the program goes on");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: a process of this test.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

fn kill(pid: u32) {
    signal(pid, libc::SIGKILL);
}

#[test]
fn a_killed_agent_is_the_end_of_the_program_with_a_message() {
    let stage = Stage::new();
    for user in users() {
        let Some((mut child, agent)) = for_minutes(&stage, user) else { return };
        kill(agent);
        let status = ends_within(Duration::from_secs(10), &mut child);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(74), "{user:?} {said}");
        assert!(said.contains("far memory is lost") && said.contains(&format!("process {agent}")), "{said}");
    }
}

fn agent_of(steps: &Steps) -> u32 {
    match agents("-", steps.id())[..] {
        [agent] => agent,
        ref several => panic!("{several:?}"),
    }
}

/// Whatever was stored is gone: a block that is not given would be a program that goes on without it.
#[test]
fn a_request_that_finds_the_agent_dead_is_the_end_of_the_program_too() {
    let stage = Stage::new();
    for user in users() {
        for step in ["more", "map", "forget"] {
            // All of it is here: nobody asks the agent for a page.
            let Some(mut steps) = Steps::under(&["--local=64M", "--far=memory:"], user, &stage) else {
                return;
            };
            let agent = agent_of(&steps);
            kill(agent);
            assert_eq!(steps.does(step), "", "{user:?} {step}");
            steps.ends_lost(&format!("process {agent}"));
        }
    }
}

#[test]
fn an_agent_that_is_stopped_is_waited_for() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::under(&["--local=8M", "--far=memory:"], user, &stage) else { return };
        let agent = agent_of(&steps);
        for (step, answer) in [("more", "more"), ("map", "map"), ("forget", "forget")] {
            signal(agent, libc::SIGSTOP);
            steps.is_told(step);
            std::thread::sleep(Duration::from_millis(700));
            signal(agent, libc::SIGCONT);
            assert_eq!(steps.says(), answer, "{user:?}");
        }
        assert_eq!(steps.end(), (Some(0), String::new()), "{user:?}");
    }
}

/// Neither gives up on the other.
#[test]
fn a_program_or_an_agent_that_is_stopped_goes_on_as_it_was() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        let words = [program.clone(), "64".into(), "4".into(), "6".into()];
        let (mut child, agent) = running(&stage, user, &words);
        for stopped in [agent, child.id(), agent, child.id()] {
            signal(stopped, libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(700));
            signal(stopped, libc::SIGCONT);
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        let status = ends_within(Duration::from_secs(20), &mut child);
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(0), "0 wrong\n"), "{user:?}");
    }
}

#[test]
fn a_killed_program_leaves_no_agent_and_no_shared_memory() {
    let stage = Stage::new();
    let before = fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    for user in users() {
        let Some((mut child, agent)) = for_minutes(&stage, user) else { return };
        let streams =
            ["0", "1", "2"].map(|stream| fs::read_link(format!("/proc/{agent}/fd/{stream}")).unwrap());
        assert!(streams.iter().all(|it| it == Path::new("/dev/null")), "{streams:?}");
        assert_eq!(fs::read_link(format!("/proc/{agent}/cwd")).unwrap(), Path::new("/"));
        child.kill().unwrap();
        child.wait().unwrap();
        gone_within(Duration::from_secs(10), child.id());
        assert!(fs::read_dir("/dev/shm").map_or(0, Iterator::count) <= before, "{user:?}");
    }
}

#[test]
fn the_exit_status_is_the_programs_and_its_pipes_close_with_it() {
    let stage = Stage::new();
    // The agent stays, for a program that has let go of the pipes.
    let script = "sleep 30 </dev/null >/dev/null 2>&1 & echo out; exit 7";
    let since = Instant::now();
    let ran = Run::new(&stage, &["sh", "-c", script]).under(&OVER_MEMORY).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(7), "out\n"), "{ran:#?}");
    // `finish` reads to the ends of both pipes.
    assert!(since.elapsed() < Duration::from_secs(25), "somebody kept the pipes open");
}

/// One after the other, at once, and in the place of the one before.
#[test]
fn all_programs_of_a_script_have_the_same_agent() {
    let stage = Stage::new();
    let Some(program) = paged(&stage) else { return };
    let script =
        "\"$0\" 48 2 2000 && { \"$0\" 48 2 2000 & \"$0\" 48 2 2000; wait; } && exec \"$0\" 48 2 2000";
    let ran = Run::new(&stage, &["sh", "-c", script]).arg(program).under(&OVER_MEMORY).finish().succeeded();
    assert_eq!(ran.stdout, "6291456 words, 0 wrong\n".repeat(4));
}

#[test]
fn a_program_that_closes_what_it_does_not_know_keeps_its_pages() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_trouble.c", &["-lpthread", "-O2"]) else { return };
    let run = Run::new(&stage, &[&program]).arg("closefrom").arg("32");
    let ran = run.under(&["--local=8M", "--far=memory:"]).finish().succeeded();
    assert_eq!(ran.stdout, "number 3\nnumbers 3 to 22\n0 wrong\n");
}

/// Two seconds over each store; `make soak` has the minute.
#[test]
fn eight_threads_over_four_times_local_memory_find_every_word() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        for store in stage.stores() {
            let run = Run::new(&stage, &[&program]).arg("64").arg("8").arg("2").as_user(user);
            let ran = run.under(&["--local=16M", "--far", &store]).finish().succeeded();
            assert_eq!(ran.stdout, "0 wrong\n", "{user:?} {store}");
        }
    }
}

/// Starts an agent over `memory:` for a process of this number, whose folder is below `base`; returns its name.
#[track_caller]
fn agent_for(stage: &Stage, user: User, base: &Path, owner: u32) -> String {
    let words: Vec<_> = user.prefix().iter().map(|word| (*word).to_owned().into()).collect();
    let words = [words, vec![stage.command().into_os_string()]].concat();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["agent", "--store", "memory:", "--owner", &owner.to_string()]);
    let permit_all = || {
        // SAFETY: a number.
        unsafe { libc::umask(0) };
        Ok(())
    };
    // SAFETY: one system call, between fork and exec. With another mask the socket's own mode would keep others out.
    unsafe { command.pre_exec(permit_all) };
    let ran = command.env("XDG_RUNTIME_DIR", base).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{user:?}: {said}");
    let name = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(name.lines().count(), 1, "{name}");
    name.trim_end().strip_prefix("agent:").expect("the name of an agent").to_owned()
}

/// Whether the socket in the folder of this name is listened to, and the one that has its key alone.
fn sockets(name: &str) -> [bool; 2] {
    let all = fs::read_to_string("/proc/net/unix").unwrap();
    let (_, last) = name.rsplit_once('/').expect("a folder");
    [format!(" {name}/agent"), format!(" @{last}")].map(|it| all.lines().any(|line| line.ends_with(&it)))
}

/// Waits until this is true, which must be soon.
#[track_caller]
fn soon(what: &str, mut is_true: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_true() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn any_user_may_start_an_agent() {
    let stage = Stage::new();
    for user in users() {
        let wrong = Command::new(stage.command()).args(["agent", "--store", "tape:"]).output().unwrap();
        assert_eq!(wrong.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("tape: is not a store"), "{wrong:?}");
        // Process 1 does not end; with a wrong store nothing starts.
        let name = agent_for(&stage, user, &stage.scratch(), 1);
        assert_eq!(sockets(&name), [true, true], "{user:?} {name}");
        agents("memory:", 1).into_iter().for_each(kill);
    }
}

/// Nobody is told its name.
#[test]
fn an_agent_to_whom_nobody_comes_ends() {
    let stage = Stage::new();
    let ran =
        Command::new(stage.command()).args(["agent", "--store", "memory:"]).stdin(Stdio::null()).output();
    let name = String::from_utf8(ran.unwrap().stdout).unwrap();
    let name = name.trim_end().trim_start_matches("agent:");
    assert_eq!(sockets(name), [true, true], "{name}");
    soon("the agent stays", || sockets(name) == [false, false]);
    assert!(!Path::new(name).exists(), "{name} is left");
}

#[test]
fn another_users_program_is_not_served() {
    if !is_root() {
        skipped("only root can become another user");
        return;
    }
    let stage = Stage::new();
    for (agents_user, user) in [(User::Unprivileged, User::Current), (User::Current, User::Unprivileged)] {
        let owner = Owner::new();
        let name = agent_for(&stage, agents_user, &stage.scratch(), owner.id());
        let far = format!("--far=agent:{name}");
        let run = Run::new(&stage, &["echo", "started"]).as_user(user);
        let ran = run.under(&["--local=16M", &far]).finish();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(125), ""), "{ran:#?}");
        // Root's agent is trusted, and closes the connection of another user.
        let words = ["belongs to another user", "no far memory: its agent cannot be reached"];
        let expected = words[usize::from(agents_user == User::Current)];
        assert!(ran.hints.contains(expected), "{ran:#?}");
    }
}

/// A process that does nothing, for which an agent stays; it ends when this is dropped.
struct Owner(Child);

impl Owner {
    fn new() -> Owner {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Owner(command.spawn().unwrap())
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn end(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

// Seen to fail when the folder has mode 0711.
#[test]
fn the_kernel_refuses_another_users_connection() {
    if !is_root() {
        skipped("only root can become another user");
        return;
    }
    let stage = Stage::new();
    let Some(knock) = stage.compiled("knock.c", &[]) else { return };
    let owner = Owner::new();
    let name = agent_for(&stage, User::Current, &stage.scratch(), owner.id());
    for (user, error) in [(User::Current, 0), (User::Unprivileged, libc::EACCES)] {
        let run = Run::new(&stage, &[&knock]).arg("once").arg(&name).as_user(user);
        assert_eq!(run.finish().succeeded().stdout, format!("{error}\n"), "{user:?}");
    }
}

// Seen to fail without the handler of SIGTERM, and when no stale folder is removed.
#[test]
fn the_agents_folder_goes_with_it() {
    let stage = Stage::new();
    for user in users() {
        for signal_sent in [None, Some(libc::SIGTERM), Some(libc::SIGKILL)] {
            let owner = Owner::new();
            let name = agent_for(&stage, user, &stage.scratch(), owner.id());
            let mode = fs::metadata(&name).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o700, "{user:?} {name}");
            let [agent] = agents("memory:", owner.id())[..] else { panic!("there is no agent") };
            match signal_sent {
                Some(number) => signal(agent, number),
                None => drop(owner),
            }
            soon("the agent stays", || sockets(&name) == [false, false]);
            if signal_sent == Some(libc::SIGKILL) {
                assert!(Path::new(&name).exists(), "{user:?}: somebody else has removed {name}");
                let owner = Owner::new();
                let next = agent_for(&stage, user, &stage.scratch(), owner.id());
                assert!(Path::new(&next).exists(), "{user:?} {next}");
                drop(owner);
                soon("the next agent stays", || sockets(&next) == [false, false]);
            }
            let left: Vec<_> = fs::read_dir(stage.scratch()).unwrap().map(|it| it.unwrap().path()).collect();
            assert!(left.is_empty(), "{user:?} {signal_sent:?}: {left:?}");
        }
    }
}

// Seen to fail when programs try the folder alone.
#[test]
fn a_process_that_does_not_see_the_folder_reaches_the_agent() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_fork.c", &["-lpthread", "-O2"]) else { return };
    if !is_root() || !has_program("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/mnt"]) {
        skipped("only root can change the root folder, or what is mounted");
        return;
    }
    let base = stage.scratch();
    let chroot = Run::new(&stage, &[&program]).arg("chroot").arg("24").arg(stage.path("."));
    let hide = r#"mount -t tmpfs none "$XDG_RUNTIME_DIR" && exec "$0" "$@""#;
    let words = ["unshare", "-m", "sh", "-c", hide].map(PathBuf::from);
    let mounted = Run::new(&stage, &words).arg(&program).arg("sides").arg("24");
    // There is no /dev/userfaultfd in the other root folder.
    let options = [OVER_MEMORY[0], OVER_MEMORY[1], "--fault-engine=user-mode"];
    for (run, sides) in [(chroot, 3), (mounted, 7)] {
        let ran = run.variable("XDG_RUNTIME_DIR", &base).under(&options).finish().succeeded();
        assert_eq!(ran.stdout.matches(": 0 wrong\n").count(), sides, "{ran:#?}");
    }
}

/// The milliseconds that ten forks over an agent take while these programs run, and those that its first thread runs.
fn forks_during(stage: &Stage, program: &Path, name: &str, agent: u32, disturbers: &[&Run<'_>]) -> [u64; 2] {
    let mut running: Vec<_> = disturbers.iter().map(|it| it.start()).collect();
    let before = busy_milliseconds(agent);
    let far = format!("--far=agent:{name}");
    let run = Run::new(stage, &[program]).arg("timed").arg("32").arg("10");
    let ran = run.under(&["--local=8M", &far]).finish().succeeded();
    let spent = busy_milliseconds(agent) - before;
    running.iter_mut().for_each(end);
    [ran.stdout.trim().parse::<u64>().expect("microseconds") / 1000, spent]
}

/// The time for which the first thread of a process has run.
fn busy_milliseconds(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    // SAFETY: a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.cast_unsigned();
    rest.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap() * 1000 / a_second).sum()
}

/// Four processes that connect as fast as they can cost the owner of the agent no more than four that count.
// Seen to fail when programs and the agent use the fallback alone, without pauses.
#[test]
fn a_flood_costs_no_more_than_busy_loops() {
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

/// A folder of a memory control group with this limit, removed at the end.
struct Group(PathBuf);

impl Group {
    fn new(name: &str, mib: u64) -> Option<Group> {
        let (root, limit) = if Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        } else {
            ("/sys/fs/cgroup", "memory.max")
        };
        let folder = Path::new(root).join(format!("largesse-{name}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Group(folder);
        fs::write(group.0.join(limit), (mib << 20).to_string()).ok()?;
        Some(group)
    }

    /// Words that run a command in it.
    fn words(&self) -> [String; 3] {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.0.display());
        ["sh".into(), "-c".into(), script]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// No signal, no death: `malloc` returns NULL when the agent's control group has no more memory.
#[test]
fn a_control_group_that_is_full_is_a_malloc_that_says_so() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_full.c", &["-O2"]) else { return };
    let Some(group) = Group::new("full", 256) else {
        skipped("no memory control group can be made here");
        return;
    };
    let words = group.words();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(stage.command()).args(["run", "--local=16M", "--far=memory:", "--"]);
    let ran = command.arg(program).env("LARGESSE_LIBRARY", stage.library()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{said} {ran:?}");
    let blocks: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!((16..32).contains(&blocks) && said.ends_with(", 0 wrong\n"), "{said}");
}
