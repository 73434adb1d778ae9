//! Calls functions of Lisp for C.

use super::bridge::{Bridges, CSignature};
use super::kinds::{self, ForeignType};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::threads::lock;
use crate::value::{ObjectKind, Value};
use crate::world::class;
use std::cell::Cell;
use std::io::Write as _;

/// Indices of the slots of a function for C, after the property list.
mod slot {
    pub(super) const FUNCTION: usize = 1;
    pub(super) const PARAMETERS: usize = 2;
    pub(super) const RESULT: usize = 3;
    pub(super) const CODE: usize = 4;
    /// The last text or vector that was returned to C, which may read it until the next call.
    pub(super) const RETURNED: usize = 5;
}

thread_local! {
    /// The context of this thread while it runs a function of C, and null otherwise.
    static CALLER: Cell<*mut Context> = const { Cell::new(std::ptr::null_mut()) };
    /// The exit that waits for the function of C to return.
    static WAITING: Cell<Option<Exit>> = const { Cell::new(None) };
}

/// Runs a function of C, which may call functions of Lisp.
pub(super) fn outside(cx: &mut Context, call: impl FnOnce()) -> Result<(), Exit> {
    let this: *mut Context = cx;
    let before = CALLER.replace(this);
    // SAFETY: `this` is `cx`, which nothing else uses until this function returns, except for a callback in `call`,
    // which gets it from `CALLER` and is over when `call` is.
    unsafe { &mut *this }.mutator.suspend();
    call();
    // SAFETY: as above.
    unsafe { &mut *this }.mutator.resume();
    CALLER.set(before);
    match WAITING.take() {
        Some(exit) => Err(exit),
        None => Ok(()),
    }
}

/// Is called by the machine code of a function for C.
///
/// # Safety
/// `function` is the word of a pod that is alive, and `words` the address of its arguments, at least one word.
unsafe extern "C" fn called(function: u64, words: *mut u64) {
    let cx = CALLER.get();
    let pod = Value(function);
    if cx.is_null() {
        let note = "largesse-lisp: a function of Lisp was called by a thread that runs no function of C; it returns 0\n";
        // An error of this write cannot be reported anywhere.
        let _ = std::io::stderr().write_all(note.as_bytes());
        // SAFETY: the caller's promise.
        unsafe { words.write(0) };
        return;
    }
    // SAFETY: `outside` of this thread waits for the function of C, and uses its context only when that has returned.
    let cx = unsafe { &mut *cx };
    cx.mutator.resume();
    let saved = cx.save();
    let result = match WAITING.get() {
        Some(exit) => Err(exit),
        None => answer(cx, pod, words),
    };
    let word = match result {
        Ok(word) => word,
        Err(exit) => {
            WAITING.set(Some(exit));
            0
        }
    };
    cx.restore(&saved);
    cx.mutator.suspend();
    // SAFETY: the caller's promise.
    unsafe { words.write(word) };
}

/// Applies the function of a pod to words of C.
fn answer(cx: &mut Context, pod: Value, words: *const u64) -> Result<u64, Exit> {
    cx.check_stack()?;
    let before = CALLER.replace(std::ptr::null_mut());
    let done = apply(cx, pod, words);
    CALLER.set(before);
    done
}

fn apply(cx: &mut Context, pod: Value, words: *const u64) -> Result<u64, Exit> {
    let mut arguments = Vec::new();
    for (index, name) in pod.slot(slot::PARAMETERS).iter().enumerate() {
        let kind = kinds::kind(cx, name)?;
        // SAFETY: the machine code of the pod stored a word for each parameter.
        let word = unsafe { words.add(index).read() };
        let value = kinds::value(cx, kind, word)?;
        cx.push(value)?;
        arguments.push(value);
    }
    let value = cx.apply(pod.slot(slot::FUNCTION), &arguments)?;
    cx.push(value)?;
    let result = kinds::kind(cx, pod.slot(slot::RESULT))?;
    match result {
        // A function whose result C does not use may return anything.
        ForeignType::Integer | ForeignType::Int if !value.is_fixnum() && !value.is(ObjectKind::Bignum) => {
            Ok(0)
        }
        _ => {
            pod.set_slot(slot::RETURNED, value);
            kinds::word(cx, result, value)
        }
    }
}

/// Implements `(make-pod pod)`: makes the machine code of a function for C, and returns its address. The pod lives as long
/// as the Lisp, as C may keep the address.
pub(super) fn make_pod(cx: &mut Context, args: Args<'_>) -> Answer {
    let pod = args[0];
    if !(pod.is(ObjectKind::Instance) && pod.header().class() == class::FOREIGN_POD) {
        return cx.type_error("foreign-pod", pod);
    }
    let arguments = kinds::declared(cx, pod.slot(slot::PARAMETERS))?;
    let result = kinds::kind(cx, pod.slot(slot::RESULT))?;
    let signature = CSignature {
        arguments: arguments.into_iter().map(ForeignType::passed).collect(),
        result: result.passed(),
    };
    cx.world.tables.pin(pod);
    let made = {
        let mut bridges = lock(&cx.world.bridges);
        Bridges::of(&mut bridges).and_then(|bridges| bridges.callback(&signature, pod.0, called))
    };
    match made {
        Ok(address) => {
            let address = cx.integer_from(address as i64)?;
            pod.set_slot(slot::CODE, address);
            Ok(address)
        }
        Err(cause) => cx.error(ErrorClass::Control, cause),
    }
}
