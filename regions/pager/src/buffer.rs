//! Buffers of a thread that serves faults from a store whose transfers end at once.

use largesse_pages::Table;
use largesse_policy::PrefetchQueue;

/// Buffers of one thread that serves faults: room for the pages that it reads, zeros, and the prefetch queue.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) bytes: Table<u8>,
    pub(crate) zeros: Table<u8>,
    /// Pages to prefetch when no fault waits.
    pub(crate) prefetch_queue: PrefetchQueue,
    /// Whether the thread shares its CPU with the faulting thread, or is that thread. It then prefetches before it
    /// wakes the faulting thread, since both cannot run at once.
    pub(crate) on_cpu: bool,
}

impl Buffer {
    /// Makes a buffer for transfers of up to `pages` pages. Returns `None` if memory is short.
    #[must_use]
    pub fn new(pages: usize) -> Option<Buffer> {
        let len = pages * largesse_pages::base_page();
        let (mut bytes, zeros) = (Table::new(len)?, Table::zeros(len)?);
        // Written now, because the handling of a fault must not fault in memory of its own.
        bytes.fill(1);
        Some(Buffer { bytes, zeros, prefetch_queue: PrefetchQueue::new(), on_cpu: false })
    }

    /// Makes a buffer for a thread that serves faults on the faulting CPU, for transfers of up to `pages` pages.
    /// Returns `None` if memory is short.
    #[must_use]
    pub fn on_cpu(pages: usize) -> Option<Buffer> {
        Some(Buffer { on_cpu: true, ..Buffer::new(pages)? })
    }
}
