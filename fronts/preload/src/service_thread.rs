//! Starts the library's own threads in the process of the program.

use crate::{guard, last_thread};
use largesse_machine::service;

/// Starts a thread that receives none of the program's signals. Returns whether it was started.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> bool {
    const STACK: usize = 128 << 10;
    last_thread::watch();
    guard::outside(|| service::start(c"largesse", STACK, &[], work)).is_ok()
}
