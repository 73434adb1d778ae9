//! Implements classes, instances and messages.

use super::vector::is_vector;
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{Header, ObjectKind, Value, symbol};
use crate::world::{KEYWORD, class};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("SEND", 2, MANY, |cx, args| {
        let first = cx.pushed(args, 2)?;
        cx.send_pushed(args[0], args[1], first, args.len() - 2)
    }),
    builtin("SEND*", 2, MANY, |cx, args| {
        // The last argument is a list of further arguments, which may begin with the selector.
        let (last, between) = (args[args.len() - 1], &args[1..args.len() - 1]);
        let mut message = between.iter().copied().chain(last.iter());
        let Some(selector) = message.next() else { return cx.type_error("message", last) };
        let first = cx.mark();
        cx.push(args[0])?;
        cx.push(selector)?;
        for value in message {
            cx.push(value)?;
        }
        let count = cx.above(first);
        cx.send_in_place(Context::place(first), count)
    }),
    builtin("LARGESSE::SEND-EACH", 2, 2, send_each),
    builtin("SEND-MESSAGE", 3, MANY, |cx, args| {
        // The arguments are (object class selector . arguments).
        if !cx.is_class(args[1]) {
            return cx.type_error("class", args[1]);
        }
        let first = cx.pushed(args, 3)?;
        cx.send_as(args[1], args[0], args[2], first, args.len() - 3)
    }),
    builtin("INSTANTIATE", 1, 2, |cx, args| {
        let length = if args.or_nil(1).is_nil() { None } else { Some(args.size(cx, 1)?) };
        cx.instantiate(args[0], length)
    }),
    builtin("CLASS", 1, 1, |cx, args| Ok(cx.world.class_of(args[0]))),
    builtin("CLASSP", 1, 1, |cx, args| Ok(cx.truth(cx.is_class(args[0])))),
    builtin("CLASS-NAME", 1, 1, |cx, args| class_slot(cx, args[0], class::slot::NAME)),
    builtin("SUPERCLASS", 1, 1, |cx, args| class_slot(cx, args[0], class::slot::SUPER)),
    builtin("DERIVEDP", 2, 2, |cx, args| {
        let of = cx.world.class_of(args[0]);
        Ok(cx.truth(cx.is_subclass(of, args[1])))
    }),
    builtin("SUBCLASSP", 2, 2, |cx, args| {
        let below = cx.is_class(args[0]) && cx.is_subclass(args[0], args[1]);
        Ok(cx.truth(below))
    }),
    builtin("FIND-METHOD", 2, 2, |cx, args| {
        let of = if cx.is_class(args[0]) { args[0] } else { cx.world.class_of(args[0]) };
        if of.is_nil() {
            return Ok(Value::NIL);
        }
        match cx.find_method(of, args[1]) {
            Some((owner, definition)) => {
                let method = cx.cons(args[1], definition)?;
                cx.list(&[owner, method])
            }
            None => Ok(Value::NIL),
        }
    }),
    builtin("SLOT", 3, 3, |cx, args| {
        let index = slot_number(cx, args)?;
        Ok(args[0].slot(index))
    }),
    builtin("SETSLOT", 4, 4, |cx, args| {
        let index = slot_number(cx, args)?;
        if cx.is_of_runtime(args[0], index) {
            return cx.not_assigned(args[2]);
        }
        args[0].set_slot(index, args[3]);
        Ok(args[3])
    }),
    builtin("LARGESSE:SLOTS", 1, 1, |cx, args| {
        // The result is ((name . value) ...).
        let of = cx.world.class_of(args[0]);
        let count = if args[0].is(ObjectKind::Instance) || args[0].is(ObjectKind::Array) {
            args[0].length()
        } else {
            0
        };
        let mark = cx.mark();
        for index in 0..count {
            let name = of.slot(class::slot::VARIABLES).slot(index);
            let pair = cx.cons(name, args[0].slot(index))?;
            cx.push(pair)?;
        }
        cx.stacked(mark)
    }),
    builtin("COPY-OBJECT", 1, 1, |cx, args| {
        let mut seen = std::collections::HashMap::new();
        copy_object(cx, &mut seen, args[0])
    }),
    builtin("BECOME", 2, 2, |cx, args| {
        if keeps_its_class(cx, args[0]) {
            return cx.type_error("object that is not of the runtime", args[0]);
        }
        let fits = args[0].is(ObjectKind::Instance)
            && cx.is_class(args[1])
            && cx.runtime_slots(args[1]).is_empty()
            && args[1].slot(class::slot::VARIABLES).length() <= args[0].length();
        if !fits {
            return cx.type_error("class with no more slots than the object", args[1]);
        }
        let number = class::number(args[1]);
        let length = args[1].slot(class::slot::VARIABLES).length();
        args[0].set(0, Header::new(ObjectKind::Instance, number, length).word());
        Ok(args[0])
    }),
    builtin("TYPEP", 2, 2, |cx, args| {
        let is = typep(cx, args[0], args[1])?;
        Ok(cx.truth(is))
    }),
    builtin("LARGESSE:ALL-CLASSES", 0, 0, |cx, _| {
        let all: Vec<Value> = cx.world.tables.all_classes().collect();
        cx.list(&all)
    }),
    builtin("LARGESSE:PRINT-PLAIN", 2, 3, |cx, args| {
        // The arguments are (object stream words); prints as `:prin1` of object does.
        let words = if args.or_nil(2).is(ObjectKind::String) { args[2].bytes().to_vec() } else { Vec::new() };
        let mut out = Vec::new();
        cx.print_plain(args[0], &words, &mut out)?;
        cx.write_bytes(args[1], &out)?;
        Ok(args[0])
    }),
];

