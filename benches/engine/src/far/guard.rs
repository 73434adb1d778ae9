//! Runs programs in a control group in which the kernel evicts memory by its own means: swap to a file, or to
//! compressed memory (zram).
//!
//! # Picture
//! ```text
//!   bench ──on, off──► guard-swap.sh ──► swapon, swapoff, zram, the swap file, the control group
//!     └── ends in any way: the pipe is closed ──► the guard switches everything off
//! ```
//! A control group counts the memory of all its processes and the page cache that they use. Without swap, the kernel
//! kills a process of a group that needs more than the limit.
//! # Invariants
//! 1. All swap is off again when the bench has ended, whether by itself, by a signal or by SIGKILL. If the guard was
//!    killed, the bench has another one switch it off.
//! 2. Nothing is switched on while less than [`FREE`] of memory is available, or other swap is on.

use crate::args::Peer;
use crate::engine::{Ended, Result, Run, available_mib, field, printed, run};
use largesse_terminal::name;
use largesse_terminal::say::complain;
use serde_json::json;
use std::fs::{OpenOptions, read_to_string};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Least available memory at which swap may be switched on, in MiB.
const FREE: u64 = 4 << 10;

/// The process that switches swap on and off, as the bench sees it. The bench writes requests to its input and reads
/// its answers.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    answers: BufReader<ChildStdout>,
    /// Path of the swap file.
    file: PathBuf,
    /// Folder of the control group in which each program runs.
    group: PathBuf,
    /// The swap file or zram device that is switched on; empty if none is.
    area: String,
}

impl Guard {
    /// Checks that `peers` are possible, prints what will be switched on, and starts the guard. Swap files are made in
    /// `folder`.
    pub(super) fn start(peers: &[Peer], folder: &Path) -> Result<Guard> {
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return Err(
                "--peers switches swap on, which needs root: sudo largesse bench far --peers …".into()
            );
        }
        check_room()?;
        let (shown, file) = (name(folder), folder.join(format!("largesse-swap-{}", std::process::id())));
        let mut words = Vec::new();
        for peer in peers {
            words.push(match peer {
                Peer::Swap if !is_ext4(folder) => {
                    return Err(format!(
                        "no swap file in {shown}: it is no folder on ext4. Name a file on an ext4 disk: --store file:PATH"
                    ));
                }
                Peer::Swap => format!("swap to the new file {} (ext4)", name(&file)),
                Peer::Zram if !Path::new("/sys/class/zram-control").exists() => {
                    return Err("there is no zram in this kernel; perhaps as a module: modprobe zram".into());
                }
                Peer::Zram => "swap to a new zram device, compressed in this machine's memory".to_owned(),
            });
        }
        let started = script(&file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.map_err(|why| format!("the guard of swap does not start: {why}"))?;
        let answers = BufReader::new(process.stdout.take().ok_or("the guard has no output")?);
        let mut guard = Guard { process, answers, file, group: PathBuf::new(), area: String::new() };
        guard.group = guard.answer()?.into();
        complain!(
            "largesse bench: switches on, each for its own runs only: {}. Programs run in the control group {}. \
             Everything is switched off and removed when the bench ends, however it ends.",
            words.join("; "),
            name(&guard.group)
        );
        Ok(guard)
    }

