//! A pager over Linux for unit tests: one span of new pages, all of which fit in local memory.

use crate::pager::Pager;
use crate::{Linux, Segments};
use largesse_pages::fault::{OPEN_METHODS, Userfault};
use largesse_pages::{PageKind, Reserved, SPAN, base_page};
use largesse_policy::Policies;
use largesse_store::{Broker, Fork, PageStore, Ranges, StoreError};
use std::sync::Arc;

/// A store in which no page is ever written.
#[derive(Debug)]
pub(crate) struct Nothing;

impl PageStore for Nothing {
    fn reserve(&self, _: u64, _: u64) -> Result<(), StoreError> {
        Ok(())
    }
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), StoreError> {
        unreachable!("all pages are new")
    }
    fn write(&self, _: u64, _: &[u8]) -> Result<(), StoreError> {
        unreachable!("all pages fit")
    }
    fn discard(&self, _: u64, _: u64) {}
    fn fork(&self, _: Fork) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Makes a pager for a span of far memory, whose address it returns, too. No thread serves its faults. Prints that the
/// test is skipped and returns `None` if the kernel offers no userfaultfd.
pub(crate) fn over_one_span() -> Option<(Arc<Pager<Linux, Nothing>>, usize)> {
    let broker = Broker::start().unwrap();
    let Ok(faults) = broker.call(|| Userfault::open(&OPEN_METHODS)) else {
        #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
        {
            println!("skipped: no userfaultfd here");
        }
        return None;
    };
    // It outlives a thread that waits in it for ever.
    let range = core::mem::ManuallyDrop::new(Reserved::new(SPAN, SPAN).unwrap());
    range.commit(0, SPAN, PageKind::Small).unwrap();
    let (at, pages) = (range.start().as_ptr().expose_provenance(), SPAN / base_page());
    let mut segments = Segments::new();
    segments.add(at, pages, pages);
    let kernel = Linux::new(broker, faults, segments.clone(), Ranges::new()).unwrap();
    let pager = Pager::new(kernel, Nothing, segments, pages, Policies::baseline(1)).unwrap();
    Some((Arc::new(pager), at))
}
