//! What all threads that serve faults share: their start, one fault, and the end of the program when a fault cannot be served.

use crate::PagerError;
use crate::buffer::Buffer;
use crate::kernel::Linux;
use crate::pager::Pager;
use core::ffi::CStr;
use core::ops::Range;
use largesse_machine::service;
use largesse_policy::PageNumber;
use largesse_store::PageStore;
use std::io;

/// What is done about a trouble that leaves the program without its pages. It must not return.
pub type Fatal = fn(&PagerError) -> !;

/// Starts a thread that receives no signal: a handler of the program could touch far memory, and wait for this very
/// thread.
pub(crate) fn spawn<W: FnOnce() + Send + 'static>(name: &'static CStr, work: W) -> io::Result<()> {
    const STACK: usize = 256 << 10;
    service::start(name, STACK, &[], work)
}

/// Serves the next fault, if one waits: its page, and the pages for which somebody is to be woken.
pub(crate) fn serve_next<S: PageStore>(
    pager: &Pager<Linux, S>,
    buffer: &mut Buffer,
) -> Result<Option<(PageNumber, Range<PageNumber>)>, PagerError> {
    // Whatever puts pages in flight happens inside: a fork waits for it.
    let _inside = pager.kernel().gate.enter();
    let Some(touch) = pager.kernel().next_fault() else { return Ok(None) };
    Ok(Some((touch.page, pager.serve(touch, buffer)?)))
}
