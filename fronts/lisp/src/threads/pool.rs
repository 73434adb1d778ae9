//! Implements the thread pool: workers are created before there is work for them.

use super::wait::PIECE;
use super::{Semaphore, lock};
use crate::context::{Context, Fixed};
use crate::error::Exit;
use crate::value::Value;
use crate::world::{LispWorld, Native};
use largesse_gc::ThreadHandle;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A worker evaluates calls in a thread of its own.
pub(crate) struct Worker {
    /// Its Lisp object, whose slots hold function, arguments, result and bindings.
    object: Value,
    state: AtomicU8,
    requested: Semaphore,
    done: Semaphore,
    /// Whether a thread will wait for the result; otherwise the worker returns to the pool by itself.
    waited_for: AtomicBool,
    /// Number of interrupts before the work began.
    interrupts: AtomicU32,
}

const IDLE: u8 = 0;
const BUSY: u8 = 1;
/// This state says that the worker's thread ended by a panic.
const LOST: u8 = 2;

/// Indices of the slots of a thread object.
pub(crate) mod slot {
    pub(crate) const ID: usize = 1;
    pub(crate) const FUNCTION: usize = 2;
    pub(crate) const ARGUMENTS: usize = 3;
    pub(crate) const RESULT: usize = 4;
    pub(crate) const BINDINGS: usize = 5;
    /// The result's state is nil without a result yet; otherwise t, `:error`, `:quit` or `:interrupt`.
    pub(crate) const STATE: usize = 6;
    pub(crate) const NATIVE: usize = 7;
}

/// Holds the workers; the free ones are queued, oldest first.
#[derive(Default)]
pub(crate) struct ThreadPool {
    free: Mutex<VecDeque<Arc<Worker>>>,
    freed: Condvar,
    all: Mutex<Vec<Arc<Worker>>>,
}

impl Worker {
    pub(crate) fn object(&self) -> Value {
        self.object
    }

    pub(crate) fn roots(&self, visit: &mut impl FnMut(Value)) {
        visit(self.object);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state.load(Ordering::Acquire) == LOST
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::Acquire)
    }

    pub(crate) fn was_waited_for(&self) {
        self.waited_for.store(false, Ordering::Release);
    }

    /// Starts the work that the object's slots describe.
    pub(crate) fn request(&self, waited_for: bool, interrupts: u32) {
        self.waited_for.store(waited_for, Ordering::Release);
        self.interrupts.store(interrupts, Ordering::Release);
        self.requested.post();
    }

    /// Waits up to [`PIECE`] for the work; returns whether it is done.
    pub(crate) fn done_for_a_while(&self) -> bool {
        self.done.wait_for_a_while()
    }
}

impl ThreadPool {
    pub(crate) fn add(&self, worker: Arc<Worker>) {
        lock(&self.all).push(Arc::clone(&worker));
        self.give_back(worker);
    }

    /// Returns a worker to the pool, unless it is there already or has work.
    pub(crate) fn give_back(&self, worker: Arc<Worker>) {
        let mut free = lock(&self.free);
        let taken = worker.state.load(Ordering::Acquire) != IDLE;
        if taken || free.iter().any(|it| Arc::ptr_eq(it, &worker)) {
            return;
        }
        free.push_back(worker);
        self.freed.notify_one();
    }

    /// Returns idle workers to the pool after Ctrl-C, as the thread that should fetch a result may have been
    /// interrupted. A result can be fetched until its worker gets other work.
    pub(crate) fn reclaim(&self) {
        self.workers().into_iter().for_each(|worker| self.give_back(worker));
    }

    /// Returns the number of workers that have work.
    pub(crate) fn busy(&self) -> usize {
        lock(&self.all).iter().filter(|it| it.state.load(Ordering::Acquire) == BUSY).count()
    }

    pub(crate) fn workers(&self) -> Vec<Arc<Worker>> {
        lock(&self.all).clone()
    }

    pub(crate) fn free(&self) -> Vec<Arc<Worker>> {
        lock(&self.free).iter().map(Arc::clone).collect()
    }

    /// Waits up to [`PIECE`] for a free worker and takes it.
    pub(crate) fn take_for_a_while(&self) -> Option<Arc<Worker>> {
        let free = lock(&self.free);
        let (mut free, _) = self
            .freed
            .wait_timeout_while(free, PIECE, |free| free.is_empty())
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let worker = free.pop_front()?;
        worker.state.store(BUSY, Ordering::Release);
        // Clears the completion of a reclaimed worker.
        worker.done.try_wait();
        Some(worker)
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.all).is_empty()
    }
}

