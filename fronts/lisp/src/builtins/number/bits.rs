//! Treats integers as bit strings.

use super::convert::integer;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::ErrorClass;
use crate::value::Value;
use num_bigint::BigInt;

pub(super) fn shift(cx: &mut Context, args: Args<'_>) -> Answer {
    let by = args.fixnum(cx, 1)?;
    if let Some(number) = args[0].as_fixnum() {
        if by <= 0 {
            return Ok(Value::fixnum(number >> by.unsigned_abs().min(63)));
        }
        if by < 62 && number.abs() < 1 << (61 - by) {
            return Ok(Value::fixnum(number << by));
        }
    }
    const MOST_BITS: i64 = 1 << 26;
    if by > MOST_BITS {
        return cx.error_about(ErrorClass::Range, format!("ash by {by} bits"), args[1]);
    }
    let number = integer(cx, args[0])?;
    cx.integer(if by < 0 { number >> by.unsigned_abs() } else { number << by.unsigned_abs() })
}

pub(super) fn bits(
    cx: &mut Context,
    args: Args<'_>,
    start: i64,
    small: fn(i64, i64) -> i64,
    large: fn(BigInt, BigInt) -> BigInt,
) -> Answer {
    let mut all = start;
    for (index, value) in args.iter().enumerate() {
        let Some(number) = value.as_fixnum() else {
            let mut wide = BigInt::from(all);
            for value in &args[index..] {
                wide = large(wide, integer(cx, *value)?);
            }
            return cx.integer(wide);
        };
        all = small(all, number);
    }
    Ok(Value::fixnum(all))
}

/// Implements `(ldb number position width)`.
pub(super) fn load_byte(cx: &mut Context, args: Args<'_>) -> Answer {
    let (number, position) = (args.fixnum(cx, 0)?, args.size(cx, 1)?);
    let width = if args.len() > 2 { args.size(cx, 2)? } else { 1 };
    let mask = if width >= 61 { crate::value::MOST_POSITIVE } else { (1 << width) - 1 };
    Ok(Value::fixnum(number >> position.min(63) & mask))
}

/// Implements `(dpb value number position width)`.
pub(super) fn deposit_byte(cx: &mut Context, args: Args<'_>) -> Answer {
    let (value, number, position) = (args.fixnum(cx, 0)?, args.fixnum(cx, 1)?, args.size(cx, 2)?);
    let width = if args.len() > 3 { args.size(cx, 3)? } else { 1 };
    if position + width > 61 {
        return cx.range_error(args[2], 61);
    }
    let mask = ((1 << width) - 1) << position;
    Ok(Value::fixnum(number & !mask | value << position & mask))
}
