//! Takes pages out of the program, and keeps their contents in staging buffers until they are written to the store.
//!
//! An evicted page is *moved* (`UFFDIO_MOVE`): in one step for all threads, its frame gets another address, and the
//! program waits at its next touch. The kernel refuses while a device may be writing to the page (direct I/O,
//! io_uring), so that no write of a device is lost. A page that cannot be moved is protected against writing, copied
//! and dropped (`copied.rs`): pages to which the program itself may not write (a collector's barrier, a guard), and all
//! pages before Linux 6.8.
//!
//! The kernel moves pages only between mappings of the same protection. Each staging buffer therefore has a second,
//! executable part for pages from which code may run, which is mapped when the program first has such memory. Fills of
//! such pages reuse no frames: they are copied.
//!
//! # Occupied places
//! A page cannot be moved to an address that has a page already. Linux 6.18 also reports this by mistake: if it must
//! try a page twice, it still returns the error of the first try (`move_pages` never clears `err`), so that the page
//! counts as not moved, and its new address seems to be occupied at the next call. So if the page is no longer in the
//! program, the page in the staging buffer is that page, and its contents are passed on. If it still is in the program,
//! the page in the staging buffer belongs to no one. This was never seen, and the address is cleared once.

mod copied;
mod frames;

pub(crate) use frames::Frames;

use crate::PagerError;
use crate::lock::{RankedGuard, RankedMutex, STAGING};
use copied::Copies;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use largesse_pages::fault::{FaultError, MoveError, Userfault};
use largesse_pages::references::PageTables;
use largesse_pages::{PageKind, Reserved, SPAN, base_page};
use largesse_policy::{MAX_TRANSFER, max_prefetch};

/// Number of staging buffers, which is the number of threads that can take pages out at the same time. Others wait.
const BUFFERS: usize = 8;
/// Number of pages in a staging buffer beyond the kept ones at which the surplus is dropped, all at once, because each
/// unmapping of pages interrupts other CPUs.
const BATCH: usize = 64;
/// Length of a part of a staging buffer in pages: room for the largest number of kept pages, for a surplus, and for the
/// pages that are taken next.
const BUFFER_PAGES: usize = max_prefetch(usize::MAX) + BATCH + MAX_TRANSFER;

/// A callback that receives the contents of pages that were taken, and their offset in bytes from the first page.
pub(crate) type Show<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<(), PagerError>;

/// The staging buffers, which take pages out of the program. Each has room for the largest transfer unit.
#[derive(Debug)]
pub(crate) struct Staging {
    /// Addresses to which pages are moved: first the plain parts of all staging buffers, then the executable ones.
    range: Reserved,
    /// Whether the executable parts are mapped.
    is_executable: AtomicBool,
    /// Whether the kernel has refused to map them.
    is_refused: AtomicBool,
    /// The staging buffers. Each belongs to the thread that holds its lock.
    buffers: [RankedMutex<StagingBuffer, STAGING>; BUFFERS],
    /// Whether the kernel can move a page from one address to another (`UFFDIO_MOVE`, Linux 6.8 and later).
    moves: bool,
    /// Whether the kernel keeps pages to which it holds references, where pages are copied instead of moved.
    respects: bool,
    /// Number of pages in each staging buffer whose frames are kept for later fills.
    kept: AtomicUsize,
}

/// The lock of a staging buffer, held.
type StagingGuard<'a> = RankedGuard<'a, StagingBuffer, STAGING>;

/// A buffer for pages that one thread has taken out of the program and is writing to the store.
#[derive(Debug)]
struct StagingBuffer {
    /// Copies of pages that cannot be moved.
    copies: Copies,
    /// The part for pages that the program may read and write.
    plain: Part,
    /// The part for pages from which the program may run code, too.
    executable: Part,
    /// Whether pages were moved to the executable part last.
    is_executable: bool,
}

/// A part of a staging buffer.
#[derive(Debug)]
struct Part {
    /// Address of the part.
    start: usize,
    /// Number of bytes at the start of the part that hold pages moved there.
    shown: usize,
}

impl Part {
    /// Returns the address to which the next pages are moved.
    const fn end(&self) -> usize {
        self.start + self.shown
    }

    /// Passes to `show` the `len` bytes of pages that were moved to this part last: they follow the `shown` bytes that
    /// it got before. `offset` is the distance in bytes of these pages from the first page of the eviction.
    fn show(&mut self, (offset, len): (usize, usize), show: Show<'_>) -> Result<(), PagerError> {
        let at = core::ptr::with_exposed_provenance::<u8>(self.end());
        self.shown += len;
        // SAFETY: pages of this staging buffer, which the caller holds; the kernel has moved them there.
        show(offset, unsafe { core::slice::from_raw_parts(at, len) })
    }

