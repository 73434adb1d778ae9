//! Runs programs in a memory control group of their own, of version 1 or 2. Making one needs root.
//!
//! A group counts the memory of all its processes and the page cache that they use. Without swap, the kernel kills a
//! process of a group that needs more than the limit.

use super::Result;
use std::fs::{File, OpenOptions, create_dir, read_to_string, remove_dir, write};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Mount points of the control groups of version 2 and of version 1's memory controller.
const VERSION_2: &str = "/sys/fs/cgroup";
const VERSION_1: &str = "/sys/fs/cgroup/memory";
/// Longest time in which killed processes leave their group.
const LEAVE: Duration = Duration::from_secs(20);

/// A control group, which is removed with its processes when it is dropped.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    folder: PathBuf,
}

impl ControlGroup {
    /// Returns the folder of the group of this name; the error says why there can be none.
    pub(crate) fn folder(name: &str) -> Result<PathBuf> {
        let controllers = Path::new(VERSION_2).join("cgroup.controllers");
        let root = match read_to_string(controllers) {
            Ok(all) if all.split_whitespace().any(|one| one == "memory") => {
                let handed_on = write(Path::new(VERSION_2).join("cgroup.subtree_control"), "+memory");
                handed_on.map_err(|why| format!("{VERSION_2}/cgroup.subtree_control: {why}"))?;
                VERSION_2
            }
            _ if Path::new(VERSION_1).join("memory.limit_in_bytes").exists() => VERSION_1,
            _ => return Err(format!("there is no memory controller in {VERSION_2} or {VERSION_1}")),
        };
        Ok(Path::new(root).join(name))
    }

    /// Makes a group with `limit` bytes of memory, and with swap only if asked for.
    pub(crate) fn make(folder: &Path, limit: u64, swap: bool) -> Result<ControlGroup> {
        create_dir(folder).map_err(|why| format!("the control group {}: {why}", folder.display()))?;
        let group = ControlGroup { folder: folder.to_owned() };
        let set = |name: &str, value: &str| {
            let path = folder.join(name);
            // A kernel without swap accounting lacks the files of swap.
            let needed = path.exists() || !name.contains("sw");
            let done = if needed { write(&path, value) } else { Ok(()) };
            done.map_err(|why| format!("{}: {why}", path.display()))
        };
        let limit = limit.to_string();
        if folder.starts_with(VERSION_1) {
            set("memory.limit_in_bytes", &limit)?;
            if !swap {
                set("memory.memsw.limit_in_bytes", &limit)?;
                set("memory.swappiness", "0")?;
            }
        } else {
            set("memory.max", &limit)?;
            set("memory.swap.max", if swap { "max" } else { "0" })?;
        }
        Ok(group)
    }

    /// Lets `command` join the group before its program is executed.
    pub(crate) fn confine(&self, command: &mut Command) -> Result<()> {
        let path = self.folder.join("cgroup.procs");
        let procs: File =
            OpenOptions::new().write(true).open(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let join = move || {
            // SAFETY: the descriptor is open, since the closure owns the file, and the buffer has one byte.
            let done = unsafe { libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) };
            if done == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec the closure makes one system call and allocates no memory.
        unsafe { command.pre_exec(join) };
        Ok(())
    }

    /// Returns the number in the line that begins with `key`, in a file of the group; 0 if there is none.
    pub(crate) fn count(&self, file: &str, key: &str) -> u64 {
        number(&self.folder.join(file), key)
    }

    /// Returns how many processes were killed for lack of memory.
    pub(crate) fn killed(&self) -> u64 {
        self.count("memory.events", "oom_kill").max(self.count("memory.oom_control", "oom_kill"))
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        dissolve(&self.folder);
    }
}

/// Kills the processes of a group and removes it.
pub(crate) fn dissolve(folder: &Path) {
    let since = Instant::now();
    while folder.exists() && since.elapsed() < LEAVE {
        let all = read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for process in all.lines().filter_map(|line| line.parse().ok()).filter(|process| *process > 0) {
            // SAFETY: numbers only. The process is in a group that only we use.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
        if remove_dir(folder).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the number after `key` and a space, in a file of such lines; 0 if there is none.
pub(crate) fn number(path: &Path, key: &str) -> u64 {
    let text = read_to_string(path).unwrap_or_default();
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}
