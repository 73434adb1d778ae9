//! Implements rounding, roots, powers, trigonometry.

use super::number::{as_float, integer};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::ErrorClass;
use crate::value::{ObjectKind, Value};
use num_bigint::BigInt;
use num_traits::{FromPrimitive as _, Pow as _};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("FLOAT", 1, 1, |cx, args| args.float(cx, 0).and_then(|number| cx.float(number))),
    builtin("FLOOR", 1, 1, |cx, args| rounded(cx, args[0], f64::floor)),
    builtin("CEILING", 1, 1, |cx, args| rounded(cx, args[0], f64::ceil)),
    builtin("TRUNCATE", 1, 1, |cx, args| rounded(cx, args[0], f64::trunc)),
    builtin("ROUND", 1, 1, |cx, args| rounded(cx, args[0], f64::round_ties_even)),
    builtin("SQRT", 1, 1, |cx, args| map(cx, args, f64::sqrt)),
    builtin("EXP", 1, 1, |cx, args| map(cx, args, f64::exp)),
    builtin("LOG", 1, 2, log),
    builtin("SIN", 1, 1, |cx, args| map(cx, args, f64::sin)),
    builtin("COS", 1, 1, |cx, args| map(cx, args, f64::cos)),
    builtin("TAN", 1, 1, |cx, args| map(cx, args, f64::tan)),
    builtin("ASIN", 1, 1, |cx, args| map(cx, args, f64::asin)),
    builtin("ACOS", 1, 1, |cx, args| map(cx, args, f64::acos)),
    builtin("ATAN", 1, 2, arc_tangent),
    builtin("ATAN2", 2, 2, arc_tangent),
    builtin("SINH", 1, 1, |cx, args| map(cx, args, f64::sinh)),
    builtin("COSH", 1, 1, |cx, args| map(cx, args, f64::cosh)),
    builtin("TANH", 1, 1, |cx, args| map(cx, args, f64::tanh)),
    builtin("ASINH", 1, 1, |cx, args| map(cx, args, f64::asinh)),
    builtin("ACOSH", 1, 1, |cx, args| map(cx, args, f64::acosh)),
    builtin("ATANH", 1, 1, |cx, args| map(cx, args, f64::atanh)),
    builtin("EXPT", 2, 2, power),
    builtin("SIGNUM", 1, 1, |cx, args| match as_float(args[0]) {
        Some(number) => cx.float(if number == 0.0 { 0.0 } else { number.signum() }),
        None => {
            let number = integer(cx, args[0])?;
            Ok(Value::fixnum(match number.sign() {
                num_bigint::Sign::Minus => -1,
                num_bigint::Sign::NoSign => 0,
                num_bigint::Sign::Plus => 1,
            }))
        }
    }),
    builtin("DEG2RAD", 1, 1, |cx, args| map(cx, args, f64::to_radians)),
    builtin("RAD2DEG", 1, 1, |cx, args| map(cx, args, f64::to_degrees)),
];

fn map(cx: &mut Context, args: Args<'_>, function: fn(f64) -> f64) -> Answer {
    let number = args.float(cx, 0)?;
    cx.float(function(number))
}

/// Rounds a number to an integer with `function`.
fn rounded(cx: &mut Context, value: Value, function: fn(f64) -> f64) -> Answer {
    if value.is_fixnum() || value.is(ObjectKind::Bignum) {
        return Ok(value);
    }
    let number = cx.number(value)?;
    match BigInt::from_f64(function(number)) {
        Some(integer) => cx.integer(integer),
        None => {
            cx.error_about(ErrorClass::Arithmetic, format!("{number} cannot be rounded to an integer"), value)
        }
    }
}

fn log(cx: &mut Context, args: Args<'_>) -> Answer {
    let number = args.float(cx, 0)?;
    if args.len() == 1 {
        return cx.float(number.ln());
    }
    let base = args.float(cx, 1)?;
    cx.float(number.ln() / base.ln())
}

fn arc_tangent(cx: &mut Context, args: Args<'_>) -> Answer {
    let y = args.float(cx, 0)?;
    if args.len() == 1 {
        return cx.float(y.atan());
    }
    let x = args.float(cx, 1)?;
    cx.float(y.atan2(x))
}

/// Largest number of bits of an exact power.
const MOST_BITS: u64 = 1 << 26;

fn power(cx: &mut Context, args: Args<'_>) -> Answer {
    if let (false, Some(exponent @ 0..)) =
        (as_float(args[0]).is_some() || args[0].is(ObjectKind::Ratio), args[1].as_fixnum())
    {
        let base = integer(cx, args[0])?;
        // The powers of 0, 1 and -1 are periodic.
        let exponent = if base.bits() < 2 && exponent > 2 { 2 - exponent % 2 } else { exponent };
        if base.bits().saturating_mul(exponent.cast_unsigned()) > MOST_BITS {
            return cx.fail(ErrorClass::Range, "a power of more than 67108864 bits".to_owned());
        }
        return cx.integer(base.pow(exponent.cast_unsigned() as u32));
    }
    let (base, exponent) = (args.float(cx, 0)?, args.float(cx, 1)?);
    cx.float(base.powf(exponent))
}
