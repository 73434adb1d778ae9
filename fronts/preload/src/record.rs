//! Keeps the record of this process for the watcher of `largesse run --report` (`largesse_report::RecordWord`).
//!
//! The record is a file in the watcher's folder, mapped here, so that the watcher can read the last values however the
//! process ends. The counters are copied after each allocation and free of a large block. Bytes on large
//! pages are read from `/proc/self/smaps_rollup` before a block is freed while the size of all blocks is at its peak
//! and more than an eighth above the last reading, and at `exit`; the watcher reads them, too.

use crate::guard::Inside;
use crate::message::warn;
use crate::settings::{is_launched, options};
use crate::signals::Blocked;
use crate::{causes, far_counters, heap};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use largesse_pages::MapError;
use largesse_report::{COMMAND_WORDS, RECORD_VERSION, RECORD_WORDS, RecordWord};
use std::ffi::CString;
use std::path::Path;
use std::time::Instant;

type Words = [AtomicU64; RECORD_WORDS];

/// Points to the mapped record; null without a watcher.
static RECORD: AtomicPtr<Words> = AtomicPtr::new(null_mut());
/// Size of all blocks, in bytes, at the last reading of how many bytes are on large pages.
static READ_AT: AtomicU64 = AtomicU64::new(0);
/// Longest time for which the launched process, when it ends, waits for the watcher.
const PATIENCE: Duration = Duration::from_secs(2);

unsafe extern "C" {
    /// Registers a function for `exit`, as `atexit` does, and passes the exit status to it.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

fn words() -> Option<&'static Words> {
    // Acquire: pairs with the Release in `make`, so that the record is filled in.
    // SAFETY: a published record is never unmapped.
    unsafe { RECORD.load(Ordering::Acquire).as_ref() }
}

/// Holds the number of the process whose constructor made a record; a forked child has another number.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Returns whether this process made its record in the constructor, which a forked child before `exec` did not.
pub(crate) fn is_of_this_program() -> bool {
    STARTED.load(Ordering::Relaxed) == std::process::id()
}

/// Makes the record of this process, if there is a watcher.
pub(crate) fn start() {
    if make() {
        STARTED.store(std::process::id(), Ordering::Relaxed); // Relaxed: before the program's first thread
        // SAFETY: the function lives as long as this library, which is never unloaded.
        unsafe { on_exit(exiting, null_mut()) };
    }
}

/// Makes the record of a forked child: the one it inherited is its parent's.
pub(crate) fn in_child() {
    if !RECORD.swap(null_mut(), Ordering::AcqRel).is_null() {
        make();
    }
}

fn make() -> bool {
    let Some(folder) = &options().report else { return false };
    let pid = std::process::id();
    let Ok(path) = CString::new(format!("{folder}/{pid}")) else { return false };
    let at = match largesse_pages::share_file(&path, size_of::<Words>()) {
        Ok(at) => at,
        // Without a folder, or in another user's, there is no watcher for this process.
        Err(MapError { errno: libc::ENOENT | libc::EACCES, .. }) => return false,
        Err(MapError { errno, .. }) => {
            let why = std::io::Error::from_raw_os_error(errno);
            warn(&format!("process {pid} is missing in the report: {folder}/{pid} cannot be written: {why}"));
            return false;
        }
    };
    let record = at.cast::<Words>().as_ptr();
    // SAFETY: the mapping has the size of `Words`, is aligned to a page, and is never unmapped.
    let words = unsafe { &*record };
    set(words, RecordWord::Pid, pid.into());
    set(words, RecordWord::Parent, std::os::unix::process::parent_id().into());
    set(words, RecordWord::Started, now());
    let command =
        std::fs::read("/proc/self/cmdline").unwrap_or_else(|_| invocation_name().to_bytes().to_vec());
    let places = words[RecordWord::Command as usize..].iter().take(COMMAND_WORDS);
    for (place, bytes) in places.zip(command.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
    // Release: pairs with the Acquire in `words`. The watcher reads the file, where the order of stores is kept.
    words[RecordWord::Version as usize].store(RECORD_VERSION, Ordering::Release);
    RECORD.store(record, Ordering::Release);
    true
}

/// Returns the name by which the program was started.
fn invocation_name() -> &'static CStr {
    unsafe extern "C" {
        static program_invocation_name: *const c_char;
    }
    // SAFETY: the C library sets it before it calls any constructor.
    let name = unsafe { program_invocation_name };
    // SAFETY: it is a C string that the C library never frees.
    unsafe { CStr::from_ptr(name) }
}

fn set(words: &Words, word: RecordWord, value: u64) {
    // Relaxed: no word depends on another one.
    words[word as usize].store(value, Ordering::Relaxed);
}

/// Returns the nanoseconds of `CLOCK_MONOTONIC`.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Copies the counters of the heap, if there is one, and of requests that were not granted, to the record.
pub(crate) fn update() {
    let Some(words) = words() else { return };
    let causes = causes::not_granted();
    let counters = heap::heap().map(|heap| heap.with_report(|report| report.counters.all()));
    let counters = counters.iter().map(|counters| (RecordWord::Counters, &counters[..]));
    for (from, values) in counters.chain([(RecordWord::NotGranted, &causes[..])]) {
        for (place, value) in words[from as usize..].iter().zip(values) {
            place.store(*value, Ordering::Relaxed);
        }
    }
}

/// Records the number of bytes on large pages before a block is freed, if the live blocks' total is at a new peak.
pub(crate) fn before_free() {
    if words().is_none() {
        return;
    }
    let Some(heap) = heap::heap() else { return };
    let (live, peak) = heap.with_report(|report| (report.counters.live_bytes, report.counters.peak_bytes));
    let last = READ_AT.load(Ordering::Relaxed);
    if live == peak && live > last + last / 8 {
        READ_AT.store(live, Ordering::Relaxed);
        read_large_bytes();
    }
}

/// Raises the peak of bytes on large pages to the present number. Far memory has none.
fn read_large_bytes() {
    let Some(words) = words().filter(|_| far_counters::all().is_none()) else { return };
    let _inside = Inside::enter();
    // The watcher says so where this file cannot be read.
    let Ok(rollup) = std::fs::read_to_string("/proc/self/smaps_rollup") else { return };
    let bytes = largesse_report::large_bytes(&rollup);
    words[RecordWord::LargePeak as usize].fetch_max(bytes, Ordering::Relaxed);
}

/// Stores the bytes outside far memory in the record, which survives a sudden end of the process, unlike the report.
pub(crate) fn set_uncovered(bytes: u64) {
    if let Some(words) = words() {
        set(words, RecordWord::Uncovered, bytes);
    }
}

/// Updates the record when `exit` runs the destructors.
pub(crate) fn finish() {
    read_large_bytes();
    update();
}

/// Records the exit status as the last function that `exit` calls; in the launched process it waits for the watcher's
/// report.
extern "C" fn exiting(status: c_int, _: *mut c_void) {
    let _blocked = Blocked::handlers();
    let Some(words) = words() else { return };
    // The kernel passes the low eight bits to the parent.
    set(words, RecordWord::Status, u64::from(status.unsigned_abs() & 0xff));
    // Release: a reader that sees the end sees the status.
    words[RecordWord::Ended as usize].store(now(), Ordering::Release);
    if !is_launched() {
        return;
    }
    // The report must be complete when the process ends: its parent may read it at once.
    let Some(folder) = &options().report else { return };
    let _ = std::fs::write(format!("{folder}/{DONE}"), "");
    let began = Instant::now();
    while Path::new(folder).exists() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A file of this name tells the watcher to write the report.
const DONE: &str = "done";