    /// Runs `command` in the control group with a limit of `limit` bytes and, if `swap` is given, with a peer's swap
    /// of that many bytes. The result has the group's number of major faults and the most memory that it was charged,
    /// and the number of pages that the machine swapped.
    pub(super) fn run(
        &mut self,
        limit: u64,
        swap: Option<(Peer, u64)>,
        mut command: Command,
        cap: Duration,
    ) -> Result<Run, Ended> {
        let kind = swap.map_or("none", |(peer, _)| peer.name());
        let bytes = swap.map_or(0, |(_, bytes)| bytes.next_multiple_of(1 << 20));
        if swap.is_some() {
            check_room()?;
        }
        self.area = self.ask(&format!("{kind} {bytes} {limit}"))?;
        let before = swapped();
        let done = self.confine(&mut command).map_err(Ended::Failed).and_then(|()| run(command, cap));
        let after = swapped();
        let count = |file: &str, key: &str| number(&self.group.join(file), key);
        let faults = count("memory.stat", "pgmajfault");
        let peak = ["memory.peak", "memory.max_usage_in_bytes"].iter().find_map(|file| {
            read_to_string(self.group.join(file)).ok()?.trim_end().parse::<u64>().ok() // absent before Linux 5.19
        });
        let killed = count("memory.events", "oom_kill").max(count("memory.oom_control", "oom_kill"));
        // A guard that does not answer has left swap on, which `drop` must know.
        self.area = self.ask("off")?;
        let mut run = match done {
            Err(Ended::Failed(_)) if killed > 0 => return Err(Ended::OutOfMemory),
            done => done?,
        };
        run.more.insert("group".into(), json!({ "major_faults": faults, "peak_bytes": peak }));
        if swap.is_some() {
            let [read, written] = [0, 1].map(|it| after[it] - before[it]);
            let swap = json!({ "in": read, "out": written, "major_faults": faults });
            run.more.insert("swap".into(), swap);
        }
        Ok(run)
    }

    /// Lets `command` join the control group before its program is executed.
    fn confine(&self, command: &mut Command) -> Result<()> {
        let path = self.group.join("cgroup.procs");
        let opened = OpenOptions::new().write(true).open(&path);
        let processes = opened.map_err(|why| format!("{}: {why}", name(&path)))?;
        let join = move || {
            // SAFETY: the descriptor is open, since the closure owns the file, and the buffer has one byte.
            let done = unsafe { libc::write(processes.as_raw_fd(), c"0".as_ptr().cast(), 1) };
            if done == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec the closure makes one system call and allocates no memory.
        unsafe { command.pre_exec(join) };
        Ok(())
    }

    fn ask(&mut self, request: &str) -> Result<String> {
        let asked = self.process.stdin.as_mut().map_or(Ok(()), |to| writeln!(to, "{request}"));
        asked.map_err(|why| format!("the guard of swap has ended: {why}"))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|why| format!("the guard of swap: {why}"))?;
        match line.trim_end_matches('\n').split_once(' ') {
            Some(("done", area)) => Ok(area.to_owned()),
            Some((_, why)) => Err(why.to_owned()),
            None => Err("the guard of swap has ended".into()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // `wait` closes the pipe first, on which the guard ends. A guard that was killed left swap on, and another one
        // undoes it.
        if !self.process.wait().is_ok_and(|status| status.success()) {
            let _ = script(&self.file).arg(&self.area).stdin(Stdio::null()).stdout(Stdio::null()).status();
        }
    }
}

/// Returns the command that starts the guard in a process group of its own, which Ctrl-C in the terminal does not
/// reach.
fn script(file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", include_str!("guard-swap.sh"), "guard-swap"]);
    command.arg(format!("largesse-bench-{}", std::process::id())).arg(file).process_group(0);
    command
}

/// Returns an error if less memory than [`FREE`] is available, or if other swap is on.
fn check_room() -> Result<()> {
    let swaps = read_to_string("/proc/swaps").unwrap_or_default();
    if let Some(area) = swaps.lines().nth(1).and_then(|line| line.split_whitespace().next()) {
        return Err(format!("swap is on already, which programs would use, too. Type: swapoff {area}"));
    }
    match available_mib() {
        FREE.. => Ok(()),
        free => Err(format!("{free} MiB of memory are available; swap is switched on only with {FREE} MiB")),
    }
}

/// Returns whether the folder is on ext4, the only file system on which swap files are known to work.
fn is_ext4(folder: &Path) -> bool {
    // `stat` calls all versions by this name.
    printed("stat", &["-f", "-c", "%T", &folder.to_string_lossy()]).is_some_and(|kind| kind == "ext2/ext3")
}

/// Returns the numbers of pages that the machine has swapped in and out since its start.
fn swapped() -> [u64; 2] {
    ["pswpin", "pswpout"].map(|key| number(Path::new("/proc/vmstat"), key))
}

/// Returns the number after `key` in a file with a key and a number in each line, or 0 if there is no such line.
fn number(path: &Path, key: &str) -> u64 {
    field(path, key, ' ').and_then(|value| value.parse().ok()).unwrap_or(0)
}