impl Context {
    /// Creates a worker with a machine stack of `stack` bytes, and adds it to the pool.
    pub(crate) fn add_worker(&mut self, stack: usize) -> Result<(), Exit> {
        let class = self.world.class_object(crate::world::class::THREAD);
        let object = self.new_instance(class)?;
        self.push(object)?;
        let worker = Arc::new(Worker {
            object,
            state: AtomicU8::new(IDLE),
            requested: Semaphore::default(),
            done: Semaphore::default(),
            waited_for: AtomicBool::new(false),
            interrupts: AtomicU32::new(0),
        });
        let number = self.world.tables.hold(Native::Worker(Arc::clone(&worker)));
        object.set_slot(slot::NATIVE, number);
        object.set_slot(slot::ID, number);
        // Registered before the thread exists, so that every collection includes it.
        let handle = self.world.heap.register_thread();
        let (world, thread) = (Arc::clone(&self.world), Arc::clone(&worker));
        let spawned = std::thread::Builder::new()
            .name("largesse-lisp".to_owned())
            .stack_size(stack)
            .spawn(move || serve(world, handle, &thread, stack));
        if let Err(cause) = spawned {
            self.world.tables.drop_native(number);
            return self.error(crate::error::ErrorClass::Thread, format!("cannot create a thread: {cause}"));
        }
        self.world.pool.add(worker);
        Ok(())
    }
}

/// Ends waits for a thread that panics.
struct Watch<'a>(&'a Worker);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.state.store(LOST, Ordering::Release);
        self.0.done.post();
    }
}

fn serve(world: Arc<LispWorld>, handle: ThreadHandle<crate::heap::Lisp>, worker: &Arc<Worker>, stack: usize) {
    let _watch = Watch(worker);
    let mut cx = Context::new(world, handle.enter(), stack);
    cx.set_fixed(Fixed::Thread, worker.object);
    loop {
        while !cx.blocked(|| worker.requested.wait_for_a_while()) {
            // An idle worker ignores interrupts.
            let _ = cx.poll();
        }
        let stopped = work(&mut cx, worker);
        let waited_for = worker.is_waited_for();
        worker.state.store(IDLE, Ordering::Release);
        if waited_for {
            worker.done.post();
        }
        if stopped || !waited_for {
            cx.world.pool.give_back(Arc::clone(worker));
        }
    }
}

/// Calls the function of the slots and stores the result there. Returns whether Ctrl-C stopped it.
fn work(cx: &mut Context, worker: &Worker) -> bool {
    let object = worker.object;
    let saved = cx.save();
    cx.set_fixed(Fixed::Bindings, object.slot(slot::BINDINGS));
    let answer = match cx.take_up(worker.interrupts.load(Ordering::Acquire)) {
        Ok(()) => cx.call_list_of(object.slot(slot::FUNCTION), object.slot(slot::ARGUMENTS)),
        Err(exit) => Err(exit),
    };
    let names = cx.world.names;
    let (state, result) = match answer {
        Ok(value) => (names.t, value),
        Err(Exit::Quit) => (names.quit, cx.fixed(Fixed::Exit)),
        Err(Exit::Error) => (names.error_key, cx.fixed(Fixed::Error)),
        Err(Exit::Interrupt) => (names.interrupt, Value::NIL),
        Err(Exit::Throw | Exit::Block | Exit::Go) => {
            // The block or catch belongs to another thread, so the exit becomes an error of this one.
            let _: Result<Value, Exit> =
                cx.error(crate::error::ErrorClass::Control, "the exit leads to another thread".to_owned());
            (names.error_key, cx.fixed(Fixed::Error))
        }
    };
    object.set_slot(slot::RESULT, result);
    object.set_slot(slot::STATE, state);
    object.set_slot(slot::FUNCTION, Value::NIL);
    object.set_slot(slot::ARGUMENTS, Value::NIL);
    object.set_slot(slot::BINDINGS, Value::NIL);
    cx.restore(&saved);
    cx.set_fixed(Fixed::Bindings, Value::NIL);
    state == names.interrupt
}

impl Context {
    /// Calls a function with a list of arguments; the caller keeps both alive.
    fn call_list_of(&mut self, function: Value, arguments: Value) -> crate::context::Answer {
        let first = self.mark();
        for argument in arguments.iter() {
            self.push(argument)?;
        }
        let count = self.above(first);
        self.call(function, first, count)
    }
}
