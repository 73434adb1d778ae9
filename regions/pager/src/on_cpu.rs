//! The on-CPU handler: a thread that handles faults on the CPU of the faulting thread.
//!
//! A fault that is reported by a message switches threads twice. If the two run on different CPUs, each switch wakes a
//! CPU by an interrupt, which in a virtual machine takes longer than the rest of the fault. On one CPU it is an
//! ordinary switch, and the filled page is in that CPU's cache. But the scheduler wakes a thread on an idle CPU, not on
//! that of the thread that wakes it, and the pager must not pin threads of the program.
//!
//! Therefore the handler has the scheduling class `SCHED_IDLE`: the scheduler regards a CPU that runs only threads of
//! this class as idle, and leaves the woken thread there. The handler only has to follow the faulting thread:
//!
//! ```text
//!   program  ──run──┐ fault           ┌──run──      both on one CPU
//!   handler         └─serve──►wake────┘ (is preempted in the middle of the call that wakes)
//! ```
//! The price is that every other thread takes the CPU from the handler. Hence
//! - waking is its last step for a fault, outside of every lock;
//! - it is for programs of which one thread at a time faults, and only where it is measured to be faster
//!   (`largesse_policy::reclaim_mode`);
//! - the ordinary handler thread checks every few milliseconds, and serves a fault that has waited too long
//!   ([`watch`]);
//! - its thread is started each time that the policy chooses it, since an ordinary user cannot leave the class. The
//!   ordinary handler thread does not start it, since that allocates memory of the C library, whose lock a faulting
//!   thread may hold.

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
use largesse_store::PageStore;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two checks of the ordinary handler thread for late faults.
const TICK: Duration = Duration::from_millis(2);
/// Number of consecutive checks without a fault after which the ordinary handler thread stops checking, and waits for a
/// fault like the on-CPU handler.
const QUIET: u32 = 10;

/// Starts the on-CPU handler's thread, if it was asked for. A thread that serves faults must not call this.
pub(crate) fn start<S: PageStore + 'static>(pager: &Arc<Pager<Linux, S>>, fatal: Fatal) {
    let on_cpu = &pager.kernel().on_cpu;
    if !on_cpu.asked.swap(false, Ordering::Relaxed) {
        return;
    }
    let serving = Arc::clone(pager);
    let started = spawn(c"largesse-on-cpu", move || {
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

/// Runs in the ordinary handler thread while the on-CPU handler is on: serves the faults that the on-CPU handler does
/// not serve in time.
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

/// Serves faults on the faulting CPU until the on-CPU handler is switched off.
fn serve<S: PageStore>(pager: &Pager<Linux, S>) -> Result<(), PagerError> {
    let kernel = pager.kernel();
    let on_cpu = &kernel.on_cpu;
    // With one CPU both handlers run on the faulting CPU. In addition, `processor_of` reads a file below `/proc`, which
    // the kernel frees at the thread's end while a thread that waits for the end of the process spins: on one CPU
    // possibly for long.
    let one = pin::current().is_ok_and(|cpus| cpus.len() < 2);
    let may = !one && thread::set_idle_policy() && on_cpu.follow();
    let Some(mut buffer) = may.then(|| kernel.fault_queue.buffer()).flatten() else {
        on_cpu.refused.store(true, Ordering::Relaxed);
        return Ok(());
    };
    let (mut throttle, mut taken) = (FairnessThrottle::new(), thread::involuntary_switches());
    while on_cpu.is_on() {
        let Some((page, woken)) = serve_next(pager, &mut buffer)? else {
            kernel.wait_for_fault();
            continue;
        };
        on_cpu.served.fetch_add(1, Ordering::Relaxed);
        pager.count(page, Count::OnCpu, 1);
        kernel.wake(woken);
        // A thread that is woken on this CPU preempts the handler. If none did, the faulting thread is on another CPU.
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
