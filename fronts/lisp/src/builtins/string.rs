//! Implements characters, which are integers, and strings.

use super::sequence::bounds;
use super::vector::text_of;
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::foreign::{foreign_bytes, is_foreign_string};
use crate::value::{ObjectKind, Value, symbol};
use std::cmp::Ordering;
use std::ops::Range;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("STRINGP", 1, 1, |cx, args| {
        Ok(cx.truth(args[0].is(ObjectKind::String) || is_foreign_string(args[0])))
    }),
    builtin("CHARACTERP", 1, 1, |cx, args| Ok(cx.truth(args[0].is_fixnum()))),
    builtin("STRING", 1, 1, |cx, args| {
        if args[0].is(ObjectKind::String) {
            return Ok(args[0]);
        }
        if args[0].is_symbol() {
            return Ok(cx.world.symbol_object(args[0]).get(symbol::NAME));
        }
        if cx.is_number(args[0]) {
            let mut digits = Vec::new();
            cx.print(args[0], false, &mut digits)?;
            return cx.string_from(&digits);
        }
        let text = bytes(cx, args[0])?;
        cx.string_from(&text)
    }),
    builtin("MAKE-STRING", 1, MANY, |cx, args| {
        let [initial] = cx.keywords(args.from(1), [cx.world.names.initial_element])?;
        let length = args.size(cx, 0)?;
        let fill = if initial.given_or_nil().is_nil() { b' ' } else { code(cx, initial)? };
        let string = cx.new_string(length)?;
        string.bytes_mut().fill(fill);
        Ok(string)
    }),
    builtin("STRING-UPCASE", 1, MANY, |cx, args| changed(cx, args, <[u8]>::make_ascii_uppercase)),
    builtin("STRING-DOWNCASE", 1, MANY, |cx, args| changed(cx, args, <[u8]>::make_ascii_lowercase)),
    builtin("NSTRING-UPCASE", 1, MANY, |cx, args| {
        let length = args.string(cx, 0)?.length();
        let range = part(cx, args.from(1), length)?;
        args[0].bytes_mut()[range].make_ascii_uppercase();
        Ok(args[0])
    }),
    builtin("NSTRING-DOWNCASE", 1, MANY, |cx, args| {
        let length = args.string(cx, 0)?.length();
        let range = part(cx, args.from(1), length)?;
        args[0].bytes_mut()[range].make_ascii_lowercase();
        Ok(args[0])
    }),
    builtin("STRING-CAPITALIZE", 1, MANY, |cx, args| {
        changed(cx, args, |text| {
            let mut inside = false;
            for byte in text {
                if inside {
                    byte.make_ascii_lowercase()
                } else {
                    byte.make_ascii_uppercase()
                }
                inside = byte.is_ascii_alphanumeric();
            }
        })
    }),
    builtin("STRING=", 2, MANY, |cx, args| compared(cx, args, false, Ordering::is_eq)),
    builtin("STRING/=", 2, MANY, |cx, args| compared(cx, args, false, Ordering::is_ne)),
    builtin("STRING<", 2, MANY, |cx, args| compared(cx, args, false, Ordering::is_lt)),
    builtin("STRING>", 2, MANY, |cx, args| compared(cx, args, false, Ordering::is_gt)),
    builtin("STRING<=", 2, MANY, |cx, args| compared(cx, args, false, Ordering::is_le)),
    builtin("STRING>=", 2, MANY, |cx, args| compared(cx, args, false, Ordering::is_ge)),
    builtin("STRING-EQUAL", 2, MANY, |cx, args| compared(cx, args, true, Ordering::is_eq)),
    builtin("STRING-NOT-EQUAL", 2, MANY, |cx, args| compared(cx, args, true, Ordering::is_ne)),
    builtin("STRING-LESSP", 2, MANY, |cx, args| compared(cx, args, true, Ordering::is_lt)),
    builtin("STRING-GREATERP", 2, MANY, |cx, args| compared(cx, args, true, Ordering::is_gt)),
    builtin("STRING-TRIM", 2, 2, |cx, args| trim(cx, args, true, true)),
    builtin("STRING-LEFT-TRIM", 2, 2, |cx, args| trim(cx, args, true, false)),
    builtin("STRING-RIGHT-TRIM", 2, 2, |cx, args| trim(cx, args, false, true)),
    builtin("SUBSTRINGP", 2, 2, |cx, args| {
        let (part, text) = (bytes(cx, args[0])?, bytes(cx, args[1])?);
        let found =
            part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(&part));
        Ok(cx.truth(found))
    }),
    builtin("DIGIT-CHAR", 1, 2, |cx, args| {
        let base = if args.len() > 1 { args.fixnum(cx, 1)? } else { 10 };
        let digit = u32::try_from(args.fixnum(cx, 0)?).ok();
        let found = digit.and_then(|digit| char::from_digit(digit, base.clamp(2, 36) as u32));
        Ok(found.map_or(Value::NIL, |digit| Value::fixnum(i64::from(u32::from(digit.to_ascii_uppercase())))))
    }),
    builtin("DIGIT-CHAR-P", 1, 2, |cx, args| {
        let base = if args.len() > 1 { args.fixnum(cx, 1)? } else { 10 };
        let digit = char::from(code(cx, args[0])?).to_digit(base.clamp(2, 36) as u32);
        Ok(digit.map_or(Value::NIL, |digit| Value::fixnum(i64::from(digit))))
    }),
    builtin("ALPHA-CHAR-P", 1, 1, |cx, args| is(cx, args, |byte| byte.is_ascii_alphabetic())),
    builtin("UPPER-CASE-P", 1, 1, |cx, args| is(cx, args, |byte| byte.is_ascii_uppercase())),
    builtin("LOWER-CASE-P", 1, 1, |cx, args| is(cx, args, |byte| byte.is_ascii_lowercase())),
    builtin("ALPHANUMERICP", 1, 1, |cx, args| is(cx, args, |byte| byte.is_ascii_alphanumeric())),
    builtin("GRAPHIC-CHAR-P", 1, 1, |cx, args| is(cx, args, |byte| (b' '..=b'~').contains(&byte))),
    builtin("CHAR-UPCASE", 1, 1, |cx, args| in_case(cx, args, |byte| byte.to_ascii_uppercase())),
    builtin("CHAR-DOWNCASE", 1, 1, |cx, args| in_case(cx, args, |byte| byte.to_ascii_lowercase())),
    builtin("CHAR-CODE", 1, 1, |cx, args| args.fixnum(cx, 0).map(Value::fixnum)),
    builtin("CODE-CHAR", 1, 1, |cx, args| args.fixnum(cx, 0).map(Value::fixnum)),
    builtin("CHAR=", 1, MANY, |cx, args| chars(cx, args, Ordering::is_eq)),
    builtin("CHAR<", 1, MANY, |cx, args| chars(cx, args, Ordering::is_lt)),
    builtin("CHAR>", 1, MANY, |cx, args| chars(cx, args, Ordering::is_gt)),
    builtin("CHAR<=", 1, MANY, |cx, args| chars(cx, args, Ordering::is_le)),
    builtin("CHAR>=", 1, MANY, |cx, args| chars(cx, args, Ordering::is_ge)),
    builtin("CHAR/=", 1, MANY, all_different),
    builtin("PARSE-INTEGER", 1, MANY, parse_integer),
];

