//! Watches the processes of the program while they run, and writes the report.
//!
//! Some processes are not watched: those that end too early, and those for which no descriptor is left. Their records
//! are read at the end, when the folder is listed.

use super::clock::now;
use super::compose::{self, Observation};
use super::end::{self, End};
use super::target::ReportTarget;
use crate::report::picture::{self, NoPicture};
use largesse_machine::Unread;
use largesse_terminal::name;
use largesse_terminal::say::{self, complain};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

/// Name of the file by which the program announces that it calls `exit` and waits for the report.
const DONE: &str = "done";
/// Nanoseconds between two readings of bytes on large pages: first and maximum interval.
const READINGS: (u64, u64) = (2_000_000, 500_000_000);
/// Reciprocal of the share of the time that readings may take.
const SHARE: u64 = 50;
/// Maximum number of processes that are watched in a run. Each needs a descriptor until it ends.
const MOST: usize = 10_000;
/// Number of descriptors that remain for reading files.
const SPARE: usize = 16;
/// Milliseconds between two listings of the folder where the kernel grants no inotify descriptor.
const LISTED_EVERY: u64 = 10;

struct Watched {
    /// A pidfd, or `None` once the process has ended.
    process: Option<OwnedFd>,
    seen: Observation,
}

/// Watches until the program has ended, then writes the report and removes the folder.
pub(super) fn watch(folder: &Path, program: u32, process: OwnedFd, target: &ReportTarget) {
    let mut watched = vec![Watched { process: Some(process), seen: Observation::new(program, now()) }];
    let mut known = HashSet::from([program]);
    let changes = changes_of(folder);
    let most = descriptors();
    let mut crowded = false;
    let (mut interval, mut read_at) = (READINGS.0, now());
    loop {
        let left = (read_at + interval).saturating_sub(now()).div_ceil(1_000_000);
        wait(changes.as_ref(), &mut watched, left);
        let names = changes.as_ref().map_or_else(|| names_in(folder), new_names);
        for pid in names.iter().filter_map(|name| name.parse().ok()) {
            if !known.insert(pid) {
                continue;
            }
            let running = watched.iter().filter(|one| one.process.is_some()).count();
            let has_room = running < most && watched.len() < MOST;
            crowded |= !has_room;
            if has_room && let Ok(process) = end::open(pid) {
                watched.push(Watched { process: Some(process), seen: Observation::new(pid, now()) });
            }
        }
        let done = names.iter().any(|name| name == DONE);
        if done || now() >= read_at + interval {
            let began = now();
            let alive = watched.iter_mut().filter(|one| one.process.is_some());
            alive.for_each(|one| one.seen.read_large_bytes());
            // A reading makes the kernel walk page tables, which slows the program down.
            let cost = now() - began;
            (interval, read_at) = ((interval * 2).min(READINGS.1).max(cost * SHARE), now());
        }
        if done || watched[0].process.is_none() {
            break;
        }
    }
    // The launcher removes the folder if it could not execute the program.
    if folder.exists() {
        let mut seen: Vec<Observation> = watched.into_iter().map(|one| one.seen).collect();
        seen.extend(missed(folder, &seen));
        if crowded {
            complain!(
                "largesse: more processes ran than the report can watch ({most} at a time by ulimit -n, {MOST} in all): \
                 how some of them ended is not known; raise ulimit -n"
            );
        }
        finish(folder, &seen, target);
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// Returns the processes with a record in the folder that were not watched.
fn missed(folder: &Path, seen: &[Observation]) -> Vec<Observation> {
    let seen: HashSet<u32> = seen.iter().map(|one| one.pid).collect();
    let mut pids: Vec<u32> = names_in(folder).iter().filter_map(|name| name.parse().ok()).collect();
    pids.retain(|pid| !seen.contains(pid));
    pids.sort_unstable();
    let not_watched = |pid| Observation { end: end::of_unwatched(pid), ..Observation::new(pid, u64::MAX) };
    pids.into_iter().map(not_watched).collect()
}

/// Raises the limit on open files as far as is permitted, and returns the number of processes that can be watched at a
/// time.
fn descriptors() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the answer, and is whole when it is read.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    usize::try_from(limit.rlim_cur).unwrap_or(MOST).saturating_sub(SPARE)
}

/// Waits at most `milliseconds` for a new file or the end of a process, and stores which processes ended and how.
fn wait(changes: Option<&File>, watched: &mut [Watched], milliseconds: u64) {
    let ready = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // `poll` ignores negative descriptors.
    let mut waiting = vec![ready(changes.map_or(-1, |file| file.as_raw_fd()))];
    waiting.extend(watched.iter().map(|one| ready(one.process.as_ref().map_or(-1, |it| it.as_raw_fd()))));
    let milliseconds = if changes.is_some() { milliseconds } else { milliseconds.min(LISTED_EVERY) };
    let limit = i32::try_from(milliseconds).unwrap_or(i32::MAX);
    // SAFETY: `waiting` has as many entries as the call is told.
    unsafe { libc::poll(waiting.as_mut_ptr(), waiting.len() as libc::nfds_t, limit) };
    for (one, _) in watched.iter_mut().zip(&waiting[1..]).filter(|(_, poll)| poll.revents != 0) {
        if let Some(process) = one.process.take() {
            one.seen.ended_at = now();
            one.seen.end = Some(end::of(one.seen.pid, &process));
        }
    }
}

/// Opens an inotify descriptor that reports new files in the folder, or returns `None` if the user has too many.
fn changes_of(folder: &Path) -> Option<File> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: takes numbers only.
    let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the kernel just made this descriptor, which has no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    // SAFETY: `path` is a C string that lives on.
    let done = unsafe { libc::inotify_add_watch(fd, path.as_ptr(), libc::IN_CREATE) };
    (done >= 0).then_some(file)
}

