//! Implements threads, mutexes, conditions and semaphores as builtins.

use super::worker::slot;
use super::{Condition, LispMutex, Semaphore, Worker};
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use crate::world::{Native, class};
use std::sync::Arc;

pub(crate) const BUILTINS: &[Builtin] = &[
    builtin("SYSTEM:MAKE-THREAD", 1, 3, make_thread),
    builtin("SYSTEM:THREAD", 1, MANY, |cx, args| start(cx, args, true)),
    builtin("SYSTEM:THREAD-NO-WAIT", 1, MANY, |cx, args| start(cx, args, false)),
    builtin("SYSTEM:WAIT-THREAD", 1, 1, wait_thread),
    builtin("SYSTEM:FREE-THREADS", 0, 0, |cx, _| {
        let free: Vec<Value> = cx.world.pool.free().iter().map(|worker| worker.object()).collect();
        cx.list(&free)
    }),
    builtin("SYSTEM:THREADS", 0, 0, |cx, _| {
        let all: Vec<Value> = cx.world.pool.workers().iter().map(|worker| worker.object()).collect();
        cx.list(&all)
    }),
    builtin("SYSTEM:THREAD-SELF", 0, 0, |cx, _| Ok(cx.fixed(Fixed::Thread))),
    builtin("SYSTEM:MAKE-MUTEX-LOCK", 0, 0, |cx, _| native(cx, class::MUTEX, Native::Mutex(Arc::default()))),
    builtin("SYSTEM:MUTEX-LOCK", 1, 1, |cx, args| {
        let mutex = mutex(cx, args[0])?;
        lock_it(cx, &mutex)?;
        Ok(cx.truth(true))
    }),
    builtin("SYSTEM:MUTEX-TRYLOCK", 1, 1, |cx, args| {
        let got = mutex(cx, args[0])?.try_lock();
        Ok(cx.truth(got))
    }),
    builtin("SYSTEM:MUTEX-UNLOCK", 1, 1, |cx, args| {
        if !mutex(cx, args[0])?.unlock() {
            return cx.fail(ErrorClass::Thread, "mutex-unlock of a mutex that is not locked".to_owned());
        }
        Ok(cx.truth(true))
    }),
    builtin("SYSTEM:MAKE-COND", 0, 0, |cx, _| {
        native(cx, class::CONDITION, Native::Condition(Arc::default()))
    }),
    builtin("SYSTEM:COND-WAIT", 2, 2, cond_wait),
    builtin("SYSTEM:COND-SIGNAL", 1, 1, |cx, args| {
        condition(cx, args[0])?.signal();
        Ok(cx.truth(true))
    }),
    builtin("SYSTEM:COND-BROADCAST", 1, 1, |cx, args| {
        condition(cx, args[0])?.broadcast();
        Ok(cx.truth(true))
    }),
    builtin("SYSTEM:MAKE-SEMAPHORE", 0, 0, |cx, _| {
        native(cx, class::SEMAPHORE, Native::Semaphore(Arc::default()))
    }),
    builtin("SYSTEM:SEMA-POST", 1, 1, |cx, args| {
        semaphore(cx, args[0])?.post();
        Ok(cx.truth(true))
    }),
    builtin("SYSTEM:SEMA-WAIT", 1, 1, |cx, args| {
        let semaphore = semaphore(cx, args[0])?;
        while !cx.blocked(|| semaphore.wait_for_a_while()) {
            cx.poll()?;
        }
        Ok(cx.truth(true))
    }),
    builtin("SYSTEM:SEMA-TRYWAIT", 1, 1, |cx, args| {
        let got = semaphore(cx, args[0])?.try_wait();
        Ok(cx.truth(got))
    }),
];

/// Largest number of workers in a pool.
const MOST: usize = 1024;
/// Default size in bytes of a worker's machine stack.
const STACK: usize = 8 << 20;
const LEAST_STACK: usize = 1 << 20;

fn make_thread(cx: &mut Context, args: Args<'_>) -> Answer {
    let count = args.size(cx, 0)?;
    if count + cx.world.pool.workers().len() > MOST {
        return cx.error_about(ErrorClass::Range, format!("more than {MOST} threads"), args[0]);
    }
    let stack = if args.len() > 2 { args.size(cx, 2)?.clamp(LEAST_STACK, 1 << 30) } else { STACK };
    let before = cx.world.pool.workers().len();
    for _ in 0..count {
        cx.add_worker(stack)?;
    }
    let all: Vec<Value> = cx.world.pool.workers().iter().map(|worker| worker.object()).collect();
    let list = cx.list(&all)?;
    cx.push(list)?;
    let name = cx.installed_name("SYSTEM:*THREADS*")?;
    cx.set_global(name, list);
    cx.list(&all[before..])
}

fn native(cx: &mut Context, number: u16, native: Native) -> Answer {
    let class = cx.world.class_object(number);
    let object = cx.new_instance(class)?;
    object.set_slot(1, cx.world.tables.hold(native));
    cx.finalize_later(object);
    Ok(object)
}

fn held(cx: &mut Context, value: Value, number: u16) -> Option<Native> {
    let is = value.is(ObjectKind::Instance) && cx.derives(cx.world.class_of(value), number);
    if is { cx.world.tables.native(value.slot(1)) } else { None }
}

