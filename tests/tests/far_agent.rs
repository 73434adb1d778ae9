//! The agent, a process that holds the far pages of a program: it starts and ends with the program.

use largesse_tests::{
    Exit, Owner, Run, Stage, Steps, User, agent_for, agents, anonymous_kib, has_program, is_root, poll,
    processor_ticks, shared_memory, signal, skipped, stop, users, wait_for, wait_for_exit, wait_until,
};
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time within which every awaited event must happen.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time for which a process is stopped: longer than any request takes.
const INTERRUPTION: Duration = Duration::from_millis(700);
const OVER_MEMORY: [&str; 2] = ["--local=16M", "--far=memory:"];

fn paged(stage: &Stage) -> Option<PathBuf> {
    stage.compiled("paged.c", &["-lpthread", "-O2"])
}

#[track_caller]
fn gone_within(deadline: Duration, owner: u32) {
    wait_until("no agent of the program is left", deadline, || agents("-", owner).is_empty());
}

/// Starts a program that would run for minutes. Returns it and its agent.
fn for_minutes(stage: &Stage, user: User) -> Option<(Child, u32)> {
    Some(running(stage, user, &[paged(stage)?, "64".into(), "4".into(), "1000000000".into()]))
}

/// Starts a program. Returns it and its agent once the program has written 12 MiB of its block.
fn running(stage: &Stage, user: User, words: &[PathBuf]) -> (Child, u32) {
    let child = Run::new(stage, words).as_user(user).under(&OVER_MEMORY).start();
    let agent = wait_for("the program has an agent and writes to its block", DEADLINE, || {
        let [agent] = agents("-", child.id())[..] else { return None };
        (anonymous_kib(child.id()) > 12 << 10).then_some(agent)
    });
    (child, agent)
}

fn kill(pid: u32) {
    signal(pid, libc::SIGKILL);
}

#[test]
fn killed_agent_ends_the_program_with_a_message() {
    let stage = Stage::new();
    for user in users() {
        let Some((mut child, agent)) = for_minutes(&stage, user) else { return };
        kill(agent);
        let status = wait_for_exit(&mut child, DEADLINE);
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

/// When the agent ends, all stored pages are lost. If `malloc` only returned NULL then, the program would continue
/// without them.
#[test]
fn request_to_a_dead_agent_ends_the_program() {
    let stage = Stage::new();
    for user in users() {
        for step in ["more", "map", "forget"] {
            // All pages are resident, so that no fault needs the agent.
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
fn requests_wait_for_a_stopped_agent() {
    let stage = Stage::new();
    for user in users() {
        let Some(mut steps) = Steps::under(&["--local=8M", "--far=memory:"], user, &stage) else { return };
        let agent = agent_of(&steps);
        for (step, answer) in [("more", "more"), ("map", "map"), ("forget", "forget")] {
            stop(agent);
            steps.is_told(step);
            // The length of the interruption is what is tested.
            std::thread::sleep(INTERRUPTION);
            signal(agent, libc::SIGCONT);
            assert_eq!(steps.says(), answer, "{user:?}");
        }
        assert_eq!(steps.end(), (Some(0), String::new()), "{user:?}");
    }
}

/// The program and the agent do not take each other for dead while one of them is stopped.
#[test]
fn stopped_program_or_agent_continues_with_its_data() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        let words = [program.clone(), "64".into(), "4".into(), "until-eof".into()];
        let (mut child, agent) = running(&stage, user, &words);
        for stopped in [agent, child.id(), agent, child.id()] {
            stop(stopped);
            // The length of the interruption is what is tested.
            std::thread::sleep(INTERRUPTION);
            let before = processor_ticks(child.id());
            signal(stopped, libc::SIGCONT);
            wait_until("the program goes on", DEADLINE, || processor_ticks(child.id()) > before);
        }
        drop(child.stdin.take());
        let status = wait_for_exit(&mut child, DEADLINE);
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((status.code(), said.as_str()), (Some(0), "0 wrong\n"), "{user:?}");
    }
}

#[test]
fn killed_program_leaves_no_agent_and_no_shared_memory() {
    let stage = Stage::new();
    for user in users() {
        let Some((mut child, agent)) = for_minutes(&stage, user) else { return };
        let streams =
            ["0", "1", "2"].map(|stream| fs::read_link(format!("/proc/{agent}/fd/{stream}")).unwrap());
        assert!(streams.iter().all(|it| it == Path::new("/dev/null")), "{streams:?}");
        assert_eq!(fs::read_link(format!("/proc/{agent}/cwd")).unwrap(), Path::new("/"));
        child.kill().unwrap();
        child.wait().unwrap();
        gone_within(DEADLINE, child.id());
        for owner in [child.id(), agent] {
            assert_eq!(shared_memory(owner), Vec::<String>::new(), "{user:?}");
        }
    }
}

#[test]
fn launcher_returns_the_status_and_the_agent_holds_no_pipe() {
    let stage = Stage::new();
    // The agent continues to run for `sleep`, which has closed the pipes.
    let script = "sleep 250 </dev/null >/dev/null 2>&1 & echo $!; exit 7";
    let ran = Run::new(&stage, &["sh", "-c", script]).under(&OVER_MEMORY).finish();
    assert_eq!(ran.exit, Exit::Code(7), "{ran:#?}");
    // `finish` reads to the ends of both pipes: another process that kept them open would have ended before.
    let sleeping: u32 = ran.stdout.trim().parse().expect(&ran.stdout);
    assert!(Path::new(&format!("/proc/{sleeping}")).exists(), "another process kept the pipes open");
    kill(sleeping);
}

/// The script runs programs one after the other, in parallel, and by `exec`.
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
fn program_that_closes_foreign_descriptors_keeps_its_pages() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_trouble.c", &["-lpthread", "-O2"]) else { return };
    let run = Run::new(&stage, &[&program]).arg("closefrom").arg("32");
    let ran = run.under(&["--local=8M", "--far=memory:"]).finish().succeeded();
    assert_eq!(ran.stdout, "number 3\nnumbers 3 to 22\n0 wrong\n");
}

/// The threads make a fixed number of accesses over each store. `make soak` runs the same program for a minute.
#[test]
fn eight_threads_over_four_times_local_memory_find_every_word() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_stress.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        for store in stage.stores() {
            let run = Run::new(&stage, &[&program]).arg("64").arg("8").arg("1024-steps").as_user(user);
            let ran = run.under(&["--local=16M", "--far", &store]).finish().succeeded();
            assert_eq!(ran.stdout, "0 wrong\n", "{user:?} {store}");
        }
    }
}

