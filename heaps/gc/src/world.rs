//! Implements stopping the world: the registry of the heap's threads, and the protocol that stops them for a
//! collection.
//!
//! A member is *running* (it may access objects), *native* (it does not: it is in a system call or a wait, or has not
//! started) or *parked* (it waits for the end of a collection). A collection sets every member's poll word and waits
//! until none is running. A native member that resumes stores its state and then loads its poll word; the collector
//! stores the poll words and then loads the states. A `SeqCst` fence separates the two steps of each, so at least one
//! sees the other's store: a thread in a system call delays no collection, and cannot resume during one unnoticed.

use crate::context::Signal;
use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, fence, lock, wait};
use std::sync::Arc;

/// This bit of a poll word asks a member to stop.
pub(crate) const STOP: u32 = 1;
pub(crate) const ATTENTION: u32 = 2;

const RUNNING: u32 = 0;
const NATIVE: u32 = 1;
const PARKED: u32 = 2;

impl Signal {
    /// Creates the signal of a member that is registered and has not started: native.
    pub(crate) fn new() -> Signal {
        Signal { poll: AtomicU32::new(0), state: AtomicU32::new(NATIVE) }
    }

    /// Returns whether the calling thread, which must be the owner of this signal, may access objects.
    pub(crate) fn is_running(&self) -> bool {
        // Relaxed: only the thread itself changes its state while it runs.
        self.state.load(Ordering::Relaxed) == RUNNING
    }
}

/// A member is a thread that can be stopped.
pub(crate) trait Member {
    fn signal(&self) -> &Signal;
}

#[derive(Debug)]
struct Gate<M> {
    members: Vec<Arc<M>>,
    collecting: bool,
}

/// Registers all members, and can stop them.
#[derive(Debug)]
pub(crate) struct ThreadRegistry<M> {
    gate: Mutex<Gate<M>>,
    stopped: Condvar,
    resumed: Condvar,
}

/// Keeps every member but the collecting one stopped until it is dropped.
pub(crate) struct Stopped<'a, M: Member> {
    pub(crate) members: Vec<Arc<M>>,
    world: &'a ThreadRegistry<M>,
    me: Option<&'a Signal>,
}

impl<M: Member> ThreadRegistry<M> {
    pub(crate) fn new() -> ThreadRegistry<M> {
        ThreadRegistry {
            gate: Mutex::new(Gate { members: Vec::new(), collecting: false }),
            stopped: Condvar::new(),
            resumed: Condvar::new(),
        }
    }

    /// Registers a member in state native: collections include it from now on.
    pub(crate) fn register(&self, member: Arc<M>) {
        let mut gate = lock(&self.gate);
        if gate.collecting {
            // Relaxed: the start of the thread orders it.
            member.signal().poll.fetch_or(STOP, Ordering::Relaxed);
        }
        gate.members.push(member);
    }

    /// Unregisters a running or native member for good. Runs `last` while no collection is under way.
    pub(crate) fn leave(&self, member: &Arc<M>, last: impl FnOnce()) {
        let mut gate = self.park(member.signal(), lock(&self.gate));
        last();
        gate.members.retain(|it| !Arc::ptr_eq(it, member));
    }

    /// Declares that the calling member accesses no objects until [`enter`](ThreadRegistry::enter).
    pub(crate) fn go_native(&self, me: &Signal) {
        // Release: pairs with the Acquire in `stop`, so that the collector sees this thread's writes.
        me.state.store(NATIVE, Ordering::Release);
        // See the head of this file.
        fence(Ordering::SeqCst);
        if me.poll.load(Ordering::Relaxed) & STOP != 0 {
            // A collector may have seen this thread running, and sleep.
            drop(lock(&self.gate));
            self.stopped.notify_all();
        }
    }

    /// Declares that the calling member accesses objects from now on. Waits for the end of a collection.
    pub(crate) fn enter(&self, me: &Signal) {
        me.state.store(RUNNING, Ordering::Relaxed);
        // See the head of this file.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release at the end of a collection, so that this thread sees its writes.
        if me.poll.load(Ordering::Acquire) & STOP != 0 {
            self.stand_still(me);
        }
    }

    /// Parks the calling member until the collection that asked it to stop is over.
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

    /// Stops every member but the caller. Returns `None` if another collection was under way, after waiting for its
    /// end.
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
            // Relaxed: only this thread reads it before the end of the collection.
            me.state.store(PARKED, Ordering::Relaxed);
        }
        for member in &gate.members {
            member.signal().poll.fetch_or(STOP, Ordering::Relaxed);
        }
        // See the head of this file. Members registered from now on are native.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release in `go_native`; the lock orders the writes of parked members.
        while gate.members.iter().any(|it| it.signal().state.load(Ordering::Acquire) == RUNNING) {
            gate = wait(&self.stopped, gate);
        }
        Some(Stopped { members: gate.members.clone(), world: self, me })
    }

    /// Makes the next poll of every member return `true`.
    pub(crate) fn call_attention(&self) {
        for member in &lock(&self.gate).members {
            // Release: a called thread sees the reason.
            member.signal().poll.fetch_or(ATTENTION, Ordering::Release);
        }
    }

    /// Returns the current members.
    pub(crate) fn members(&self) -> Vec<Arc<M>> {
        lock(&self.gate).members.clone()
    }
}

/// Resumes all members at the end of a collection.
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

    /// A member whose data only its thread may access while it runs.
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
            // SAFETY: loom fails when two threads do this at the same time.
            self.own.with_mut(|own| unsafe { *own += 1 });
        }
    }

    fn registered(world: &ThreadRegistry<Thread>) -> Arc<Thread> {
        let thread = Arc::new(Thread { signal: Signal::new(), own: UnsafeCell::new(0) });
        world.register(thread.clone());
        thread
    }

    fn poll(world: &ThreadRegistry<Thread>, me: &Thread) {
        if me.signal.poll.load(Ordering::Relaxed) & STOP != 0 {
            world.stand_still(&me.signal);
        }
    }

    fn collect(world: &ThreadRegistry<Thread>, me: Option<&Signal>) -> bool {
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
    fn running_thread_is_never_touched() {
        model(|| {
            let world = Arc::new(ThreadRegistry::new());
            let thread = registered(&world);
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

    // Seen to deadlock when `go_native` wakes no collector.
    #[test]
    fn native_thread_delays_no_collection() {
        model(|| {
            let world = Arc::new(ThreadRegistry::new());
            let thread = registered(&world);
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
    fn concurrent_collectors_wait_for_each_other() {
        model(|| {
            let world = Arc::new(ThreadRegistry::new());
            let threads = [registered(&world), registered(&world)];
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