/// Returns the names of all files in the folder.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// Returns the names of files that were created since the last call.
fn new_names(mut changes: &File) -> Vec<String> {
    /// Number of bytes of an event before its name; the last four are the length of the name.
    const HEAD: usize = 16;
    let mut buffer = [0_u8; 1 << 16];
    let Ok(len) = changes.read(&mut buffer) else { return Vec::new() };
    let mut rest = &buffer[..len];
    let mut names = Vec::new();
    while let Some((head, after)) = rest.split_at_checked(HEAD) {
        let length = u32::from_ne_bytes([head[12], head[13], head[14], head[15]]) as usize;
        let Some((name, after)) = after.split_at_checked(length) else { break };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(length);
        names.push(String::from_utf8_lossy(&name[..end]).into_owned());
        rest = after;
    }
    names
}

fn finish(folder: &Path, seen: &[Observation], target: &ReportTarget) {
    let report = compose::report(folder, seen);
    let timeline = || compose::timeline(folder, &report);
    let path = match target {
        ReportTarget::Stdout => {
            say::note(compose::write(&report, timeline(), &mut std::io::stdout().lock()));
            let _ = say::end(ExitCode::SUCCESS);
            return;
        }
        ReportTarget::File(path) => path,
    };
    let write = |file| {
        let mut to = BufWriter::new(file);
        compose::write(&report, timeline(), &mut to)?;
        to.flush()
    };
    if let Err(error) = File::create(path).and_then(write) {
        complain!("largesse: cannot write the report to {}: {error}", name(path));
    }
    if path.extension().is_some_and(|extension| extension == "json") {
        let rows = timeline().map(|rows| rows.flat_map(|row| serde_json::from_str::<Value>(&row)));
        draw(picture::of_rows(&report, rows), path);
    }
}

/// Writes the picture of a report next to its file, if there is one.
fn draw(picture: Result<String, NoPicture>, path: &Path) {
    let picture_path = path.with_extension("svg");
    match picture.map(|picture| picture::write_unnamed(&picture_path, &picture)) {
        Ok(Err(error)) => complain!("largesse: {} {error}", name(&picture_path)),
        Err(error @ NoPicture::NotDrawn(_)) => complain!("largesse: {} {error}", name(path)),
        _ => {}
    }
}

impl Observation {
    fn new(pid: u32, at: u64) -> Observation {
        Observation { pid, seen_at: at, ended_at: 0, end: None::<End>, large_bytes: None, unread: None }
    }

    fn read_large_bytes(&mut self) {
        let file = format!("/proc/{}/smaps_rollup", self.pid);
        match std::fs::read_to_string(&file) {
            Ok(rollup) => {
                self.large_bytes = self.large_bytes.max(Some(largesse_report::large_bytes(&rollup)))
            }
            // The process has ended.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => self.unread = Unread::of(Path::new("/"), &file, &error).or(self.unread.take()),
        }
    }
}