/// Returns whether an agent listens on the socket in the folder `name`, and whether one listens on the abstract socket
/// with the folder's last name.
fn sockets(name: &str) -> [bool; 2] {
    let all = fs::read_to_string("/proc/net/unix").unwrap();
    let (_, last) = name.rsplit_once('/').expect("a folder");
    [format!(" {name}/agent"), format!(" @{last}")].map(|it| all.lines().any(|line| line.ends_with(&it)))
}

#[test]
fn any_user_may_start_an_agent() {
    let stage = Stage::new();
    for user in users() {
        let wrong = Command::new(stage.command()).args(["agent", "--store", "tape:"]).output().unwrap();
        assert_eq!(wrong.status.code(), Some(125));
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("tape: is not a store"), "{wrong:?}");
        // The owner is process 1, which does not end.
        let name = agent_for(&stage, user, &stage.scratch(), 1);
        assert_eq!(sockets(&name), [true, true], "{user:?} {name}");
        agents("memory:", 1).into_iter().for_each(kill);
    }
}

/// No program knows the name of this agent, so that no program can connect to it.
#[test]
fn agent_without_clients_ends() {
    let stage = Stage::new();
    let ran =
        Command::new(stage.command()).args(["agent", "--store", "memory:"]).stdin(Stdio::null()).output();
    let name = String::from_utf8(ran.unwrap().stdout).unwrap();
    let name = name.trim_end().trim_start_matches("agent:");
    assert_eq!(sockets(name), [true, true], "{name}");
    wait_until("the agent ends", DEADLINE, || sockets(name) == [false, false]);
    assert!(!Path::new(name).exists(), "{name} is left");
}

#[test]
fn program_of_another_user_gets_no_far_memory() {
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

// This test has been seen to fail when the folder has mode 0711.
#[test]
fn connection_of_another_user_is_refused_by_the_kernel() {
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

// This test has been seen to fail without the handler of SIGTERM, and when stale folders are not removed.
#[test]
fn folder_of_an_agent_is_removed_with_it() {
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
            wait_until("the agent ends", DEADLINE, || sockets(&name) == [false, false]);
            if signal_sent == Some(libc::SIGKILL) {
                assert!(Path::new(&name).exists(), "{user:?}: another process has removed {name}");
                let owner = Owner::new();
                let next = agent_for(&stage, user, &stage.scratch(), owner.id());
                assert!(Path::new(&next).exists(), "{user:?} {next}");
                drop(owner);
                wait_until("the next agent ends", DEADLINE, || sockets(&next) == [false, false]);
            }
            let left: Vec<_> = fs::read_dir(stage.scratch()).unwrap().map(|it| it.unwrap().path()).collect();
            assert!(left.is_empty(), "{user:?} {signal_sent:?}: {left:?}");
        }
    }
}

// This test has been seen to fail when programs try only the socket in the folder.
#[test]
fn process_that_does_not_see_the_folder_reaches_the_agent() {
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

/// The folder of a memory control group with a limit. It is removed when this is dropped.
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

    /// Returns the start of a command line that runs the rest of it in this group: a shell that joins the group and
    /// then executes the program.
    fn words(&self) -> [String; 3] {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.0.display());
        ["sh".into(), "-c".into(), script]
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel removes the folder only when the group has no processes left. A test that has failed already must
        // not panic again here.
        let _ = poll(DEADLINE, || fs::remove_dir(&self.0).ok());
    }
}

/// `malloc` returns NULL when the agent's control group has no more memory. No process is killed.
#[test]
fn malloc_fails_when_the_control_group_is_full() {
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
