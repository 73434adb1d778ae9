//! Keeps the heap below the limit on memory of the machine, of a control group, or of `--limit`.
//!
//! Exceeding a limit ends the process without notice, so the heap is told in advance how many bytes it may
//! hold: its resident bytes, and most of those that are available. The first reading is made with the heap; the helper
//! thread makes later ones, from files in a descriptor table of its own. `malloc` opens no file after the first large
//! block: a program may have forbidden that to itself, or rely on the number of its next descriptor.

use crate::heap::{self, LargeHeap};
use crate::limit_state;
use crate::message;
use core::ops::Range;
use largesse_machine::Room;
use largesse_pages::residency::{Answer, Inspector, Residency};
use largesse_pages::{base_page, descriptors};
use largesse_settings::MemoryLimit;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Number of bytes (or half, where fewer are available) that stay free for stacks, small requests and other processes
/// of the control group.
const SPARE: u64 = 64 << 20;
/// Least number of bytes that stay free with `--limit`; a tenth of the limit, where that is more.
const LEAST_RESERVE: u64 = 16 << 20;

/// The limit on memory, with the open files from which the available and the resident bytes are read.
#[derive(Debug)]
pub(crate) struct Limit {
    room: Room,
    pages: Option<Inspector>,
    own: OwnMemory,
}

/// The file that tells the resident bytes of the process.
#[derive(Debug)]
struct OwnMemory(Option<File>);

/// How far the process is from its limit, below which `--limit` keeps a reserve free. All sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Number of bytes until the reserve is reached; 0 within the reserve.
    pub(crate) before_reserve: u64,
    /// Number of bytes of the reserve that are in use.
    pub(crate) of_reserve: u64,
    /// Size of the whole reserve.
    pub(crate) reserve: u64,
    /// Number of resident bytes of this process.
    pub(crate) resident: u64,
}

impl Limit {
    /// Opens the files in the calling service thread, which gets its own descriptor table; returns `None` before Linux
    /// 5.9.
    pub(crate) fn of_own_thread() -> Option<Limit> {
        descriptors::own_table().ok()?;
        message::has_own_table();
        Some(Limit::open())
    }

    fn open() -> Limit {
        Limit { room: Room::open(Path::new("/")), pages: Inspector::open(None).ok(), own: OwnMemory::open() }
    }

    /// Sets the heap's limit from the bytes available now. Far memory has a bound of its own.
    pub(crate) fn refresh(&self, heap: &LargeHeap) {
        if !heap::is_far()
            && let Some(available) = self.available()
        {
            self.set(heap, self.resident(heap), available);
        }
    }

    fn set(&self, heap: &LargeHeap, resident: u64, available: u64) {
        heap.set_limit(self.of_heap(resident, available));
    }

    /// Returns the bytes that a heap may hold whose resident bytes are given.
    fn of_heap(&self, resident: u64, available: u64) -> usize {
        let all = resident.saturating_add(available);
        let usable =
            if limit_state::limit().is_some() { all.saturating_sub(self.reserve()) } else { usable(all) };
        usize::try_from(usable).unwrap_or(usize::MAX)
    }

    /// Returns the bytes that the heap may hold now.
    pub(crate) fn heap_limit(&self, heap: &LargeHeap) -> usize {
        self.available().map_or(usize::MAX, |available| self.of_heap(self.resident(heap), available))
    }

    /// Returns the bytes that the process may still use, if any limit is known.
    fn available(&self) -> Option<u64> {
        self.available_beside(0)
    }

    /// The same if `shared` more bytes are used in its groups, but not more in the process.
    fn available_beside(&self, shared: u64) -> Option<u64> {
        let own = own_bound().and_then(|bytes| Some(bytes.saturating_sub(self.own.resident()?)));
        let room = self.room.available().map(|bytes| bytes.saturating_sub(shared));
        room.into_iter().chain(own).min()
    }

