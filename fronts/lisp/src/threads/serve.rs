//! Starts workers and runs their threads.

use super::worker::{IDLE, LOST, Worker, slot};
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit};
use crate::eval::Saved;
use crate::heap::Lisp;
use crate::value::Value;
use crate::world::{LispWorld, Native, class};
use largesse_gc::ThreadHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Context {
    /// Creates a worker with a machine stack of `stack` bytes, and adds it to the pool.
    pub(crate) fn add_worker(&mut self, stack: usize) -> Result<(), Exit> {
        let class = self.world.class_object(class::THREAD);
        let object = self.new_instance(class)?;
        self.push(object)?;
        let worker = Arc::new(Worker::new(object));
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
            self.world.tables.drop_worker(number);
            return self.error(ErrorClass::Thread, format!("cannot create a thread: {cause}"));
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

fn serve(world: Arc<LispWorld>, handle: ThreadHandle<Lisp>, worker: &Arc<Worker>, stack: usize) {
    let _watch = Watch(worker);
    worker.kernel_thread.store(super::kernel_thread(), Ordering::Relaxed);
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

/// Calls the function in a slot of the worker's thread object with the arguments in another, and stores the result in
/// a third. Returns whether Ctrl-C stopped it.
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
        Err(Exit::Error) => {
            if !worker.is_waited_for() {
                tell(cx, &saved);
            }
            (names.error_key, cx.fixed(Fixed::Error))
        }
        Err(Exit::Interrupt) => (names.interrupt, Value::NIL),
        Err(Exit::Throw | Exit::Block | Exit::Go) => {
            // The block or catch belongs to another thread, so the exit becomes an error of this one.
            let _: Result<Value, Exit> =
                cx.error(ErrorClass::Control, "the exit leads to another thread".to_owned());
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

/// Prints an error whose thread no other one waits for.
fn tell(cx: &mut Context, saved: &Saved) {
    // The report needs a part of the root stack, which is full after an overflow.
    cx.restore(saved);
    let number = cx.fixed(Fixed::Thread).slot(slot::ID);
    let text = format!("thread {}: {}\n", cx.show_short(number), cx.error_report());
    let stream = cx.global_value(cx.world.names.error_output);
    // There is nowhere to report that the report cannot be written.
    let _ = cx.write_bytes(stream, text.as_bytes());
}

impl Context {
    /// Calls a function with a list of arguments; the caller keeps both alive.
    fn call_list_of(&mut self, function: Value, arguments: Value) -> Answer {
        let first = self.mark();
        for argument in arguments.iter() {
            self.push(argument)?;
        }
        let count = self.above(first);
        self.call(function, first, count)
    }
}