    /// Frees all pages beyond the first `kept` bytes, if they are more than a batch: their contents are no longer
    /// needed.
    fn drop_surplus(&mut self, kept: usize) -> Result<(), FaultError> {
        if self.shown > kept + BATCH * base_page() {
            self.forget(kept, self.shown - kept)?;
            self.shown = kept;
        }
        Ok(())
    }

    /// Frees `len` bytes of this part from `offset` on: their contents are no longer needed.
    fn forget(&self, offset: usize, len: usize) -> Result<(), FaultError> {
        let at = core::ptr::with_exposed_provenance_mut(self.start + offset);
        // SAFETY: pages of this staging buffer, which the caller holds, and of which it has no reference.
        Ok(unsafe { largesse_pages::forget(at, len) }?)
    }
}

impl StagingBuffer {
    /// Returns the part to which pages were moved last.
    const fn part(&mut self) -> &mut Part {
        if self.is_executable { &mut self.executable } else { &mut self.plain }
    }

    /// Takes `len` bytes of pages that cannot be moved by copying them, and passes the copy to `show`. Returns `len`,
    /// the number of bytes that are done.
    fn copy(
        &mut self,
        (faults, respects): (&Userfault, bool),
        at: usize,
        (offset, len): (usize, usize),
        show: Show<'_>,
    ) -> Result<usize, PagerError> {
        for gone in self.copies.take(faults, at, len, respects)? {
            show(offset + gone.start, self.copies.bytes(gone))?;
        }
        Ok(len)
    }

    /// Passes a page of zeros to `show` for a page that the program gave back to the kernel by a system call of its
    /// own. Returns the size of that page in bytes.
    fn show_zeros(&mut self, offset: usize, show: Show<'_>) -> Result<usize, PagerError> {
        let zeros = self.copies.bytes(0..base_page());
        zeros.fill(0);
        show(offset, zeros)?;
        Ok(base_page())
    }
}

impl Staging {
    /// Reserves and maps the addresses of all staging buffers.
    pub(crate) fn new() -> Result<Staging, FaultError> {
        let range = Reserved::new(2 * parts_len(), SPAN)?;
        range.commit(0, parts_len(), PageKind::Small)?;
        let mut buffers = Vec::with_capacity(BUFFERS);
        for number in 0..BUFFERS {
            let copies = Copies::new().ok_or(FaultError(libc::ENOMEM))?;
            let offset = number * BUFFER_PAGES * base_page();
            let start = range.start().as_ptr().addr() + offset;
            let (plain, executable) =
                (Part { start, shown: 0 }, Part { start: start + parts_len(), shown: 0 });
            buffers.push(RankedMutex::new(StagingBuffer { copies, plain, executable, is_executable: false }));
        }
        let buffers = buffers.try_into().map_err(|_| FaultError(libc::ENOMEM))?;
        let [is_executable, is_refused] = [false; 2].map(AtomicBool::new);
        let kept = AtomicUsize::new(0);
        Ok(Staging { range, is_executable, is_refused, buffers, moves: false, respects: false, kept })
    }

    /// Registers the addresses of the staging buffers with `faults`, since the kernel moves pages only to registered
    /// ranges.
    pub(crate) fn register(&self, faults: &Userfault) -> Result<(), FaultError> {
        let parts = if self.is_executable() { 2 } else { 1 };
        faults.register(self.range.start().as_ptr().addr(), parts * parts_len())
    }

    /// Returns whether pages from which code may run can be moved.
    pub(crate) fn is_executable(&self) -> bool {
        // Acquire: pairs with the Release in `map_executable`, so that the parts are mapped and registered.
        self.is_executable.load(Ordering::Acquire)
    }

    /// Returns whether the parts for pages from which code may run are of use and not mapped yet.
    pub(crate) fn lacks_executable(&self) -> bool {
        // Relaxed: after a refusal, another try is only slower.
        self.moves && !self.is_executable() && !self.is_refused.load(Ordering::Relaxed)
    }

    /// Maps the parts for pages from which code may run, and registers them with `faults`. If the kernel refuses, such
    /// pages are copied. Two threads may do it at the same time.
    pub(crate) fn map_executable(&self, faults: &Userfault) -> Result<(), FaultError> {
        let done = self.map_executable_parts(faults);
        match done {
            Ok(()) => self.is_executable.store(true, Ordering::Release),
            Err(_) => self.is_refused.store(true, Ordering::Relaxed), // Relaxed: as in `lacks_executable`
        }
        done
    }

    fn map_executable_parts(&self, faults: &Userfault) -> Result<(), FaultError> {
        let len = parts_len();
        let start = core::ptr::with_exposed_provenance_mut(self.range.start().as_ptr().addr() + len);
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: these addresses belong to `range`, and are only used to move pages there. The call takes no right
        // from them: pages are moved there once a thread has set the flag, and a second thread sets the same rights
        // again.
        let refused = unsafe { largesse_pages::raw_mprotect(start, len, protection) };
        if refused != 0 {
            return Err(FaultError(i32::try_from(-refused).unwrap_or(libc::ENOMEM)));
        }
        largesse_pages::advise_mapping(start, len, PageKind::Small)?;
        faults.register(start.addr(), len)
    }