impl Context {
    /// Pushes the arguments from index `from` again, for a callee that takes them from the stack.
    fn pushed(&mut self, args: Args<'_>, from: usize) -> Result<crate::context::RootMark, Exit> {
        let mark = self.mark();
        for value in &args[from..] {
            self.push(*value)?;
        }
        Ok(mark)
    }

    /// Defines the function `CLASS-SLOT` and its setf for each slot.
    pub(crate) fn define_accessors(&mut self, name: Value, class: Value) -> Result<(), Exit> {
        let define = self.installed_name("LARGESSE:DEFINE-ACCESSORS")?;
        if define.get(symbol::FUNCTION) == Value::UNBOUND {
            return Ok(());
        }
        self.apply(define, &[name, class]).map(|_| ())
    }
}

/// Implements `(send-each objects message)`: sends a message, a list of selector and arguments, to each object, and
/// returns the list of the answers. As for `mapcar`, an atom ends the list.
fn send_each(cx: &mut Context, args: Args<'_>) -> Answer {
    let (message, answers) = (args[1], cx.mark());
    let mut rest = args[0];
    // The rest of the objects, the head of the answers, and their last cons.
    cx.push(rest)?;
    cx.push(Value::NIL)?;
    cx.push(Value::NIL)?;
    while rest.is_cons() {
        if !message.is_cons() {
            return cx.type_error("message", message);
        }
        let mark = cx.mark();
        cx.push(rest.get(0))?;
        for value in message.iter() {
            cx.push(value)?;
        }
        rest = rest.get(1);
        cx.put_root(answers, rest);
        let count = cx.above(mark);
        let answer = cx.send_in_place(Context::place(mark), count)?;
        cx.release(mark);
        let link = cx.cons(answer, Value::NIL)?;
        let end = cx.root(answers, 2);
        if end.is_nil() {
            cx.set_root(answers, 1, link);
        } else {
            end.set(1, link);
        }
        cx.set_root(answers, 2, link);
    }
    Ok(cx.root(answers, 1))
}

/// Returns whether the runtime relies on the class of an object: a class, a package, a thread, a lock, a file stream, or
/// an error made in advance.
fn keeps_its_class(cx: &Context, object: Value) -> bool {
    let (class, names) = (cx.world.class_of(object), cx.world.names);
    !cx.runtime_slots(class).is_empty()
        || cx.derives(class, class::FILE_STREAM)
        || [names.spare_error, names.spare_overflow].contains(&object)
}

fn class_slot(cx: &mut Context, class: Value, slot: usize) -> Answer {
    if cx.is_class(class) { Ok(class.slot(slot)) } else { cx.type_error("class", class) }
}

/// Returns the slot index for `(slot object class name-or-index)`.
fn slot_number(cx: &mut Context, args: Args<'_>) -> Result<usize, Exit> {
    let has_slots = args[0].is(ObjectKind::Instance) || args[0].is(ObjectKind::Array);
    if !has_slots || !cx.is_class(args[1]) || !cx.is_subclass(cx.world.class_of(args[0]), args[1]) {
        return cx.type_error("object of the class", args[0]);
    }
    let index = match args[2].as_fixnum() {
        Some(index) => usize::try_from(index).ok().filter(|index| *index < args[0].length()),
        None => cx.slot_index(args[1], args[2]),
    };
    match index {
        Some(index) => Ok(index),
        None => cx.type_error("slot", args[2]),
    }
}

