//! Stopping the world: who uses the heap, and how all of them stand still for a collection.
//!
//! States of a member: *running* (it may touch objects), *native* (it does not: a system call, a wait, not started
//! yet), *parked* (it waits for the end of a collection). A collection raises every member's poll word and
//! waits until none is running. A native member that comes back first says it is running and then looks at its poll
//! word, the collector first raises that word and then looks who is running: one of them sees the other, because
//! between the two steps of each is a `SeqCst` fence. So a thread in a system call holds nobody up and still
//! cannot slip in.

use crate::context::Signal;
use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, fence, lock, wait};
use std::sync::Arc;

/// Bits of a poll word.
pub(crate) const STOP: u32 = 1;
pub(crate) const ATTENTION: u32 = 2;

const RUNNING: u32 = 0;
const NATIVE: u32 = 1;
const PARKED: u32 = 2;

impl Signal {
    /// A member that was announced and has not started: native.
    pub(crate) fn new() -> Signal {
        Signal { poll: AtomicU32::new(0), state: AtomicU32::new(NATIVE) }
    }

    /// For the thread itself: it may touch objects.
    pub(crate) fn is_running(&self) -> bool {
        // Relaxed: a thread's own state changes while it runs only by itself.
        self.state.load(Ordering::Relaxed) == RUNNING
    }
}

/// Whoever can be stopped.
pub(crate) trait Member {
    fn signal(&self) -> &Signal;
}

#[derive(Debug)]
struct Gate<M> {
    members: Vec<Arc<M>>,
    collecting: bool,
}

/// All members.
#[derive(Debug)]
pub(crate) struct World<M> {
    gate: Mutex<Gate<M>>,
    stopped: Condvar,
    resumed: Condvar,
}

/// Every other member stands still as long as this lives.
pub(crate) struct Stopped<'a, M: Member> {
    pub(crate) members: Vec<Arc<M>>,
    world: &'a World<M>,
    me: Option<&'a Signal>,
}

impl<M: Member> World<M> {
    pub(crate) fn new() -> World<M> {
        World {
            gate: Mutex::new(Gate { members: Vec::new(), collecting: false }),
            stopped: Condvar::new(),
            resumed: Condvar::new(),
        }
    }

    /// Announce a member, which is native: from now on collections know it.
    pub(crate) fn enrol(&self, member: Arc<M>) {
        let mut gate = lock(&self.gate);
        if gate.collecting {
            // Relaxed: whoever starts the thread hands the member over.
            member.signal().poll.fetch_or(STOP, Ordering::Relaxed);
        }
        gate.members.push(member);
    }

    /// A running or native member leaves for good. `last` runs while no collection does.
    pub(crate) fn leave(&self, member: &Arc<M>, last: impl FnOnce()) {
        let mut gate = self.park(member.signal(), lock(&self.gate));
        last();
        gate.members.retain(|it| !Arc::ptr_eq(it, member));
    }

    /// The calling member does not touch objects until [`enter`](World::enter).
    pub(crate) fn go_native(&self, me: &Signal) {
        // Release: pairs with the Acquire in `stop`, so that the collector sees what we wrote.
        me.state.store(NATIVE, Ordering::Release);
        // See the head of this file.
        fence(Ordering::SeqCst);
        if me.poll.load(Ordering::Relaxed) & STOP != 0 {
            // A collector may have seen us running, and sleeps.
            drop(lock(&self.gate));
            self.stopped.notify_all();
        }
    }

    /// The calling member touches objects from now on.
    pub(crate) fn enter(&self, me: &Signal) {
        me.state.store(RUNNING, Ordering::Relaxed);
        // See the head of this file.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release at the end of a collection, so that we see what it did.
        if me.poll.load(Ordering::Acquire) & STOP != 0 {
            self.stand_still(me);
        }
    }

    /// The calling member waits until the collection that wants it to stop is over.
    pub(crate) fn stand_still(&self, me: &Signal) {
        drop(self.park(me, lock(&self.gate)));
    }

    fn park<'a>(&'a self, me: &Signal, gate: MutexGuard<'a, Gate<M>>) -> MutexGuard<'a, Gate<M>> {
        let mut gate = gate;
        if gate.collecting {
            // Relaxed: the lock orders it.
            me.state.store(PARKED, Ordering::Relaxed);
            self.stopped.notify_all();
            while gate.collecting {
                gate = wait(&self.resumed, gate);
            }
        }
        me.state.store(RUNNING, Ordering::Relaxed);
        gate
    }

