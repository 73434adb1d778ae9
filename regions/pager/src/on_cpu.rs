//! Faults served on the processor of the thread that waits.
//!
//! A fault that a descriptor tells of changes threads twice. Where the two run on different processors each change wakes a
//! processor, by an interrupt, which in a virtual machine takes longer than the rest of the fault; on one, it is an ordinary
//! switch, and what was copied is in the cache of whom it is for. But the scheduler wakes a thread where nobody runs, and so
//! not beside the one that wakes it, and the program's threads are not ours to pin.
//!
//! So the thread that serves here is of the idle class (`SCHED_IDLE`): a processor on which nobody else runs is a
//! free one to the scheduler, and whom this thread wakes stays where it was. Who serves only has to be there:
//!
//! ```text
//!   program   ──run──┐ fault          ┌──run──      both on one processor
//!   beside           └─serve─►wake────┘ (gives way in the middle of the call that wakes)
//! ```
//! The price: where others want the processor this thread has nothing to say. So
//! - waking is the last thing it does for a fault, outside of every lock;
//! - it is for programs of which one thread at a time meets faults; whether it is better is timed (`largesse_policy::reclaim_mode`);
//! - the thread that serves otherwise looks, now and then, and serves what waits for too long ([`watch`]);
//! - it is started for each stay anew, since an ordinary user cannot leave the class; and not by the thread that serves otherwise, since
//!   that takes memory of the C library, whose locks may be held by a thread that waits for a page.

mod handler;

pub(crate) use handler::OnCpuHandler;

use crate::buffer::Buffer;
use crate::fairness::FairnessThrottle;
use crate::fault_thread::{Fatal, serve_next, spawn};
use crate::kernel::Linux;
use crate::pager::Pager;
use crate::{Count, Kernel as _, PagerError};
use core::sync::atomic::Ordering;
use largesse_machine::{pin, thread};
use largesse_pages::fault::FaultError;
use largesse_store::PageStore;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The thread that does not serve looks so often whether the other one does.
const TICK: Duration = Duration::from_millis(2);
/// When there was no fault for so many of these, both wait for the next one.
const QUIET: u32 = 10;
/// Starts the thread, if it is asked for. Not for one that serves faults.
pub(crate) fn start<S: PageStore + 'static>(pager: &Arc<Pager<Linux, S>>, fatal: Fatal) {
    let on_cpu = &pager.kernel().on_cpu;
    if !on_cpu.asked.swap(false, Ordering::Relaxed) {
        return;
    }
    let serving = Arc::clone(pager);
    let started = spawn(c"largesse-beside", move || {
        let served = serve(&serving);
        serving.kernel().on_cpu.running.store(false, Ordering::Relaxed);
        if let Err(error) = served {
            fatal(&error);
        }
    });
    if started.is_err() {
        on_cpu.refused.store(true, Ordering::Relaxed);
    }
}

/// Lets faults be served beside those who meet them, as long as they should be. For the thread that serves otherwise: it
/// sees to it that nobody waits for long.
pub(crate) fn watch<S: PageStore>(pager: &Pager<Linux, S>, buffer: &mut Buffer) -> Result<(), PagerError> {
    let on_cpu = &pager.kernel().on_cpu;
    let (mut seen, mut quiet) = (on_cpu.served.load(Ordering::Relaxed), 0);
    while on_cpu.is_on() {
        if !on_cpu.running.swap(true, Ordering::Relaxed) {
            let _inner = pager.lock();
            on_cpu.asked.store(true, Ordering::Relaxed);
            pager.reclaim_needed.notify_all();
        }
        std::thread::sleep(TICK);
        let now = on_cpu.served.load(Ordering::Relaxed);
        quiet = if now == seen { quiet + 1 } else { 0 };
        if quiet > QUIET {
            pager.kernel().wait_for_fault();
            quiet = 0;
        } else if quiet > 0
            && let Some((_, woken)) = serve_next(pager, buffer)?
        {
            pager.kernel().wake(woken);
            pager.note_late_on_cpu();
        }
        seen = now;
    }
    Ok(())
}

/// Serves faults on the processor of who meets them, as long as that should be.
fn serve<S: PageStore>(pager: &Pager<Linux, S>) -> Result<(), PagerError> {
    let kernel = pager.kernel();
    let on_cpu = &kernel.on_cpu;
    // On one processor there is no elsewhere. And what was looked up of a thread below `/proc` the kernel clears away at its end:
    // whoever waits for the end of its process spins meanwhile, and where the two share a processor that may be for long.
    let one = pin::current().is_ok_and(|cpus| cpus.len() < 2);
    if one || !thread::set_idle_policy() || !on_cpu.follow() {
        on_cpu.refused.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let mut buffer = kernel.fault_queue.buffer().ok_or(FaultError(libc::ENOMEM))?;
    let (mut throttle, mut taken) = (FairnessThrottle::new(), thread::involuntary_switches());
    while on_cpu.is_on() {
        let Some((page, woken)) = serve_next(pager, &mut buffer)? else {
            kernel.wait_for_fault();
            continue;
        };
        on_cpu.served.fetch_add(1, Ordering::Relaxed);
        pager.count(page, Count::OnCpu, 1);
        kernel.wake(woken);
        // Whom it wakes here takes the processor from it. Who did not is elsewhere.
        let before = core::mem::replace(&mut taken, thread::involuntary_switches());
        if taken == before && !on_cpu.follow() {
            break;
        }
        throttle.rest_if_short(Instant::now());
    }
    kernel.fault_queue.give_back(buffer);
    Ok(())
}

#[cfg(test)]
mod tests;