/// Returns the text of a string, symbol or array of characters.
pub(crate) fn bytes(cx: &mut Context, value: Value) -> Result<Vec<u8>, Exit> {
    if value.is_symbol() {
        return Ok(cx.world.symbol_object(value).get(symbol::NAME).bytes().to_vec());
    }
    if is_foreign_string(value) {
        return foreign_bytes(cx, value);
    }
    let characters = value.is(ObjectKind::String)
        || super::vector::Shape::of(value)
            .is_some_and(|shape| shape.entity.is(ObjectKind::String) && shape.dimensions.len() == 1);
    if characters { Ok(text_of(value)) } else { cx.type_error("string", value) }
}

fn code(cx: &mut Context, value: Value) -> Result<u8, Exit> {
    match value.as_fixnum().map(u8::try_from) {
        Some(Ok(code)) => Ok(code),
        _ => cx.type_error("character", value),
    }
}

fn is(cx: &mut Context, args: Args<'_>, holds: fn(u8) -> bool) -> Answer {
    let byte = u8::try_from(args.fixnum(cx, 0)?);
    Ok(cx.truth(byte.is_ok_and(holds)))
}

/// Changes the case of a character; other integers have none.
fn in_case(cx: &mut Context, args: Args<'_>, change: fn(u8) -> u8) -> Answer {
    let number = args.fixnum(cx, 0)?;
    Ok(Value::fixnum(u8::try_from(number).map_or(number, |byte| i64::from(change(byte)))))
}

