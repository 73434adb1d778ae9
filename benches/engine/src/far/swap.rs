//! The kernel's own ways to keep memory elsewhere: swap to a file, and to compressed memory (zram).
//!
//! # Picture
//! ```text
//!   bench ──on, off──► guard process ──► swapon, swapoff, zram, the swap file, the control group
//!     └── ends in any way: the pipe is closed ──► the guard switches everything off
//! ```
//! # Invariants
//! 1. All swap is off again when the bench has ended, whether by itself, by a signal or by SIGKILL. If the guard was
//!    killed, the bench switches it off.
//! 2. Nothing is switched on while less than [`FREE`] of memory is available, or other swap is on.

use crate::args::{GUARD, Peer};
use crate::engine::{ControlGroup, Result, available_mib, dissolve, reserve};
use largesse_terminal::say::complain;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::ffi::CString;
use std::fs::{File, OpenOptions, read_to_string, remove_file, write};
use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Least available memory for swap to be switched on, in MiB.
const FREE: u64 = 4 << 10;
const PAGE: u64 = 4096;
/// Number of times that the removal of a zram device is tried.
const TRIES: u32 = 200;
const ZRAM: &str = "/dev/zram";
const ZRAM_CONTROL: &str = "/sys/class/zram-control";

/// A request to the guard, which is a line of JSON. It answers with a line: a [`Result`].
#[derive(Debug, Deserialize, Serialize)]
enum SwapRequest {
    /// Switches swap on: by the peer, of this many bytes, in a new file of this name if it is one.
    On(Peer, u64, PathBuf),
    Off,
}

/// The guard process, as the bench sees it.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Name of the swap file.
    file: PathBuf,
    /// Folder of the control group of every run.
    pub(super) group: PathBuf,
    /// The file or device that is switched on.
    area: Option<String>,
}

impl Guard {
    /// Checks that `peers` are possible, says what will be switched on, and starts the guard. Swap files are made in
    /// `folder`.
    pub(super) fn start(peers: &[Peer], folder: &Path) -> Result<RefCell<Guard>> {
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return Err(
                "--peers switches swap on, which needs root: sudo largesse bench far --peers …".into()
            );
        }
        room()?;
        for peer in peers {
            match peer {
                Peer::Swap => check_ext4(folder)?,
                Peer::Zram if !Path::new(ZRAM_CONTROL).exists() => {
                    return Err("there is no zram in this kernel; perhaps as a module: modprobe zram".into());
                }
                Peer::Zram => {}
            }
        }
        let own = std::process::id();
        let file = folder.join(format!("largesse-swap-{own}"));
        let group = ControlGroup::folder(&format!("largesse-bench-{own}"))?;
        let words = peers.iter().map(|peer| match peer {
            Peer::Swap => format!("swap to the new file {} (ext4)", file.display()),
            Peer::Zram => "swap to a new zram device, compressed in this machine's memory".to_owned(),
        });
        complain!(
            "largesse bench: switches on, each for its own runs only: {}. Programs run in the control group {}. \
             Everything is switched off and removed when the bench ends, however it ends.",
            words.collect::<Vec<_>>().join("; "),
            group.display()
        );
        let program = largesse_terminal::own::path().map_err(|why| why.to_string())?;
        let mut process = Command::new(program)
            .args([GUARD, "--programs"])
            .arg(&group)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|why| format!("the guard of swap does not start: {why}"))?;
        let (requests, answers) = (process.stdin.take(), process.stdout.take());
        let answers = BufReader::new(answers.ok_or("the guard has no output")?);
        let guard = Guard { process, requests, answers, file, group, area: None };
        Ok(RefCell::new(guard))
    }

    /// Switches swap on, with room for `bytes`.
    pub(super) fn on(&mut self, peer: Peer, bytes: u64) -> Result<()> {
        self.area = Some(self.ask(&SwapRequest::On(peer, bytes, self.file.clone()))?);
        Ok(())
    }

    /// Switches off what is on.
    pub(super) fn off(&mut self) -> Result<()> {
        if self.area.is_some() {
            // A guard that does not answer has left it on, which `drop` must know.
            self.ask(&SwapRequest::Off)?;
            self.area = None;
        }
        Ok(())
    }

    fn ask(&mut self, request: &SwapRequest) -> Result<String> {
        let mut answer = String::new();
        let asked =
            self.requests.as_mut().map_or(Ok(()), |to| writeln!(to, "{}", serde_json::json!(request)));
        let heard = asked.and_then(|()| self.answers.read_line(&mut answer));
        let gone = |why: String| format!("the guard of swap has ended: {why}");
        heard.map_err(|why| gone(why.to_string()))?;
        serde_json::from_str::<Result<String>>(&answer).map_err(|why| gone(why.to_string()))?
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.requests.take());
        // A guard that was killed left swap on.
        if !self.process.wait().is_ok_and(|status| status.success()) {
            dissolve(&self.group);
            for area in [self.area.take(), Some(self.file.display().to_string())].into_iter().flatten() {
                switch_off(&area);
            }
        }
    }
}

