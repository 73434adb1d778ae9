//! Moves spans that began on small pages to large ones, once the program uses nearly all of them.
//!
//! Under a limit, a heap starts on small pages ([`FIRST_SPANS`]): a program with few blocks uses parts of many spans, and
//! large pages would give memory to the other parts, too. A second later it is known which spans are used as a whole,
//! and only these get large pages. The kernel copies their contents, in the helper thread. That is not done in processes
//! that have forked: the copy would be one more besides the page that parent and child share.

use crate::forked;
use crate::heap::LargeHeap;
use crate::limit::Limit;
use crate::limited::LimitedMemory;
use core::time::Duration;
use largesse_pages::{Offer, PageKind, SPAN, large_pages};
use std::time::Instant;

/// Number of spans in use up to which blocks below 4 MiB get small pages, 32 MiB of them.
pub(crate) const FIRST_SPANS: usize = 16;
/// Number of spans that are looked at in turn.
const AT_ONCE: usize = 16;
/// Time between two turns.
const REST: Duration = Duration::from_secs(1);
/// Time without another turn after the kernel had no large page.
const REST_WHEN_REFUSED: Duration = Duration::from_secs(60);
/// Least number of resident bytes of a span that is moved: a large page gives memory to all others, too.
const LEAST_RESIDENT: u64 = SPAN as u64 / 16 * 15;

/// Looks for such spans in the helper thread.
#[derive(Debug, Default)]
pub(crate) struct DenseSpans {
    /// Time of the next turn; `None` before the first one.
    due: Option<Instant>,
    /// The next span to look at, counted from the start of the heap's range.
    next: usize,
}

impl DenseSpans {
    /// Looks at some spans of the heap, which is near memory and far below its limit, if a turn is due.
    pub(crate) fn step(&mut self, limit: &Limit, heap: &LargeHeap, memory: &LimitedMemory) {
        let now = Instant::now();
        let due = *self.due.get_or_insert(now + REST);
        if now < due || forked::has_forked() || memory.kind() != PageKind::Thp {
            return;
        }
        self.due = Some(now + REST);
        for _ in 0..AT_ONCE {
            let Some(span) = heap.small_span_from(self.next) else {
                self.next = 0;
                break;
            };
            self.next = span + 1;
            let seen = limit.residency(heap, span * SPAN..(span + 1) * SPAN);
            if seen.resident < LEAST_RESIDENT {
                continue;
            }
            let moved = match large_pages() {
                Offer::Refused => Err(libc::ENOMEM),
                _ => memory.move_to_large_page(span * SPAN).map_err(|error| error.errno),
            };
            match moved {
                Ok(()) => heap.became_large(span),
                Err(libc::ENOMEM | libc::EBUSY) => {
                    self.due = Some(now + REST_WHEN_REFUSED);
                    break;
                }
                Err(_) => {} // a page of this span cannot be moved, such as one that a device uses
            }
        }
    }
}