    /// Stop every member but the caller. `None`: another collection came first, and is over now.
    pub(crate) fn stop<'a>(&'a self, me: Option<&'a Signal>) -> Option<Stopped<'a, M>> {
        let mut gate = lock(&self.gate);
        if gate.collecting {
            match me {
                Some(me) => drop(self.park(me, gate)),
                None => {
                    while gate.collecting {
                        gate = wait(&self.resumed, gate);
                    }
                }
            }
            return None;
        }
        gate.collecting = true;
        if let Some(me) = me {
            // Relaxed: only this thread looks before `resume`.
            me.state.store(PARKED, Ordering::Relaxed);
        }
        for member in &gate.members {
            member.signal().poll.fetch_or(STOP, Ordering::Relaxed);
        }
        // See the head of this file. Members that enrol from now on are native.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release in `go_native`; the lock orders what parked members wrote.
        while gate.members.iter().any(|it| it.signal().state.load(Ordering::Acquire) == RUNNING) {
            gate = wait(&self.stopped, gate);
        }
        Some(Stopped { members: gate.members.clone(), world: self, me })
    }

    /// Ask every member to look up at its next poll.
    pub(crate) fn call_attention(&self) {
        for member in &lock(&self.gate).members {
            // Release: whoever is called sees why.
            member.signal().poll.fetch_or(ATTENTION, Ordering::Release);
        }
    }

    /// The members at this moment.
    pub(crate) fn members(&self) -> Vec<Arc<M>> {
        lock(&self.gate).members.clone()
    }
}

/// The collection is over.
impl<M: Member> Drop for Stopped<'_, M> {
    fn drop(&mut self) {
        let mut gate = lock(&self.world.gate);
        gate.collecting = false;
        for member in &gate.members {
            // Release: pairs with the Acquire in `enter`.
            member.signal().poll.fetch_and(!STOP, Ordering::Release);
        }
        if let Some(me) = self.me {
            // Relaxed: the lock orders it.
            me.state.store(RUNNING, Ordering::Relaxed);
        }
        self.world.resumed.notify_all();
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;

    /// A member, and what only it may touch while it runs.
    struct Thread {
        signal: Signal,
        own: UnsafeCell<u32>,
    }

    impl Member for Thread {
        fn signal(&self) -> &Signal {
            &self.signal
        }
    }

    impl Thread {
        fn touch(&self) {
            // SAFETY: loom fails when two threads do this at once.
            self.own.with_mut(|own| unsafe { *own += 1 });
        }
    }

    fn enrolled(world: &World<Thread>) -> Arc<Thread> {
        let thread = Arc::new(Thread { signal: Signal::new(), own: UnsafeCell::new(0) });
        world.enrol(thread.clone());
        thread
    }

    fn poll(world: &World<Thread>, me: &Thread) {
        if me.signal.poll.load(Ordering::Relaxed) & STOP != 0 {
            world.stand_still(&me.signal);
        }
    }

    fn collect(world: &World<Thread>, me: Option<&Signal>) -> bool {
        let Some(stopped) = world.stop(me) else { return false };
        stopped.members.iter().for_each(|member| member.touch());
        true
    }

    fn model(f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(f);
    }

    // Seen to fail ("Concurrent write accesses") without the fence in `enter` or in `stop`, with `Relaxed` in `go_native`
    // or at the end of a collection, and with a `stop` that does not wait; seen to deadlock when `leave` does not
    // wait for the collection.
    #[test]
    fn a_thread_that_starts_waits_and_ends_is_never_touched_while_it_runs() {
        model(|| {
            let world = Arc::new(World::new());
            let thread = enrolled(&world);
            let running = {
                let world = world.clone();
                loom::thread::spawn(move || {
                    world.enter(&thread.signal);
                    thread.touch();
                    poll(&world, &thread);
                    thread.touch();
                    world.go_native(&thread.signal);
                    world.enter(&thread.signal);
                    thread.touch();
                    world.leave(&thread, || thread.touch());
                })
            };
            collect(&world, None);
            running.join().unwrap();
        });
    }

    // Seen to deadlock when `go_native` wakes nobody.
    #[test]
    fn a_thread_in_a_long_wait_holds_up_nobody() {
        model(|| {
            let world = Arc::new(World::new());
            let thread = enrolled(&world);
            let end = Arc::new(loom::sync::Notify::new());
            let running = {
                let (world, end) = (world.clone(), end.clone());
                loom::thread::spawn(move || {
                    world.enter(&thread.signal);
                    thread.touch();
                    world.go_native(&thread.signal);
                    end.wait();
                    world.leave(&thread, || thread.touch());
                })
            };
            collect(&world, None);
            end.notify();
            running.join().unwrap();
        });
    }

    #[test]
    fn of_two_collectors_one_waits_for_the_other() {
        model(|| {
            let world = Arc::new(World::new());
            let threads = [enrolled(&world), enrolled(&world)];
            let running = threads.map(|thread| {
                let world = world.clone();
                loom::thread::spawn(move || {
                    world.enter(&thread.signal);
                    thread.touch();
                    let collected = collect(&world, Some(&thread.signal));
                    thread.touch();
                    world.leave(&thread, || ());
                    u32::from(collected)
                })
            });
            let collected: u32 = running.map(|thread| thread.join().unwrap()).iter().sum();
            assert!(collected >= 1, "each waited for the other");
        });
    }
}
