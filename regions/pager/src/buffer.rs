//! Memory of a thread that serves faults by transfers that end at once.

use largesse_pages::Table;
use largesse_policy::PrefetchQueue;

/// Memory of one thread that serves faults: the bytes of pages between store and program.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) bytes: Table<u8>,
    pub(crate) zeros: Table<u8>,
    /// Pages to prefetch when no fault waits.
    pub(crate) prefetch_queue: PrefetchQueue,
    /// Whether the thread shares its CPU with the faulting thread, or is that thread: prefetches do not run while the
    /// program does, and the faulting thread is woken last.
    pub(crate) on_cpu: bool,
}

impl Buffer {
    /// Makes a buffer for transfers of up to `pages` pages. `None` without memory.
    #[must_use]
    pub fn new(pages: usize) -> Option<Buffer> {
        let len = pages * largesse_pages::base_page();
        let (mut bytes, zeros) = (Table::new(len)?, Table::zeros(len)?);
        // Written now, because the handling of a fault must not fault in memory of its own.
        bytes.fill(1);
        Some(Buffer { bytes, zeros, prefetch_queue: PrefetchQueue::new(), on_cpu: false })
    }

    /// Makes a buffer for a thread that serves faults on the faulting CPU.
    #[must_use]
    pub fn on_cpu(pages: usize) -> Option<Buffer> {
        Some(Buffer { on_cpu: true, ..Buffer::new(pages)? })
    }
}
