//! The threads that serve faults.
//!
//! One thread reads faults from the descriptor and serves them, one lets pages leave ahead of need.
//! Waking a sleeping thread on another processor costs more than a fault, so the first one looks
//! again and again for a while before it sleeps.

use crate::Trouble;
use crate::kernel::Linux;
use crate::pager::{Buffer, Pager, Touch};
use crate::{MOST_SET, PageStore};
use core::convert::Infallible;
use largesse_pages::fault::Fault;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to look for the next fault before sleeping.
const SPIN: Duration = Duration::from_micros(50);

/// What is done about a trouble that leaves the program without its pages. It must not return.
pub type Fatal = fn(&Trouble) -> !;

/// Starts the thread that serves faults, and the one that lets pages leave; they end with the process.
/// `None`: there is no memory for their buffers, or no thread to be had.
pub fn start<S: PageStore + 'static>(pager: &Arc<Pager<Linux, S>>, fatal: Fatal) -> Option<()> {
    let mut buffer = Buffer::new(MOST_SET)?;
    let filling = Arc::clone(pager);
    spawn("largesse-fill", move || {
        let Err(trouble) = serve(&filling, &mut buffer);
        fatal(&trouble);
    })?;
    let pager = Arc::clone(pager);
    spawn("largesse-evict", move || {
        let gate = &pager.kernel().gate;
        loop {
            let _inside = gate.enter();
            if let Err(trouble) = pager.evict_ahead(|| gate.is_closing()) {
                fatal(&trouble);
            }
        }
    })
}

/// A thread that receives no signal: a handler of the program could touch far memory, and wait for
/// this very thread.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<()> {
    let thread = std::thread::Builder::new().name(name.into()).stack_size(256 << 10);
    // SAFETY: plain C calls on local structures that are initialised first.
    unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let started = thread.spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
        started.ok().map(|_| ())
    }
}

fn serve<S: PageStore>(pager: &Pager<Linux, S>, buffer: &mut Buffer) -> Result<Infallible, Trouble> {
    let mut last = Instant::now();
    let mut ahead = VecDeque::with_capacity(MOST_SET);
    loop {
        // Whatever puts pages in flight happens inside: a fork waits for it.
        let inside = pager.kernel().gate.enter();
        let mut faults = [Fault { address: 0, write: false, protected: false }];
        if pager.kernel().faults().read(&mut faults) == 0 {
            // The program runs: there is time to foresee its next faults, and to make room for them.
            if let Some(next) = ahead.pop_front() {
                pager.prefetch(next, buffer)?;
                continue;
            }
            if pager.relieve()? {
                continue;
            }
            drop(inside);
            if last.elapsed() > SPIN {
                let _ = pager.kernel().faults().wait(500);
            } else {
                core::hint::spin_loop();
            }
            continue;
        }
        let [fault] = faults;
        if let Some(page) = pager.kernel().page_at(fault.address) {
            let touch = Touch { page, write: fault.write || fault.protected };
            pager.serve(touch, buffer, &mut ahead)?;
        }
        last = Instant::now();
    }
}