fn changed(cx: &mut Context, args: Args<'_>, change: fn(&mut [u8])) -> Answer {
    let mut text = bytes(cx, args[0])?;
    let range = part(cx, args.from(1), text.len())?;
    change(&mut text[range]);
    cx.string_from(&text)
}

/// Returns the part of a text that `:start` and `:end` select.
fn part(cx: &mut Context, options: Args<'_>, length: usize) -> Result<Range<usize>, Exit> {
    let names = cx.world.names;
    let [start, end] = cx.keywords(options, [names.start, names.end])?;
    let (start, end) = bounds(cx, start, end, length)?;
    Ok(start..end)
}

fn compared(cx: &mut Context, args: Args<'_>, fold: bool, holds: fn(Ordering) -> bool) -> Answer {
    let (mut a, mut b) = (bytes(cx, args[0])?, bytes(cx, args[1])?);
    if fold {
        a.make_ascii_uppercase();
        b.make_ascii_uppercase();
    }
    let names = cx.world.names;
    let [start1, end1, start2, end2] =
        cx.keywords(args.from(2), [names.start1, names.end1, names.start2, names.end2])?;
    let (start1, end1) = bounds(cx, start1, end1, a.len())?;
    let (start2, end2) = bounds(cx, start2, end2, b.len())?;
    Ok(cx.truth(holds(a[start1..end1].cmp(&b[start2..end2]))))
}

fn chars(cx: &mut Context, args: Args<'_>, holds: fn(Ordering) -> bool) -> Answer {
    for index in 1..args.len() {
        let (a, b) = (args.fixnum(cx, index - 1)?, args.fixnum(cx, index)?);
        if !holds(a.cmp(&b)) {
            return Ok(Value::NIL);
        }
    }
    Ok(cx.truth(true))
}

/// Returns whether no two of the characters are equal.
fn all_different(cx: &mut Context, args: Args<'_>) -> Answer {
    for (index, character) in args.iter().enumerate() {
        args.fixnum(cx, index)?;
        if args[..index].contains(character) {
            return Ok(Value::NIL);
        }
    }
    Ok(cx.truth(true))
}

/// Implements `(string-trim bag string)`; the bag is a string or a list of characters.
fn trim(cx: &mut Context, args: Args<'_>, left: bool, right: bool) -> Answer {
    let bag: Vec<u8> = if args[0].is_list() {
        args[0].iter().filter_map(|item| item.as_fixnum()).map(|code| code as u8).collect()
    } else {
        bytes(cx, args[0])?
    };
    let text = bytes(cx, args[1])?;
    let out = |byte: &u8| !bag.contains(byte);
    let start = if left { text.iter().position(out).unwrap_or(text.len()) } else { 0 };
    let end = if right { text.iter().rposition(out).map_or(start, |last| last + 1) } else { text.len() };
    cx.string_from(&text[start..end.max(start)])
}

fn parse_integer(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let [start, end, radix, junk] = cx
        .keywords(args.from(1), [names.start, names.end, names.radix, names.junk_allowed])?
        .map(Value::given_or_nil);
    let text = bytes(cx, args[0])?;
    let start = if start.is_nil() { 0 } else { cx.size(start)? };
    let end = if end.is_nil() { text.len() } else { cx.size(end)? };
    let base = radix.as_fixnum().unwrap_or(10).clamp(2, 36) as u32;
    let part = String::from_utf8_lossy(text.get(start..end).unwrap_or(b"")).trim().to_owned();
    let (negative, digits) = match part.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, part.strip_prefix('+').unwrap_or(&part)),
    };
    let count = digits.chars().take_while(|digit| digit.is_digit(base)).count();
    if count == 0 || (count < digits.len() && junk.is_nil()) {
        if !junk.is_nil() {
            return Ok(Value::NIL);
        }
        return cx.error_about(ErrorClass::Reader, format!("{part:?} is not an integer"), args[0]);
    }
    cx.integer_from_text(&digits[..count], negative, base)
}
