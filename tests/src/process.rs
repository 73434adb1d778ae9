//! Watches, signals and ends processes.

use crate::stage::Stage;
use crate::user::User;
use crate::wait::wait_until;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Returns the states of a process's threads: for each thread the letter in its `/proc` entry, such as `T` (stopped)
/// or `S` (sleeps).
#[must_use]
pub fn thread_states(pid: u32) -> String {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit(") ").next()?.chars().next()).collect()
}

/// Returns the KiB of anonymous memory that a process has in RAM, or 0 if it has ended.
#[must_use]
pub fn anonymous_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns the process numbers of the agents that hold far pages of process `owner` and were started with this
/// `--store`.
#[must_use]
pub fn agents(store: &str, owner: u32) -> Vec<u32> {
    let words = format!("agent\0--store\0{store}\0--owner\0{owner}\0");
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let command = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.filter(|pid| command(pid).ends_with(words.as_bytes())).collect()
}

/// Returns the names in `/dev/shm` that contain the number of a process, which is how programs name what they put
/// there. Other programs may add and remove names at the same time.
///
/// # Panics
///
/// If the folder cannot be read.
#[must_use]
pub fn shared_memory(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm").expect("the folder of shared memory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let of_the_process = |name: &String| {
        name.split(|letter: char| !letter.is_ascii_digit()).any(|number| number == pid.to_string())
    };
    names.filter(of_the_process).collect()
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: u32, number: i32) {
    // SAFETY: the call takes numbers only.
    unsafe { libc::kill(pid.cast_signed(), number) };
}

/// Stops all threads of a process.
#[track_caller]
pub fn stop(pid: u32) {
    signal(pid, libc::SIGSTOP);
    let stopped = || thread_states(pid).chars().all(|state| state == 'T');
    wait_until("every thread has stopped", Duration::from_secs(30), stopped);
}

/// A process that does nothing but have an agent. It is killed when this is dropped.
#[derive(Debug)]
pub struct Owner(Child);

impl Owner {
    /// Starts a process that sleeps.
    #[must_use]
    pub fn new() -> Owner {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Owner(command.spawn().expect("sleep, which comes with the system"))
    }

    /// Returns the number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Default for Owner {
    fn default() -> Owner {
        Owner::new()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Kills a child and waits for its end.
pub fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Starts an agent with the store `memory:` for the process `owner`, whose folder is made below `base`. Returns the
/// agent's name.
#[track_caller]
#[must_use]
pub fn agent_for(stage: &Stage, user: User, base: &Path, owner: u32) -> String {
    let words: Vec<_> = user.prefix().iter().map(|word| (*word).to_owned().into()).collect();
    let words = [words, vec![stage.command().into_os_string()]].concat();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["agent", "--store", "memory:", "--owner", &owner.to_string()]);
    let permit_all = || {
        // SAFETY: a number.
        unsafe { libc::umask(0) };
        Ok(())
    };
    // The mask permits everything, so that only the mode of the agent's folder can refuse other users.
    // SAFETY: the closure makes one system call between fork and exec.
    unsafe { command.pre_exec(permit_all) };
    let ran = command.env("XDG_RUNTIME_DIR", base).stdin(Stdio::null()).output().expect("the command starts");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{user:?}: {said}");
    let name = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(name.lines().count(), 1, "{name}");
    name.trim_end().strip_prefix("agent:").expect("the name of an agent").to_owned()
}

/// Returns the time that all threads of a process have run, in ticks of the kernel (`_SC_CLK_TCK`).
#[must_use]
pub fn processor_ticks(pid: u32) -> u64 {
    ticks_in(&format!("/proc/{pid}/stat"))
}

/// Returns the time in milliseconds that the first thread of a process has run.
#[must_use]
pub fn first_thread_ms(pid: u32) -> u64 {
    // SAFETY: the call takes and returns numbers only.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.cast_unsigned();
    ticks_in(&format!("/proc/{pid}/task/{pid}/stat")) * 1000 / a_second
}

/// Returns the sum of user and system time in a `stat` file of `/proc`, in ticks of the kernel, or 0 if the process
/// has ended.
fn ticks_in(path: &str) -> u64 {
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
