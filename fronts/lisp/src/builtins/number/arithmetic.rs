//! Implements arithmetic on operands of any number types.

use super::convert::{as_big, as_float, fraction, integer};
use super::order::compare;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value};
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{One as _, Signed as _, Zero as _};

#[derive(Clone, Copy)]
pub(super) enum Op {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Applies an operation to two numbers: directly if both fit in a word, otherwise in the wider type.
#[inline]
pub(super) fn arithmetic(cx: &mut Context, op: Op, a: Value, b: Value) -> Answer {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        let quick = match op {
            Op::Add => Some(x + y),
            Op::Subtract => Some(x - y),
            Op::Multiply => x.checked_mul(y),
            Op::Divide if y == 0 => return cx.by_zero(),
            Op::Divide => Some(x / y),
        };
        if let Some(number) = quick {
            return cx.integer_from(number);
        }
    }
    if let (Some(x), Some(y)) = (a.word_float(), b.word_float()) {
        return cx.float(on_floats(op, x, y));
    }
    mixed(cx, op, a, b)
}

fn on_floats(op: Op, x: f64, y: f64) -> f64 {
    match op {
        Op::Add => x + y,
        Op::Subtract => x - y,
        Op::Multiply => x * y,
        Op::Divide => x / y,
    }
}

#[inline(never)]
fn mixed(cx: &mut Context, op: Op, a: Value, b: Value) -> Answer {
    if as_float(a).is_some() || as_float(b).is_some() {
        let (x, y) = (cx.number(a)?, cx.number(b)?);
        return cx.float(on_floats(op, x, y));
    }
    if a.is(ObjectKind::Ratio) || b.is(ObjectKind::Ratio) {
        let (Some((at, ab)), Some((bt, bb))) = (fraction(a), fraction(b)) else {
            return cx.type_error("number", if fraction(a).is_none() { a } else { b });
        };
        return match op {
            Op::Add => cx.quotient(at * &bb + bt * &ab, ab * bb),
            Op::Subtract => cx.quotient(at * &bb - bt * &ab, ab * bb),
            Op::Multiply => cx.quotient(at * bt, ab * bb),
            Op::Divide => cx.quotient(at * bb, ab * bt),
        };
    }
    let (Some(x), Some(y)) = (as_big(a), as_big(b)) else {
        return cx.type_error("number", if as_big(a).is_none() { a } else { b });
    };
    match op {
        Op::Add => cx.integer(x + y),
        Op::Subtract => cx.integer(x - y),
        Op::Multiply => cx.integer(x * y),
        Op::Divide if y.is_zero() => cx.by_zero(),
        Op::Divide => cx.integer(x / y),
    }
}

fn fold(cx: &mut Context, op: Op, first: Value, rest: Args<'_>) -> Answer {
    let mut sum = first;
    for value in rest.iter() {
        sum = arithmetic(cx, op, sum, *value)?;
        if sum.is_reference() {
            cx.push(sum)?;
        }
    }
    Ok(sum)
}

pub(super) fn add(cx: &mut Context, args: Args<'_>) -> Answer {
    match args.len() {
        2 => arithmetic(cx, Op::Add, args[0], args[1]),
        0 => Ok(Value::fixnum(0)),
        _ => fold(cx, Op::Add, Value::fixnum(0), args),
    }
}

pub(super) fn subtract(cx: &mut Context, args: Args<'_>) -> Answer {
    match args.len() {
        2 => arithmetic(cx, Op::Subtract, args[0], args[1]),
        1 => match args[0].word_float() {
            Some(number) => cx.float(-number),
            None => arithmetic(cx, Op::Subtract, Value::fixnum(0), args[0]),
        },
        _ => fold(cx, Op::Subtract, args[0], args.from(1)),
    }
}

pub(super) fn multiply(cx: &mut Context, args: Args<'_>) -> Answer {
    fold(cx, Op::Multiply, Value::fixnum(1), args)
}

/// Divides; the quotient of integers is an integer, as in EusLisp.
pub(super) fn divide(cx: &mut Context, args: Args<'_>) -> Answer {
    if args.len() == 1 {
        return arithmetic(cx, Op::Divide, Value::fixnum(1), args[0]);
    }
    fold(cx, Op::Divide, args[0], args.from(1))
}

/// Returns the remainder of a truncating division, with the sign of the dividend, as in EusLisp's `mod`.
pub(super) fn remainder(cx: &mut Context, a: Value, b: Value) -> Answer {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return if y == 0 { cx.by_zero() } else { Ok(Value::fixnum(x % y)) };
    }
    if let (Some(x), Some(y)) = (as_big(a), as_big(b)) {
        return if y.is_zero() { cx.by_zero() } else { cx.integer(x % y) };
    }
    let (x, y) = (cx.number(a)?, cx.number(b)?);
    cx.float(x % y)
}

pub(super) fn absolute(cx: &mut Context, args: Args<'_>) -> Answer {
    if let Some(number) = as_float(args[0]) {
        return cx.float(number.abs());
    }
    if compare(cx, args[0], Value::fixnum(0))?.is_lt() {
        return arithmetic(cx, Op::Subtract, Value::fixnum(0), args[0]);
    }
    Ok(args[0])
}

pub(super) fn gcd(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut common = BigInt::zero();
    for value in args.iter() {
        common = common.gcd(&integer(cx, *value)?);
    }
    cx.integer(common)
}

pub(super) fn lcm(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut common = BigInt::one();
    for value in args.iter() {
        common = common.lcm(&integer(cx, *value)?);
    }
    cx.integer(common.abs())
}
