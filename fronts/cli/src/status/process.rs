//! Reads another process through `/proc`.

use super::decode::{self, Heap, Undecodable};
use super::error::StatusError;
use core::ops::Range;
use largesse_machine::Unread;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
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
/// Number of bytes that are read of `maps` and `smaps`, which a process may fill with long names.
const MOST_TEXT: u64 = 64 << 20;
/// Number of mappings that are kept of a process, twice the kernel's default limit.
pub(super) const MOST_MAPPINGS: usize = 1 << 17;

/// A process that has an address space and may be looked at.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) command: String,
    mappings: Mappings,
}

/// The mappings of a process, as far as they are needed: names take megabytes.
#[derive(Debug, Default)]
struct Mappings {
    are_any: bool,
    /// Address of the signpost.
    signpost: Option<u64>,
    has_library: bool,
    /// Mappings that belong to no file.
    anonymous: Vec<Range<u64>>,
}

impl Process {
    pub(super) fn open(pid: u32) -> Result<Process, StatusError> {
        let folder = format!("/proc/{pid}");
        let maps = File::open(format!("{folder}/maps")).and_then(Mappings::read);
        let mappings = maps.map_err(|error| StatusError::of(pid, error))?;
        let command = command(Path::new(&folder));
        if !mappings.are_any {
            return Err(StatusError::NoMemory { pid, command });
        }
        Ok(Process { pid, command, mappings })
    }

    /// Returns whether the process publishes a report.
    pub(super) fn has_signpost(&self) -> bool {
        self.mappings.signpost.is_some()
    }

    /// Reads the report of the process's heap by `deadline`; returns `None` if the library is loaded but has published
    /// none yet.
    pub(super) fn heap(&self, deadline: Instant) -> Result<Option<Heap>, StatusError> {
        let pid = self.pid;
        let Some(signpost) = self.mappings.signpost else {
            let loaded = self.mappings.has_library;
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
        let part = |at: &Range<u64>| at.end.min(end).saturating_sub(at.start.max(address));
        self.mappings.anonymous.iter().map(part).sum()
    }
}

impl Mappings {
    /// Reads the file `maps` line by line.
    fn read(maps: impl io::Read) -> io::Result<Mappings> {
        let mut mappings = Mappings::default();
        each_line(maps, |line| {
            mappings.are_any = true;
            let Some((at, name)) = mapping(line) else { return };
            if name == SIGNPOST {
                mappings.signpost.get_or_insert(at.start);
            }
            mappings.has_library |= name.ends_with(LIBRARY);
            if !name.starts_with('/') && mappings.anonymous.len() < MOST_MAPPINGS {
                mappings.anonymous.push(at);
            }
        })?;
        Ok(mappings)
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

/// Calls `see` with each line of the first [`MOST_TEXT`] bytes of a file; bytes that are no UTF-8, as in file names, are
/// replaced.
pub(super) fn each_line(file: impl io::Read, mut see: impl FnMut(&str)) -> io::Result<()> {
    let mut file = BufReader::new(file.take(MOST_TEXT));
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        see(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
    Ok(())
}

fn first_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes).map(|_| bytes)
}

/// Parses a line `start-end rights offset device inode    name` of `maps` or `smaps`: the addresses and the name.
pub(super) fn mapping(line: &str) -> Option<(Range<u64>, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let name = rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start();
    (start < end).then_some((start..end, name))
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
        let names: Vec<_> = text.lines().filter_map(mapping).map(|(_, name)| name).collect();
        assert_eq!(names, ["", SIGNPOST, "/a b/lib.so"]);
        let mappings = Mappings::read(text.as_bytes()).expect("text");
        assert_eq!((mappings.signpost, mappings.has_library), (Some(0x7f20), false));
        let process = Process { pid: 1, command: String::new(), mappings };
        assert_eq!(process.anonymous(0x7f08, 0x100), 8);
        assert_eq!(process.anonymous(u64::MAX, u64::MAX), 0);
    }

    #[test]
    fn commands_are_printable() {
        assert_eq!(printable(b"R\x1b[2J\0-f\ta\xff.R\n\0".into()), "R\\u001b[2J -f\\ta\\xff.R");
        assert_eq!(printable("é".repeat(100).into()).chars().count(), MOST_COMMAND + 1);
    }
}
