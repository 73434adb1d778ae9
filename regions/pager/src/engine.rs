//! The threads that serve faults.
//!
//! Over a store whose transfers take time, two threads have a queue each: the handler thread one of reads
//! (`fill_async`), the evicting thread one of writes (`evict_async`).
//!
//! Over a store whose transfers end at once, the handler thread serves the faults that userfaultfd reports, or that the
//! `FaultQueue` hands over (`in_thread.rs`). The evicting thread evicts pages ahead of need. It also starts a third
//! thread, which replaces the handler thread while handling on the faulting CPU is faster (`on_cpu.rs`).
//!
//! Waking a sleeping thread on another CPU costs more than a fault. Therefore the handler thread polls for a while
//! before it sleeps.

use crate::async_evict::{AsyncEvictor, WRITE_DEPTH, WRITE_PAGES};
use crate::async_fill::{AsyncFiller, READ_DEPTH, READ_PAGES, queue_pages};
use crate::buffer::Buffer;
use crate::fairness::FairnessThrottle;
use crate::fault_thread::{Fatal, serve_next, spawn};
use crate::kernel::Linux;
use crate::on_cpu;
use crate::pager::Pager;
use crate::{Kernel as _, PagerError};
use core::convert::Infallible;
use largesse_policy::MAX_TRANSFER;
use largesse_store::PageStore;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for which the handler thread polls for the next fault before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// Time for which the handler thread polls for the end of a transfer before it sleeps: a little longer than a disk
/// needs for one.
const SPIN_IN_FLIGHT: Duration = Duration::from_micros(150);

/// Starts the handler thread and the evicting thread, which end with the process. Fails if there is no memory for their
/// buffers, or no thread can be created.
pub fn start<S: PageStore + 'static>(pager: &Arc<Pager<Linux, S>>, fatal: Fatal) -> io::Result<()> {
    if let Some((filler, evictor)) = open_queues(pager)? {
        return start_async(pager, filler, evictor, fatal);
    }
    let mut buffer = Buffer::new(MAX_TRANSFER).ok_or(io::ErrorKind::OutOfMemory)?;
    let (filling, evicting) = (Arc::clone(pager), Arc::clone(pager));
    pager.kernel().on_cpu.forget();
    pager.allow_on_cpu(!pager.kernel().faults().by_signal());
    // Started by the broker, whose descriptors its threads share.
    pager.kernel().broker().call(|| {
        spawn(c"largesse-fill", move || {
            let Err(error) = serve(&filling, &mut buffer);
            fatal(&error);
        })?;
        spawn(c"largesse-evict", move || {
            let (gate, on_cpu) = (&evicting.kernel().gate, &evicting.kernel().on_cpu);
            loop {
                let inside = gate.enter();
                if let Err(error) =
                    evicting.reclaim_in_background(|| gate.is_closing() || on_cpu.is_asked_for())
                {
                    fatal(&error);
                }
                drop(inside);
                on_cpu::start(&evicting, fatal);
            }
        })
    })
}

/// Opens a queue of reads and one of writes in the broker's thread, for a store whose transfers take time. Returns
/// `None` if its transfers end at once.
fn open_queues<S: PageStore>(pager: &Pager<Linux, S>) -> io::Result<Option<(AsyncFiller, AsyncEvictor)>> {
    let page = pager.kernel().page();
    let open = |pages: usize, depth| {
        let opened = pager.kernel().broker().call(|| pager.store.open_queue(pages * page, depth));
        opened.map_err(|error| io::Error::other(error.to_string()))
    };
    let local = pager.lock().local;
    let (for_reads, for_writes) = (queue_pages(local, READ_PAGES), queue_pages(local, WRITE_PAGES));
    let Some(reads) = open(for_reads, READ_DEPTH)? else { return Ok(None) };
    let Some(writes) = open(for_writes, WRITE_DEPTH)? else { return Ok(None) };
    let filler = AsyncFiller::new(reads, for_reads, page).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Some((filler, AsyncEvictor::new(writes, for_writes, page))))
}

/// Starts the handler thread and the evicting thread with a queue each, for a store whose transfers take time.
fn start_async<S: PageStore + 'static>(
    pager: &Arc<Pager<Linux, S>>,
    mut filler: AsyncFiller,
    mut evictor: AsyncEvictor,
    fatal: Fatal,
) -> io::Result<()> {
    pager.transfer_asynchronously(filler.queue(), filler.largest_unit());
    let (filling, evicting) = (Arc::clone(pager), Arc::clone(pager));
    pager.kernel().broker().call(|| {
        spawn(c"largesse-fill", move || {
            let Err(error) = fill_async(&filling, &mut filler);
            fatal(&error);
        })?;
        spawn(c"largesse-evict", move || {
            let Err(error) = evict_async(&evicting, &mut evictor);
            fatal(&error);
        })
    })
}

fn fill_async<S: PageStore>(
    pager: &Pager<Linux, S>,
    filler: &mut AsyncFiller,
) -> Result<Infallible, PagerError> {
    let kernel = pager.kernel();
    let mut last = Instant::now();
    let mut throttle = FairnessThrottle::new();
    loop {
        let inside = kernel.gate.enter();
        while !kernel.gate.is_closing() {
            let mut busy = filler.reap(pager, Duration::ZERO)?;
            if let Some(touch) = kernel.next_fault() {
                filler.serve(pager, touch)?;
                busy = true;
            }
            if filler.prefetch(pager)? || filler.recall(pager)? || busy {
                last = Instant::now();
                throttle.rest_if_short(last);
            } else if last.elapsed() < if filler.in_flight() == 0 { SPIN } else { SPIN_IN_FLIGHT } {
                core::hint::spin_loop();
            } else if filler.in_flight() == 0 {
                break;
            } else if !kernel.wait_for_fault_or(filler.queue()) {
                filler.reap(pager, SPIN)?;
            }
        }
        if kernel.gate.is_closing() {
            filler.drain(pager)?;
        }
        drop(inside);
        if !kernel.gate.is_closing() {
            kernel.wait_for_fault_at_most(pager.longest_sleep());
        }
    }
}

fn evict_async<S: PageStore>(
    pager: &Pager<Linux, S>,
    evictor: &mut AsyncEvictor,
) -> Result<Infallible, PagerError> {
    let gate = &pager.kernel().gate;
    loop {
        let inside = gate.enter();
        // A fault that is being served may need room before its thread can leave.
        while !gate.is_closing() || !gate.is_last() {
            if !evictor.step(pager)? {
                evictor.wait(pager, || gate.is_closing())?;
            }
        }
        evictor.drain(pager)?;
        drop(inside);
    }
}

fn serve<S: PageStore>(pager: &Pager<Linux, S>, buffer: &mut Buffer) -> Result<Infallible, PagerError> {
    let mut last = Instant::now();
    let mut throttle = FairnessThrottle::new();
    loop {
        if pager.kernel().on_cpu.is_on() {
            buffer.prefetch_queue.clear();
            on_cpu::watch(pager, buffer)?;
        }
        let Some((_, woken)) = serve_next(pager, buffer)? else {
            // The program runs: there is time to prefetch, and to evict pages ahead of need.
            let inside = pager.kernel().gate.enter();
            if pager.idle(buffer)? {
                continue;
            }
            drop(inside);
            if last.elapsed() > SPIN {
                pager.kernel().wait_for_fault();
            } else {
                core::hint::spin_loop();
            }
            continue;
        };
        pager.kernel().wake(woken);
        last = Instant::now();
        throttle.rest_if_short(last);
    }
}