    /// Finds out whether the kernel can move pages from one address to another (Linux 6.8 and later), by moving one. If
    /// not, finds out whether it keeps pages to which it holds references.
    pub(crate) fn try_moving(&mut self, faults: &Userfault) -> Result<(), FaultError> {
        let (page, at) = (base_page(), self.range.start().as_ptr().addr());
        faults.fill(at, &vec![1; page], false)?;
        self.moves = faults.take(at, at + page, page) == (page, None);
        self.respects = !self.moves && copied::are_references_respected(faults, at)?;
        // SAFETY: no thread uses the staging buffers yet.
        Ok(unsafe { self.range.purge(0, 2 * page) }?)
    }

    /// Returns whether pages are moved. If so, pages to which a device writes stay resident.
    pub(crate) const fn moves(&self) -> bool {
        self.moves
    }

    /// Returns whether pages stay resident while the kernel writes to them through references (`process_vm_writev`).
    pub(crate) const fn sees_references(&self) -> bool {
        self.moves || self.respects
    }

    /// Removes and returns the descriptors of the staging buffers. They are open in the descriptor table of the threads
    /// that take pages out.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = PageTables> {
        self.buffers.iter().filter_map(|buffer| buffer.lock().copies.descriptors())
    }

    /// Sets the number of pages in each staging buffer whose frames (physical pages) are kept for later fills, at most
    /// as many as one fault prefetches.
    pub(crate) fn keep(&self, pages: usize) {
        self.kept.store(pages.min(max_prefetch(usize::MAX)), Ordering::Relaxed); // Relaxed: a number by itself
    }

    /// Locks a free staging buffer, or waits for the first one if none is free.
    fn free_buffer(&self) -> StagingGuard<'_> {
        self.buffers.iter().find_map(RankedMutex::try_lock).unwrap_or_else(|| self.buffers[0].lock())
    }

    /// Takes `len` bytes of resident pages from the address `from` on out of the program, and passes their contents to
    /// `show`. Pages that are not passed to it stay resident.
    pub(crate) fn take(
        &self,
        faults: &Userfault,
        from: usize,
        len: usize,
        show: Show<'_>,
    ) -> Result<(), PagerError> {
        let mut buffer = self.free_buffer();
        let (mut done, mut most, mut cleared) = (0, len, None);
        // Offset and length at which the other part was tried last. Each pair is tried once, so that the loop ends.
        let mut switched = None;
        while done < len {
            let part = most.min(len - done);
            let why = if self.moves {
                let (moved, why) = faults.take(from + done, buffer.part().end(), part);
                if moved > 0 {
                    buffer.part().show((done, moved), show)?;
                    done += moved;
                }
                why
            } else {
                Some(MoveError::Guarded)
            };
            let at = from + done;
            done += match why {
                None => 0,
                Some(MoveError::Pinned) => base_page(),
                Some(MoveError::Guarded) if switched != Some((done, most)) && self.is_executable() => {
                    switched = Some((done, most));
                    buffer.is_executable = !buffer.is_executable;
                    0
                }
                Some(MoveError::Guarded) if self.moves && part > base_page() => {
                    most = base_page(); // the rest may lie in several mappings
                    0
                }
                Some(MoveError::Guarded) => buffer.copy((faults, self.respects), at, (done, part), show)?,
                Some(MoveError::Missing) => buffer.show_zeros(done, show)?,
                Some(MoveError::Occupied) if !are_resident(at, base_page()) => {
                    buffer.part().show((done, base_page()), show)?;
                    base_page()
                }
                Some(MoveError::Occupied) if cleared != Some(done) => {
                    cleared = Some(done);
                    let part = buffer.part();
                    part.forget(part.shown, len - done)?;
                    0
                }
                Some(MoveError::Occupied) => return Err(FaultError(libc::EEXIST).into()),
                Some(MoveError::Refused(error)) => return Err(error.into()),
            };
        }
        // Relaxed: a number by itself.
        buffer.plain.drop_surplus(self.kept.load(Ordering::Relaxed) * base_page())?;
        buffer.executable.drop_surplus(0)?;
        Ok(())
    }
}

/// Returns the length in bytes of one part of all staging buffers.
fn parts_len() -> usize {
    (BUFFERS * BUFFER_PAGES * base_page()).next_multiple_of(SPAN)
}

/// Returns whether all pages of the `len` bytes from the address `at` on are resident.
pub(crate) fn are_resident(at: usize, len: usize) -> bool {
    let mut resident = 0;
    largesse_pages::each_resident(core::ptr::with_exposed_provenance_mut(at), len, &mut |_| {
        resident += base_page()
    });
    resident == len
}

#[cfg(test)]
mod tests;
