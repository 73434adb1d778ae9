//! Implements integers of any size, ratios, and their arithmetic with floats.

mod arithmetic;
mod bits;
mod convert;
mod order;

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value, flag};
use arithmetic::{Op, absolute, add, arithmetic, divide, gcd, lcm, multiply, remainder, subtract};
use bits::{bits, complement, deposit_byte, has_bit, have_common_bits, load_byte, not, shift};
pub(crate) use convert::{as_float, big, in_base, integer};
use num_traits::Signed as _;
pub(crate) use order::compare;
use order::{all_different, chain, extreme, is_even, sign_is};
use std::cmp::Ordering;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("+", 0, MANY, add),
    builtin("-", 1, MANY, subtract),
    builtin("*", 0, MANY, multiply),
    builtin("/", 1, MANY, divide),
    builtin("1+", 1, 1, |cx, args| arithmetic(cx, Op::Add, args[0], Value::fixnum(1))),
    builtin("1-", 1, 1, |cx, args| arithmetic(cx, Op::Subtract, args[0], Value::fixnum(1))),
    builtin("=", 1, MANY, |cx, args| chain(cx, args, Ordering::is_eq)),
    builtin("/=", 1, MANY, all_different),
    builtin("<", 1, MANY, |cx, args| chain(cx, args, Ordering::is_lt)),
    builtin(">", 1, MANY, |cx, args| chain(cx, args, Ordering::is_gt)),
    builtin("<=", 1, MANY, |cx, args| chain(cx, args, Ordering::is_le)),
    builtin(">=", 1, MANY, |cx, args| chain(cx, args, Ordering::is_ge)),
    builtin("MOD", 2, 2, |cx, args| remainder(cx, args[0], args[1])),
    builtin("REM", 2, 2, |cx, args| remainder(cx, args[0], args[1])),
    builtin("MAX", 1, MANY, |cx, args| extreme(cx, args, Ordering::is_gt)),
    builtin("MIN", 1, MANY, |cx, args| extreme(cx, args, Ordering::is_lt)),
    builtin("ABS", 1, 1, absolute),
    builtin("GCD", 0, MANY, gcd),
    builtin("LCM", 0, MANY, lcm),
    builtin("ASH", 2, 2, shift),
    builtin("LOGAND", 0, MANY, and),
    builtin("LOGIOR", 0, MANY, or),
    builtin("LOGXOR", 0, MANY, |cx, args| bits(cx, args, 0, |a, b| a ^ b, |a, b| a ^ b)),
    builtin("LOGEQV", 0, MANY, |cx, args| bits(cx, args, -1, |a, b| !(a ^ b), |a, b| !(a ^ b))),
    builtin("LOGNAND", 0, MANY, |cx, args| not(cx, args, and)),
    builtin("LOGNOR", 0, MANY, |cx, args| not(cx, args, or)),
    builtin("LOGNOT", 1, 1, complement),
    builtin("LOGTEST", 2, 2, have_common_bits),
    builtin("LOGBITP", 2, 2, has_bit),
    builtin("LDB", 2, 3, load_byte),
    builtin("DPB", 3, 4, deposit_byte),
    builtin("ZEROP", 1, 1, |cx, args| sign_is(cx, args[0], Ordering::is_eq)),
    builtin("PLUSP", 1, 1, |cx, args| sign_is(cx, args[0], Ordering::is_gt)),
    builtin("MINUSP", 1, 1, |cx, args| sign_is(cx, args[0], Ordering::is_lt)),
    builtin("EVENP", 1, 1, |cx, args| is_even(cx, args[0]).map(|even| cx.truth(even))),
    builtin("ODDP", 1, 1, |cx, args| is_even(cx, args[0]).map(|even| cx.truth(!even))),
    builtin("NUMBERP", 1, 1, |cx, args| Ok(cx.truth(cx.is_number(args[0])))),
    builtin("INTEGERP", 1, 1, |cx, args| Ok(cx.truth(args[0].is_fixnum() || args[0].is(ObjectKind::Bignum)))),
    builtin("FIXNUMP", 1, 1, |cx, args| Ok(cx.truth(args[0].is_fixnum()))),
    builtin("BIGNUMP", 1, 1, |cx, args| Ok(cx.truth(args[0].is(ObjectKind::Bignum)))),
    builtin("LARGESSE:SET-RATIO", 3, 3, |cx, args| {
        if !args[0].is(ObjectKind::Ratio) {
            return cx.type_error("ratio", args[0]);
        }
        let value = cx.ratio(args[1], args[2])?;
        let (top, bottom) = if value.is(ObjectKind::Ratio) {
            (value.slot(0), value.slot(1))
        } else {
            (value, Value::fixnum(1))
        };
        args[0].set_slot(0, top);
        args[0].set_slot(1, bottom);
        Ok(args[0])
    }),
    builtin("RATIOP", 1, 1, |cx, args| Ok(cx.truth(args[0].is(ObjectKind::Ratio)))),
    builtin("RATIONALP", 1, 1, |cx, args| {
        Ok(cx.truth(args[0].is_fixnum() || args[0].is(ObjectKind::Bignum) || args[0].is(ObjectKind::Ratio)))
    }),
    builtin("FLOATP", 1, 1, |cx, args| Ok(cx.truth(as_float(args[0]).is_some()))),
    builtin("NUMERATOR", 1, 1, |_, args| {
        Ok(if args[0].is(ObjectKind::Ratio) { args[0].slot(0) } else { args[0] })
    }),
    builtin("DENOMINATOR", 1, 1, |_, args| {
        Ok(if args[0].is(ObjectKind::Ratio) { args[0].slot(1) } else { Value::fixnum(1) })
    }),
    builtin("ISQRT", 1, 1, |cx, args| {
        let number = integer(cx, args[0])?;
        if number.is_negative() {
            return cx.type_error("integer that is not negative", args[0]);
        }
        cx.integer(number.sqrt())
    }),
];

