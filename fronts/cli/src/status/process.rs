//! Reads another process through `/proc`.

use super::decode::{self, Heap, Undecodable};
use super::error::StatusError;
use largesse_machine::Unread;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name in `maps` of the memfd that `largesse_report::MEMFD_NAME` names.
const SIGNPOST: &str = "/memfd:largesse (deleted)";
const LIBRARY: &str = "liblargesse.so";
/// Maximum number of characters of a command in headings.
const MOST_COMMAND: usize = 60;
/// Number of bytes that are read of a command line, which may be megabytes long.
const MOST_TYPED: u64 = 4096;
/// Number of bytes that are read of `maps`: enough for the kernel's default limit of 65530 mappings.
const MOST_MAPS: u64 = 64 << 20;

/// A process that has an address space and may be looked at.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) mappings: Vec<Mapping>,
}

/// A mapping, parsed from a line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: String,
}

impl Process {
    pub(super) fn open(pid: u32) -> Result<Process, StatusError> {
        let folder = format!("/proc/{pid}");
        let maps = read_text(&format!("{folder}/maps")).map_err(|error| StatusError::of(pid, error))?;
        let command = command(Path::new(&folder));
        if maps.is_empty() {
            return Err(StatusError::NoMemory { pid, command });
        }
        Ok(Process { pid, command, mappings: mappings(&maps) })
    }

    /// Returns whether the process publishes a report.
    pub(super) fn has_signpost(&self) -> bool {
        self.signpost().is_some()
    }

    /// Reads the report of the process's heap by `deadline`; returns `None` if the library is loaded but has published
    /// none yet.
    pub(super) fn heap(&self, deadline: Instant) -> Result<Option<Heap>, StatusError> {
        let pid = self.pid;
        let Some(signpost) = self.signpost() else {
            let loaded = self.mappings.iter().any(|mapping| mapping.name.ends_with(LIBRARY));
            let command = self.command.clone();
            return if loaded { Ok(None) } else { Err(StatusError::NotServed { pid, command }) };
        };
        let memory = File::open(format!("/proc/{pid}/mem")).map_err(|error| StatusError::of(pid, error))?;
        let read = |address, into: &mut [u8]| match Instant::now() {
            now if now < deadline => memory.read_exact_at(into, address),
            _ => Err(io::ErrorKind::TimedOut.into()),
        };
        let pause = || std::thread::sleep(Duration::from_millis(1));
        match decode::heap(signpost, read, pause) {
            Ok(heap) => Ok(Some(heap)),
            // The memory of a process that has just ended cannot be read.
            Err(Undecodable::Unread(_)) if has_ended(pid) => Err(StatusError::NoSuchProcess { pid }),
            Err(Undecodable::Unread(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(StatusError::of(pid, error))
            }
            Err(Undecodable::Unread(error)) if error.kind() == io::ErrorKind::TimedOut => {
                Err(StatusError::Slow { pid })
            }
            Err(why) => Err(StatusError::Report { pid, why }),
        }
    }

    /// Returns the bytes of `[address, address + size)` that are mapped and belong to no file.
    pub(super) fn anonymous(&self, address: u64, size: u64) -> u64 {
        let end = address.saturating_add(size);
        let anonymous = self.mappings.iter().filter(|mapping| !mapping.name.starts_with('/'));
        anonymous.map(|mapping| mapping.end.min(end).saturating_sub(mapping.start.max(address))).sum()
    }

    fn signpost(&self) -> Option<u64> {
        self.mappings.iter().find(|mapping| mapping.name == SIGNPOST).map(|mapping| mapping.start)
    }
}

/// Returns whether a process has ended. The program of a running process may exist but be unreadable.
fn has_ended(pid: u32) -> bool {
    let program = std::fs::metadata(format!("/proc/{pid}/exe"));
    program.is_err_and(|error| matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)))
}

/// Returns the numbers of all processes that `/proc` shows, in order.
pub(super) fn all() -> Result<Vec<u32>, StatusError> {
    let not_known = |error: io::Error| match Unread::of(Path::new("/"), "/proc", &error) {
        Some(unread) => StatusError::NoProc(unread),
        None => StatusError::Other { pid: std::process::id(), error },
    };
    // A hidden /proc shows no process, not even this one.
    let entries =
        std::fs::metadata("/proc/self").and_then(|_| std::fs::read_dir("/proc")).map_err(not_known)?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut pids: Vec<u32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Returns the first `MOST_MAPS` bytes of a file as text; bytes that are no UTF-8, as in file names, are replaced.
pub(super) fn read_text(path: &str) -> io::Result<String> {
    first_bytes(Path::new(path), MOST_MAPS).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn first_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes).map(|_| bytes)
}

fn mappings(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(mapping).collect()
}

/// Parses a line `start-end rights offset device inode    name` of `maps` or `smaps`.
pub(super) fn mapping(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let name = rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start();
    (start < end).then(|| Mapping { start, end, name: name.to_owned() })
}

/// Returns the command line of a process in one printable line.
fn command(folder: &Path) -> String {
    let read = |name| first_bytes(&folder.join(name), MOST_TYPED).unwrap_or_default();
    let typed = read("cmdline");
    printable(if typed.is_empty() { read("comm") } else { typed })
}

/// Returns untrusted text without control characters, cut to `MOST_COMMAND` characters.
fn printable(mut text: Vec<u8>) -> String {
    text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    let clean = largesse_text::line(text.trim_ascii());
    match clean.char_indices().nth(MOST_COMMAND) {
        Some((place, _)) => format!("{}…", &clean[..place]),
        None => clean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_parsed() {
        let text = "\
7f00-7f10 rw-p 00000000 00:00 0 \n\
7f20-7f30 rw-s 00000000 00:01 1025                       /memfd:largesse (deleted)\n\
7f40-7f48 r--p 00000000 fd:01 9 /a b/lib.so\n\
Rss:   4 kB\n\
nonsense\n";
        let found = mappings(text);
        let names: Vec<_> = found.iter().map(|mapping| mapping.name.as_str()).collect();
        assert_eq!(names, ["", SIGNPOST, "/a b/lib.so"]);
        let process = Process { pid: 1, command: String::new(), mappings: found };
        assert_eq!(process.signpost(), Some(0x7f20));
        assert_eq!(process.anonymous(0x7f08, 0x100), 8);
        assert_eq!(process.anonymous(u64::MAX, u64::MAX), 0);
    }

    #[test]
    fn commands_are_printable() {
        assert_eq!(printable(b"R\x1b[2J\0-f\ta\xff.R\n\0".into()), "R\\u001b[2J -f\\ta\\xff.R");
        assert_eq!(printable("é".repeat(100).into()).chars().count(), MOST_COMMAND + 1);
    }
}