/// Copies everything reachable from a value except symbols, classes and packages, and preserves sharing.
fn copy_object(cx: &mut Context, seen: &mut std::collections::HashMap<Value, Value>, value: Value) -> Answer {
    cx.check_stack()?;
    if let Some(copied) = seen.get(&value) {
        return Ok(*copied);
    }
    if value.is_cons() {
        // Copies along the list without recursion; every copy stays on the stack until the builtin returns.
        let keep = cx.mark();
        cx.push(value)?;
        let first = cx.cons(Value::NIL, Value::NIL)?;
        cx.push(first)?;
        let (mut from, mut to) = (value, first);
        loop {
            seen.insert(from, to);
            let part = copy_object(cx, seen, from.get(0))?;
            to.set(0, part);
            let rest = from.get(1);
            if !rest.is_cons() || seen.contains_key(&rest) {
                let rest = copy_object(cx, seen, rest)?;
                to.set(1, rest);
                return Ok(first);
            }
            // Before the allocation: another thread may cut the list here, and then nothing else keeps the rest.
            cx.put_root(keep, rest);
            let next = cx.cons(Value::NIL, Value::NIL)?;
            to.set(1, next);
            (from, to) = (rest, next);
        }
    }
    if !value.is_object() || cx.is_class(value) || value.header().class() == class::PACKAGE {
        return Ok(value);
    }
    cx.push(value)?;
    let header = value.header();
    match header.kind() {
        ObjectKind::String | ObjectKind::FloatVector | ObjectKind::IntegerVector | ObjectKind::BitVector => {
            let copied = super::sequence::copy_vector(cx, value, 0, header.length())?;
            cx.push(copied)?;
            seen.insert(value, copied);
            Ok(copied)
        }
        ObjectKind::Vector | ObjectKind::Instance | ObjectKind::Array => {
            let copied = cx.new_slots(header.kind(), header.class(), header.length())?;
            cx.push(copied)?;
            seen.insert(value, copied);
            for index in 0..header.length() {
                let item = copy_object(cx, seen, value.slot(index))?;
                copied.set_slot(index, item);
            }
            Ok(copied)
        }
        _ => Ok(value),
    }
}

/// Returns whether a value is of a type: a class, the name of a type, or a combination of types.
pub(super) fn typep(cx: &mut Context, value: Value, wanted: Value) -> Result<bool, Exit> {
    cx.check_stack()?;
    let names = cx.world.names;
    if wanted.is_cons() {
        let head = wanted.get(0);
        let parts = wanted.get(1);
        if head == names.not {
            return typep(cx, value, parts.car()).map(|is| !is);
        }
        if head == names.member {
            return Ok(parts.iter().any(|part| super::compare::eql(part, value)));
        }
        if head == names.satisfies {
            return cx.apply(parts.car(), &[value]).map(|answer| !answer.is_nil());
        }
        if head == names.and || head == names.or {
            let or = head == names.or;
            let decided = super::list::along(cx, parts, |cx, tail| {
                Ok((typep(cx, value, tail.get(0))? == or).then_some(or))
            })?;
            return Ok(decided.unwrap_or(!or));
        }
        return typep(cx, value, head);
    }
    if cx.is_class(wanted) {
        return Ok(cx.is_subclass(cx.world.class_of(value), wanted));
    }
    if !wanted.is_symbol() {
        return cx.type_error("type", wanted);
    }
    let is_integer = value.is_fixnum() || value.is(ObjectKind::Bignum);
    let is_float = super::number::as_float(value).is_some();
    Ok(match cx.show_name(wanted).trim_start_matches(':') {
        "t" => true,
        "nil" => false,
        "null" => value.is_nil(),
        "integer" => is_integer,
        "bignum" => value.is(ObjectKind::Bignum),
        "fixnum" => value.is_fixnum(),
        "float" => is_float,
        "number" => cx.is_number(value),
        "rational" => is_integer || value.is(ObjectKind::Ratio),
        "character" => value.as_fixnum().is_some_and(|code| (0..256).contains(&code)),
        "bit" => matches!(value.as_fixnum(), Some(0 | 1)),
        "list" => value.is_list(),
        "atom" => !value.is_cons(),
        "symbol" => value.is_symbol(),
        "keyword" => {
            value.is_symbol_object() && value.get(symbol::PACKAGE) == cx.package_numbered(KEYWORD).object
        }
        "sequence" => value.is_list() || is_vector(value),
        "function" => cx.is_function(value),
        _ => {
            let named = if wanted.is_symbol_object() { cx.global_value(wanted) } else { Value::NIL };
            named != Value::UNBOUND && cx.is_class(named) && cx.is_subclass(cx.world.class_of(value), named)
        }
    })
}