fn and(cx: &mut Context, args: Args<'_>) -> Answer {
    bits(cx, args, -1, |a, b| a & b, |a, b| a & b)
}

fn or(cx: &mut Context, args: Args<'_>) -> Answer {
    bits(cx, args, 0, |a, b| a | b, |a, b| a | b)
}

pub(super) fn variables(cx: &mut Context) -> Result<(), Exit> {
    let most = crate::value::MOST_POSITIVE;
    for (name, value) in [("MOST-POSITIVE-FIXNUM", most), ("MOST-NEGATIVE-FIXNUM", -most - 1)] {
        let symbol = cx.installed_name(name)?;
        cx.define_special(symbol, Value::fixnum(value));
        symbol.add_flag(flag::CONSTANT);
    }
    for (name, value) in [
        ("PI", std::f64::consts::PI),
        ("-PI", -std::f64::consts::PI),
        ("2PI", std::f64::consts::TAU),
        ("PI/2", std::f64::consts::FRAC_PI_2),
        ("-PI/2", -std::f64::consts::FRAC_PI_2),
        ("*INF*", f64::INFINITY),
        ("*-INF*", f64::NEG_INFINITY),
        ("*NAN*", f64::NAN),
        ("SHORT-FLOAT-EPSILON", f64::EPSILON),
        ("LONG-FLOAT-EPSILON", f64::EPSILON),
        ("SINGLE-FLOAT-EPSILON", f64::EPSILON),
        ("MOST-POSITIVE-FLOAT", f64::MAX),
        ("MOST-NEGATIVE-FLOAT", f64::MIN),
        ("LEAST-POSITIVE-FLOAT", f64::MIN_POSITIVE),
        ("LEAST-NEGATIVE-FLOAT", -f64::MIN_POSITIVE),
    ] {
        let symbol = cx.installed_name(name)?;
        let value = cx.float(value)?;
        cx.define_special(symbol, value);
    }
    Ok(())
}