    /// Returns the bytes that stay free with `--limit`.
    fn reserve(&self) -> u64 {
        (self.bytes() / 10).max(LEAST_RESERVE)
    }

    /// Returns the tightest limit in bytes: of the machine, the control groups, and `--limit`.
    pub(crate) fn bytes(&self) -> u64 {
        let machine = largesse_pages::physical_memory() as u64;
        self.room.group_limit().into_iter().chain(own_bound()).fold(machine, u64::min)
    }

    /// Returns what `--limit` leaves, if the kernel makes a copy of `shared` bytes that other processes have, too.
    pub(crate) fn left(&self, shared: u64) -> Left {
        let available = self.available_beside(shared).unwrap_or(u64::MAX);
        let reserve = self.reserve();
        Left {
            before_reserve: available.saturating_sub(reserve),
            of_reserve: reserve.saturating_sub(available),
            reserve,
            resident: self.own_resident(),
        }
    }

    /// Returns the resident bytes of the process, 0 if they cannot be read.
    pub(crate) fn own_resident(&self) -> u64 {
        self.own.resident().unwrap_or(0)
    }

    /// Returns the resident bytes of the heap; 0 before Linux 6.7, whose kernel cannot tell.
    pub(crate) fn resident(&self, heap: &LargeHeap) -> u64 {
        self.residency(heap, 0..heap.used_range()).resident
    }

    /// Returns which pages of a part of the heap's range are resident, by offset; none before Linux 6.7.
    pub(crate) fn residency(&self, heap: &LargeHeap, part: Range<usize>) -> Residency {
        let (start, _) = heap.range();
        let answer =
            self.pages.as_ref().map(|pages| pages.ask((start + part.start) as u64, part.len() as u64));
        match answer {
            Some(Answer::Exact(seen)) => seen,
            Some(Answer::NotPerAddress) | None => Residency::default(),
        }
    }
}

impl OwnMemory {
    fn open() -> OwnMemory {
        // `thread-self`: the files of the process are empty once its first thread has ended.
        OwnMemory(File::open("/proc/thread-self/statm").ok())
    }

    fn resident(&self) -> Option<u64> {
        let mut text = [0; 128];
        let len = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        resident_pages(core::str::from_utf8(&text[..len]).ok()?).map(|pages| pages * base_page() as u64)
    }
}

/// Returns the bytes that the process may have resident; `None`: only the limits around it count.
fn own_bound() -> Option<u64> {
    match limit_state::limit() {
        Some(MemoryLimit::Bytes(bytes)) => Some(bytes as u64),
        Some(MemoryLimit::Auto) | None => None,
    }
}

/// Returns the second number of `/proc/PID/statm`.
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

/// Sets the limit of a new heap. Returns the tightest limit in bytes.
pub(crate) fn first(heap: &LargeHeap) -> u64 {
    let limit = Limit::open();
    if let Some(available) = limit.available() {
        limit.set(heap, 0, available);
    }
    limit.bytes()
}

/// Returns how many of `all` bytes the heap may hold: at most 7/8, and all but [`SPARE`] or half, whichever is less.
fn usable(all: u64) -> u64 {
    all - (all / 8).max(SPARE.min(all / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_leaves_spare_bytes() {
        const MIB: u64 = 1 << 20;
        for (all, want) in [(0, 0), (60, 30), (128, 64), (200, 136), (4096, 3584), (24_576, 21_504)] {
            assert_eq!(usable(all * MIB), want * MIB, "of {all} MiB");
        }
    }

    #[test]
    fn resident_pages_are_the_second_number() {
        assert_eq!(resident_pages("5120 345 120 7 0 890 0\n"), Some(345));
        assert_eq!(resident_pages(""), None);
    }

    #[test]
    fn own_resident_bytes_are_read() {
        let resident = OwnMemory::open().resident().expect("proc is mounted");
        assert!((1 << 18..1 << 40).contains(&resident), "{resident} bytes are resident");
    }
}
