//! The runtime: functions that machine code calls.
//!
//! A function returns a word: a value, or [`GONE`] for an exit, whose kind is then in the context.

use super::passed::PassedForm;
use super::slot;
use crate::context::{Answer, Context, Fixed};
use crate::error::{ErrorClass, Exit};
use crate::eval::Saved;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

/// This word stands for an exit, as no function returns it as its value.
pub(super) const GONE: u64 = Value::ABSENT.0;

/// The word of an operand that is a float in a register.
pub(super) const UNBOXED: Value = Value::ABSENT;

macro_rules! helpers {
    ($($(#[$about:meta])* $variant:ident $name:ident($($argument:ident: $type:ty),*) $body:expr;)*) => {
        /// A helper is a function of the runtime, called with the context and words.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(super) enum Helper {
            $($(#[$about])* $variant,)*
        }

        impl Helper {
            /// Lists each helper's name, address and number of words besides the context.
            pub(super) const ALL: &[super::jit::HelperAddress] = &[
                $((stringify!($name), || $name as *const u8, <[&str]>::len(&[$(stringify!($argument)),*])),)*
            ];
        }

        $(
            /// Runs a helper for machine code.
            ///
            /// # Safety
            /// `cx` is the calling thread's context, which machine code got from its caller and no other code uses
            /// during the call. Addresses among the arguments point into the root stack, below its top, or into the
            /// caller's frame.
            unsafe extern "C" fn $name(cx: *mut Context, $($argument: $type),*) -> u64 {
                // SAFETY: the promise above.
                let cx = unsafe { &mut *cx };
                let body: fn(&mut Context, $($type),*) -> Answer = $body;
                match body(cx, $($argument),*) {
                    Ok(value) => value.0,
                    Err(exit) => {
                        cx.leaving = exit;
                        GONE
                    }
                }
            }
        )*
    };
}

/// Holds the details of an exit that an `unwind-protect` saves during its cleanup.
pub(super) struct Aside {
    saved: Saved,
    exit: Exit,
    target: i64,
    depth: usize,
}

/// Bytes of the caller's frame that [`Saved`] or [`Aside`] need.
pub(super) const FRAME_BYTES: usize = size_of::<Aside>();

const STATE: [Fixed; 3] = [Fixed::Exit, Fixed::Tag, Fixed::Error];

fn read(saved: *const Saved) -> Saved {
    // SAFETY: helpers get the address of a slot in their caller's frame that `Save` has written.
    unsafe { *saved }
}

fn put(saved: *mut Saved, cx: &Context) {
    // SAFETY: a slot of `FRAME_BYTES` bytes, aligned to 16, in the caller's frame.
    unsafe { saved.write(cx.save()) }
}

helpers! {
    Call call(form: Value, function: Value, arguments: *mut Value, count: usize) |cx, form, function, arguments, count| {
        let mark = cx.mark();
        let first = cx.mark_at(arguments);
        cx.check_stack()?;
        cx.set_fixed(Fixed::Form, form);
        let code = if function.is_symbol_object() { function.get(symbol::FUNCTION) } else { function };
        let value = if code.is(ObjectKind::Builtin) {
            // The builtin `send`, whatever the name that calls it.
            if code.get(1 + crate::builtin::slot::NAME) == cx.world.names.send && count >= 2 {
                cx.send_in_place(arguments, count)?
            } else {
                // Its object is not used after the call has begun, so that nothing need keep it alive.
                let arguments = cx.arguments(first, count);
                cx.call_builtin(code, arguments)?
            }
        } else if code.is_object() {
            cx.push(code)?;
            cx.call_object(code, first, count)?
        } else if code.car() == cx.world.names.macro_ {
            return still_a_function(cx, function);
        } else {
            cx.call(function, first, count)?
        };
        cx.release(mark);
        Ok(value)
    };
    Known known(form: Value, name: Value) |cx, form, name| {
        let function = name.get(symbol::FUNCTION);
        if function == Value::UNBOUND || function.as_special_form().is_some() {
            cx.set_fixed(Fixed::Form, form);
            let shown = cx.show_short(name);
            return cx.error_about(ErrorClass::Undefined, format!("undefined function {shown}"), name);
        }
        if function.car() == cx.world.names.macro_ { still_a_function(cx, name) } else { Ok(Value::NIL) }
    };
    Poll poll() |cx| cx.poll().map(|()| Value::NIL);
    /// Checks the stacks for a function with a number of roots, and polls.
    Enter enter(roots: usize) |cx, roots| {
        cx.check_stack()?;
        if cx.roots_left() < roots + Context::RESERVE {
            cx.stack_overflow()?;
        }
        cx.poll().map(|()| Value::NIL)
    };
    /// Adds forms to the backtrace of an error that passes them.
    Passed passed(forms: *const PassedForm) |cx, forms| {
        // SAFETY: the compiler never frees the forms that its code names.
        let mut next = unsafe { forms.as_ref() };
        while let Some(passed) = next.filter(|_| cx.leaving == Exit::Error) {
            cx.failed_in(passed.form);
            // SAFETY: as above.
            next = unsafe { passed.outer.as_ref() };
        }
        Err(cx.leaving)
    };
    Arity arity(parameters: Value, count: usize) |cx, parameters, count| cx.wrong_arguments(parameters, count);
    Global global(name: Value) |cx, name| cx.global_or_error(name);
    SetGlobal set_global(name: Value, value: Value) |cx, name, value| {
        if !name.is_symbol_object() {
            return cx.type_error("variable", name);
        }
        cx.assign_global(name, value).map(|()| value)
    };
    /// Reads a variable of a method that is not a slot of the method's class; it may be a slot of the object's class.
    Own own(object: Value, name: Value) |cx, object, name| match cx.own_value(object, name) {
        Some(value) => Ok(value),
        None => cx.global_or_error(name),
    };
    SetOwn set_own(object: Value, name: Value, value: Value) |cx, object, name, value| {
        if !cx.set_own_value(object, name, value)? {
            cx.assign_global(name, value)?;
        }
        Ok(value)
    };
    SlotNamed slot_named(object: Value, name: Value) |cx, object, name| cx.slot_named(object, name);
    SetSlotNamed set_slot_named(object: Value, name: Value, value: Value) |cx, object, name, value| {
        cx.set_slot_named(object, name, value).map(|()| value)
    };
    Function function(name: Value) |cx, name| cx.function_named(name);
    Cons cons(car: Value, cdr: Value) |cx, car, cdr| cx.cons(car, cdr);
    /// Allocates an integer that may be larger than a fixnum.
    Integer integer(number: i64) |cx, number| cx.integer_from(number);
    /// Returns the word of a float, which is a new object if the float does not fit in a word.
    Float float(bits: u64) |cx, bits| cx.float(f64::from_bits(bits));
    /// Returns the word of an operand that may be a float in a register.
    Box boxed(word: Value, bits: u64) |cx, word, bits| {
        if word == UNBOXED { cx.float(f64::from_bits(bits)) } else { Ok(word) }
    };
    ListPart list_part(form: Value, value: Value, index: usize) |cx, form, value, index| {
        cx.set_fixed(Fixed::Form, form);
        cx.list_part(value, index)
    };
    NotAList not_a_list(form: Value, value: Value) |cx, form, value| {
        if !form.is_nil() {
            cx.set_fixed(Fixed::Form, form);
        }
        cx.type_error("list", value)
    };
    Turns turns(count: Value) |cx, count| cx.turns(count).map(Value::fixnum);
    Eql eql(a: Value, b: Value) |cx, a, b| Ok(cx.truth(crate::builtins::compare::eql(a, b)));
    /// Converts a value to the list that `multiple-value-bind` destructures.
    AsList as_list(value: Value) |cx, value| if value.is_list() { Ok(value) } else { cx.list(&[value]) };
    Close close(code: usize, template: Value, constants: Value, captured: *mut Value, count: usize)
        |cx, code, template, constants, captured, count| {
            let first = cx.mark_at(captured);
            let function = new_function(cx, code, template, constants, count)?;
            for index in 0..count {
                function.set_slot(slot::CAPTURED + index, cx.root(first, index));
            }
            Ok(function)
        };
    /// Defines a function by an inner `defun`.
    Define define(form: Value, function: Value) |cx, form, function| cx.define_function(form, function);
    Eval eval(form: Value) |cx, form| {
        let saved = cx.save();
        let value = cx.eval(form)?;
        cx.restore(&saved);
        Ok(value)
    };
    BindSpecial bind_special(name: Value, value: Value) |cx, name, value| {
        cx.bind_special(name, value).map(|()| Value::NIL)
    };
    Progv progv(names: Value, values: Value) |cx, names, values| {
        cx.progv(names, values).map(|()| Value::NIL)
    };
    Save save(saved: *mut Saved) |cx, saved| {
        put(saved, cx);
        Ok(Value::NIL)
    };
    Restore restore(saved: *mut Saved) |cx, saved| {
        cx.restore(&read(saved));
        Ok(Value::NIL)
    };
    /// Returns a new number for a block or tagbody.
    Target target() |cx| Ok(Value::fixnum(cx.new_target()));
    /// Exits to a block of an outer function, which no jump can reach.
    Leave leave(target: Value, value: Value) |cx, target, value| exit_to(cx, Exit::Block, target, value);
    Go go(target: Value, tag: Value) |cx, target, tag| exit_to(cx, Exit::Go, target, tag);
    NoBlock no_block(name: Value) |cx, name| cx.no_block(name);
    NoTag no_tag(tag: Value) |cx, tag| cx.no_tag(tag);
    /// Returns the value of an exit if this is its block or tagbody. Otherwise the exit continues.
    Arrived arrived(saved: *mut Saved, target: Value) |cx, saved, target| {
        let here = matches!(cx.leaving, Exit::Block | Exit::Go) && Some(cx.target) == target.as_fixnum();
        if !here {
            return Err(cx.leaving);
        }
        cx.restore(&read(saved));
        Ok(cx.fixed(Fixed::Exit))
    };
    Catch catch(saved: *mut Saved, tag: Value) |cx, saved, tag| {
        put(saved, cx);
        cx.catches.push(tag);
        Ok(Value::NIL)
    };
    EndCatch end_catch() |cx| {
        cx.catches.pop();
        Ok(Value::NIL)
    };
    Caught caught(saved: *mut Saved, tag: Value) |cx, saved, tag| {
        cx.catches.pop();
        if cx.leaving != Exit::Throw || cx.fixed(Fixed::Tag) != tag {
            return Err(cx.leaving);
        }
        cx.restore(&read(saved));
        Ok(cx.fixed(Fixed::Exit))
    };
    Throw throw(tag: Value, value: Value) |cx, tag, value| cx.throw(tag, value);
    /// Returns the current error if it is an instance of the class `name`. Otherwise the exit continues.
    Handles handles(saved: *mut Saved, name: Value) |cx, saved, name| {
        let error = cx.fixed(Fixed::Error);
        let class = cx.global_value(name);
        let ours = cx.leaving == Exit::Error
            && class != Value::UNBOUND
            && cx.is_subclass(cx.world.class_of(error), class);
        if !ours {
            return Err(cx.leaving);
        }
        cx.restore(&read(saved));
        Ok(error)
    };
    /// Saves the details of an exit before cleanup forms, which may overwrite them.
    Unwind unwind(aside: *mut Aside) |cx, aside| {
        let saved = read(aside.cast());
        cx.restore(&saved);
        let state = Aside { saved, exit: cx.leaving, target: cx.target, depth: cx.depth };
        // SAFETY: a slot of `FRAME_BYTES` bytes in the caller's frame.
        unsafe { aside.write(state) };
        for which in STATE {
            cx.push(cx.fixed(which))?;
        }
        for call in cx.backtrace() {
            cx.push(call)?;
        }
        Ok(Value::NIL)
    };
    /// Continues an exit after its cleanup forms.
    Resume resume(aside: *mut Aside) |cx, aside| {
        // SAFETY: `Unwind` has written it.
        let Aside { saved, exit, target, depth } = unsafe { aside.read() };
        let first = saved.mark();
        cx.target = target;
        for (index, which) in STATE.into_iter().enumerate() {
            cx.set_fixed(which, cx.root(first, index));
        }
        cx.depth = 0;
        for index in 0..depth {
            cx.passed(cx.root(first, STATE.len() + index));
        }
        Err(exit)
    };
    Rest rest(arguments: *mut Value, from: usize, count: usize) |cx, arguments, from, count| {
        let first = cx.mark_at(arguments);
        let mut list = Value::NIL;
        for index in (from..count).rev() {
            list = cx.cons(cx.root(first, index), list)?;
        }
        Ok(list)
    };
    Key key(arguments: *mut Value, from: usize, count: usize, key: Value) |cx, arguments, from, count, key| {
        let first = cx.mark_at(arguments);
        Ok(cx.key_argument(key, first, from, count).unwrap_or(Value::MISSING))
    };
    CheckKeys check_keys(arguments: *mut Value, from: usize, count: usize, parameters: Value)
        |cx, arguments, from, count, parameters| {
            let first = cx.mark_at(arguments);
            cx.check_given_keys(parameters, first, from, count).map(|()| Value::NIL)
        };
    /// Creates an instance for `instance`.
    Instance instance(class: Value) |cx, class| {
        if cx.is_class(class) { cx.instantiate(class, None) } else { cx.type_error("class", class) }
    };
    /// Sends a message, given (object selector . arguments).
    Send send(arguments: *mut Value, count: usize) |cx, arguments, count| {
        let mark = cx.mark();
        let value = cx.send_in_place(arguments, count)?;
        cx.release(mark);
        Ok(value)
    };
    /// Sends a message to the superclass, given (object class selector . arguments).
    SendSuper send_super(arguments: *mut Value, count: usize) |cx, arguments, count| {
        let (mark, first) = (cx.mark(), cx.mark_at(arguments));
        let (object, class) = (cx.root(first, 0), cx.root(first, 1));
        let above = superclass(cx, class)?;
        // The class is no longer needed: object and selector are to lie side by side.
        let place = arguments.wrapping_add(1);
        cx.put_root(cx.mark_at(place), object);
        let value = cx.send_in_place_as(above, place, count - 1)?;
        cx.release(mark);
        Ok(value)
    };
    /// Sends a message to the superclass; the last argument is a list of further arguments.
    SendSuperAll send_super_all(arguments: *mut Value, count: usize) |cx, arguments, count| {
        let (mark, first) = (cx.mark(), cx.mark_at(arguments));
        let above = superclass(cx, cx.root(first, 1))?;
        for index in [0, 2].into_iter().chain(3..count - 1) {
            cx.push(cx.root(first, index))?;
        }
        if count > 3 {
            for value in cx.root(first, count - 1).iter() {
                cx.push(value)?;
            }
        }
        let more = cx.above(mark);
        let value = cx.send_in_place_as(above, Context::place(mark), more)?;
        cx.release(mark);
        Ok(value)
    };
}

fn exit_to(cx: &mut Context, exit: Exit, target: Value, value: Value) -> Answer {
    cx.target = target.as_fixnum().unwrap_or(0);
    cx.set_fixed(Fixed::Exit, value);
    Err(exit)
}

/// Returns the superclass of the class whose method sends a message to it.
fn superclass(cx: &mut Context, class: Value) -> Answer {
    if !cx.is_class(class) {
        return cx.fail(ErrorClass::Control, "send-super outside of a method".to_owned());
    }
    Ok(class.slot(class::slot::SUPER))
}

impl Context {
    /// Sends a message, given adjacent roots (object selector . arguments). A compiled method takes (object owner
    /// . arguments): the owner is written over the selector, so that the roots are used up.
    #[inline]
    pub(crate) fn send_in_place(&mut self, arguments: *mut Value, count: usize) -> Answer {
        let first = self.mark_at(arguments);
        let (object, selector) = (self.root(first, 0), self.root(first, 1));
        let class = self.world.class_of(object);
        // The object's class derives from the owner, in which the method was found.
        if (object.is(ObjectKind::Instance) || object.is(ObjectKind::Array))
            && let Some((owner, definition)) = self.find_method(class, selector)
            && definition.is(ObjectKind::Compiled)
        {
            self.push(definition)?;
            self.put_root(self.mark_at(arguments.wrapping_add(1)), owner);
            return self.call_compiled(definition, first, count);
        }
        self.send_as(class, object, selector, self.mark_at(arguments.wrapping_add(2)), count - 2)
    }

    /// Sends a message as [`Context::send_in_place`] does, but looks the method up in `class`, which need not be the
    /// object's class.
    #[inline]
    fn send_in_place_as(&mut self, class: Value, arguments: *mut Value, count: usize) -> Answer {
        let first = self.mark_at(arguments);
        let (object, selector) = (self.root(first, 0), self.root(first, 1));
        if !class.is_nil()
            && let Some((owner, definition)) = self.find_method(class, selector)
            && definition.is(ObjectKind::Compiled)
            && self.has_slots_of(object, owner)
        {
            self.push(definition)?;
            self.put_root(self.mark_at(arguments.wrapping_add(1)), owner);
            return self.call_compiled(definition, first, count);
        }
        self.send_as(class, object, selector, self.mark_at(arguments.wrapping_add(2)), count - 2)
    }
}

#[cold]
fn still_a_function(cx: &mut Context, name: Value) -> Answer {
    let shown = cx.show_short(name);
    let text = format!("{shown} became a macro after its caller was compiled: compile the caller again");
    cx.error_about(ErrorClass::Undefined, text, name)
}

/// Creates a compiled function, whose name and source are in the template.
pub(super) fn new_function(
    cx: &mut Context,
    code: usize,
    template: Value,
    constants: Value,
    captured: usize,
) -> Answer {
    let function = cx.new_slots(ObjectKind::Compiled, class::COMPILED_CODE, slot::CAPTURED + captured)?;
    function.set_slot(slot::CODE, Value((code as u64) << 4 | 3));
    function.set_slot(slot::NAME, template.get(0));
    function.set_slot(slot::SOURCE, template.get(1));
    function.set_slot(slot::CONSTANTS, constants);
    Ok(function)
}

/// Returns the answer that a word encodes.
pub(super) fn answer(cx: &Context, word: u64) -> Answer {
    if word == GONE { Err(cx.leaving) } else { Ok(Value(word)) }
}