fn mutex(cx: &mut Context, value: Value) -> Result<Arc<LispMutex>, Exit> {
    match held(cx, value, class::MUTEX) {
        Some(Native::Mutex(mutex)) => Ok(mutex),
        _ => cx.type_error("mutex", value),
    }
}

fn condition(cx: &mut Context, value: Value) -> Result<Arc<Condition>, Exit> {
    match held(cx, value, class::CONDITION) {
        Some(Native::Condition(condition)) => Ok(condition),
        _ => cx.type_error("condition", value),
    }
}

fn semaphore(cx: &mut Context, value: Value) -> Result<Arc<Semaphore>, Exit> {
    match held(cx, value, class::SEMAPHORE) {
        Some(Native::Semaphore(semaphore)) => Ok(semaphore),
        _ => cx.type_error("semaphore", value),
    }
}

fn worker(cx: &mut Context, value: Value) -> Result<Arc<Worker>, Exit> {
    let is = value.is(ObjectKind::Instance) && cx.derives(cx.world.class_of(value), class::THREAD);
    let native = if is { cx.world.tables.native(value.slot(slot::NATIVE)) } else { None };
    match native {
        Some(Native::Worker(worker)) => Ok(worker),
        _ => cx.type_error("thread", value),
    }
}

fn lock_it(cx: &mut Context, mutex: &LispMutex) -> Result<(), Exit> {
    if mutex.try_lock() {
        return Ok(());
    }
    while !cx.blocked(|| mutex.lock_for_a_while()) {
        cx.poll()?;
    }
    Ok(())
}

/// Locks a mutex for the cleanup forms of an exit, which unlock it, and returns the exit. Another Ctrl-C ends the wait.
fn lock_again(cx: &mut Context, mutex: &LispMutex, exit: Exit) -> Exit {
    while !cx.blocked(|| mutex.lock_for_a_while()) {
        if cx.forget_interrupts() {
            return Exit::Interrupt;
        }
    }
    exit
}

/// Implements `(cond-wait condition mutex)`: unlocks the mutex during the wait and locks it again afterwards.
fn cond_wait(cx: &mut Context, args: Args<'_>) -> Answer {
    let (condition, mutex) = (condition(cx, args[0])?, mutex(cx, args[1])?);
    condition.announce();
    if !mutex.unlock() {
        condition.withdraw();
        return cx.fail(ErrorClass::Thread, "cond-wait with a mutex that is not locked".to_owned());
    }
    while !cx.blocked(|| condition.wait_for_a_while()) {
        if let Err(exit) = cx.poll() {
            condition.withdraw();
            return Err(lock_again(cx, &mutex, exit));
        }
    }
    if let Err(exit) = lock_it(cx, &mutex) {
        return Err(lock_again(cx, &mutex, exit));
    }
    Ok(cx.truth(true))
}

/// Implements `(thread function . arguments)`: waits for a free worker, starts it and returns the thread object.
fn start(cx: &mut Context, args: Args<'_>, wait_later: bool) -> Answer {
    if cx.world.pool.is_empty() {
        return cx
            .fail(ErrorClass::Thread, "there are no threads: call (sys:make-thread n) first".to_owned());
    }
    let bindings = cx.copy_bindings()?;
    cx.push(bindings)?;
    let arguments = cx.list(&args[1..])?;
    cx.push(arguments)?;
    let world = Arc::clone(&cx.world);
    let worker = loop {
        if let Some(worker) = cx.blocked(|| world.pool.take_for_a_while()) {
            break worker;
        }
        cx.poll()?;
    };
    let object = worker.object();
    object.set_slot(slot::FUNCTION, args[0]);
    object.set_slot(slot::ARGUMENTS, arguments);
    object.set_slot(slot::BINDINGS, bindings);
    object.set_slot(slot::RESULT, Value::NIL);
    object.set_slot(slot::STATE, Value::NIL);
    worker.request(wait_later, cx.interrupts());
    Ok(object)
}

/// Waits for the result of a thread's work; signals an error that ended it again.
fn wait_thread(cx: &mut Context, args: Args<'_>) -> Answer {
    let worker = worker(cx, args[0])?;
    if !worker.is_waited_for() {
        return cx.fail(
            ErrorClass::Thread,
            "this thread has no result to wait for: it was started by thread-no-wait, or not at all"
                .to_owned(),
        );
    }
    while !cx.blocked(|| worker.done_for_a_while()) {
        cx.poll()?;
    }
    assert!(!worker.is_lost(), "the awaited thread panicked");
    let (state, result) = (args[0].slot(slot::STATE), args[0].slot(slot::RESULT));
    cx.push(result)?;
    worker.was_waited_for();
    let world = Arc::clone(&cx.world);
    world.pool.give_back(worker);
    let names = cx.world.names;
    if state == names.t {
        return Ok(result);
    }
    if state == names.quit {
        cx.set_fixed(Fixed::Exit, result);
        return Err(Exit::Quit);
    }
    if state == names.interrupt {
        return Err(Exit::Interrupt);
    }
    if !cx.is_error(result) {
        return cx.fail(ErrorClass::Thread, "the program modified the thread's result".to_owned());
    }
    cx.set_fixed(Fixed::Error, result);
    cx.depth = 0;
    Err(Exit::Error)
}
