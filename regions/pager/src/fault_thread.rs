//! The common part of the threads that serve faults: their start, the service of one fault, and the end of the program
//! when a fault cannot be served.

use crate::PagerError;
use crate::buffer::Buffer;
use crate::kernel::Linux;
use crate::pager::Pager;
use core::ffi::CStr;
use core::ops::Range;
use largesse_machine::service;
use largesse_policy::PageNumber;
use largesse_store::{Broker, PageStore};
use std::io;

/// Ends the program because of an error that leaves it without its pages.
pub type Fatal = fn(&PagerError) -> !;

/// Starts a thread that receives no signals. In a signal handler of the program it could touch far memory, and would
/// then wait for itself.
pub(crate) fn spawn<W: FnOnce() + Send + 'static>(name: &'static CStr, work: W) -> io::Result<()> {
    service::start(name, Broker::STACK, &[], work)
}

/// Serves the next reported fault, if there is one. Returns the faulting page, and the pages whose waiting threads must
/// be woken.
pub(crate) fn serve_next<S: PageStore>(
    pager: &Pager<Linux, S>,
    buffer: &mut Buffer,
) -> Result<Option<(PageNumber, Range<PageNumber>)>, PagerError> {
    // Pages are in flight only inside the gate: a fork waits for that.
    let _inside = pager.kernel().gate.enter();
    let Some(touch) = pager.kernel().next_fault() else { return Ok(None) };
    Ok(Some((touch.page, pager.serve(touch, buffer)?)))
}