/// Runs the guard: obeys the requests that it reads, and at their end undoes what is left. Its control group is in
/// `group`.
pub(crate) fn guard(group: Option<&Path>) -> Result<()> {
    // Of the signals that end the bench, none may end the guard first.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed: the signal is ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // SAFETY: no arguments.
    unsafe { libc::setsid() };
    let _ = write("/proc/self/oom_score_adj", "-1000");
    let mut area: Option<String> = None;
    for line in stdin().lines().map_while(std::io::Result::ok) {
        if let Some(area) = area.take() {
            switch_off(&area);
        }
        let answer = match serde_json::from_str(&line) {
            Ok(SwapRequest::On(peer, bytes, file)) => switch_on(peer, bytes, &file),
            Ok(SwapRequest::Off) => Ok(String::new()),
            Err(why) => Err(why.to_string()),
        };
        area = answer.clone().ok().filter(|area| !area.is_empty());
        let _ = writeln!(stdout(), "{}", serde_json::json!(answer));
    }
    if let Some(group) = group {
        dissolve(group);
    }
    if let Some(area) = area {
        switch_off(&area);
    }
    Ok(())
}

/// Switches swap of `bytes` bytes on. Returns the path of the file or device.
fn switch_on(peer: Peer, bytes: u64, file: &Path) -> Result<String> {
    room()?;
    let bytes = bytes.next_multiple_of(1 << 20);
    let area = match peer {
        Peer::Swap => file.display().to_string(),
        Peer::Zram => {
            let id =
                read_to_string(format!("{ZRAM_CONTROL}/hot_add")).map_err(|why| format!("zram: {why}"))?;
            format!("{ZRAM}{}", id.trim())
        }
    };
    prepare(peer, bytes, &area).inspect_err(|_| switch_off(&area)).map_err(|why| format!("{area}: {why}"))?;
    Ok(area)
}

fn prepare(peer: Peer, bytes: u64, area: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let file: File = match peer {
        Peer::Swap => {
            let file = options.write(true).create_new(true).mode(0o600).open(area)?;
            reserve(&file, bytes)?;
            file
        }
        Peer::Zram => {
            // Kernels without lz4 keep their default.
            let _ = write(zram(area, "comp_algorithm"), "lz4");
            write(zram(area, "disksize"), bytes.to_string())?;
            options.write(true).open(area)?
        }
    };
    // The header as in mkswap(8): version, last page, no bad pages, and the signature at the end of the first page.
    let last = u32::try_from(bytes / PAGE - 1).map_err(std::io::Error::other)?;
    for (word, at) in [1, last, 0].into_iter().zip([1024, 1028, 1032]) {
        file.write_all_at(&u32::to_ne_bytes(word), at)?;
    }
    file.write_all_at(b"SWAPSPACE2", PAGE - 10)?;
    file.sync_all()?;
    let name = CString::new(area)?;
    // SAFETY: a C string and a number.
    if unsafe { libc::swapon(name.as_ptr(), 0) } == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Switches off and removes the swap area at this path, whatever of it there is.
fn switch_off(area: &str) {
    let Ok(name) = CString::new(area) else { return };
    // SAFETY: a C string.
    if unsafe { libc::swapoff(name.as_ptr()) } != 0 && swaps().iter().any(|on| on == area) {
        let why = std::io::Error::last_os_error();
        complain!("largesse bench: swap is still on: {why}. Type: swapoff {area}");
        return;
    }
    match area.strip_prefix(ZRAM) {
        Some(id) => {
            // Programs that look at new devices keep it busy for a moment.
            for _ in 0..TRIES {
                let reset = write(zram(area, "reset"), "1");
                if reset.and_then(|()| write(format!("{ZRAM_CONTROL}/hot_remove"), id)).is_ok() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            complain!("largesse bench: {area} is still there. Type: echo {id} > {ZRAM_CONTROL}/hot_remove");
        }
        None => drop(remove_file(area)),
    }
}

/// Returns the path of an attribute of a zram device.
fn zram(device: &str, attribute: &str) -> PathBuf {
    Path::new("/sys/block").join(device.trim_start_matches("/dev/")).join(attribute)
}

/// Returns an error if there is too little memory for experiments, or other swap is on.
fn room() -> Result<()> {
    if let Some(area) = swaps().first() {
        return Err(format!("swap is on already, which programs would use, too. Type: swapoff {area}"));
    }
    match available_mib() {
        FREE.. => Ok(()),
        free => Err(format!("{free} MiB of memory are available; swap is switched on only with {FREE} MiB")),
    }
}

/// Returns the files and devices to which the kernel swaps.
fn swaps() -> Vec<String> {
    let listed = read_to_string("/proc/swaps").unwrap_or_default();
    listed.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns an error unless the folder is on a file system of which it is known that swap works.
fn check_ext4(folder: &Path) -> Result<()> {
    let name = CString::new(folder.as_os_str().as_encoded_bytes()).map_err(|why| why.to_string())?;
    // SAFETY: plain numbers, for which zero is a value.
    let mut about: libc::statfs = unsafe { core::mem::zeroed() };
    // SAFETY: a C string, and room for the answer.
    let done = unsafe { libc::statfs(name.as_ptr(), &raw mut about) };
    let why = match done {
        0 if about.f_type == libc::EXT4_SUPER_MAGIC => return Ok(()),
        0 => "it is not on ext4".to_owned(),
        _ => std::io::Error::last_os_error().to_string(),
    };
    Err(format!(
        "no swap file in {}: {why}. Name a file on an ext4 disk: --store file:PATH",
        folder.display()
    ))
}
