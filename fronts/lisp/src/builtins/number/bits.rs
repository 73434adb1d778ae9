//! Treats integers as bit strings.

use super::convert::integer;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::Value;
use num_bigint::BigInt;
use num_traits::Zero as _;

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

/// Largest number of bits that a shift or a byte may reach.
const MOST_BITS: i64 = 1 << 26;

/// Returns a position or width in bits.
fn bit_count(cx: &mut Context, args: &Args<'_>, index: usize) -> Result<u64, Exit> {
    let count = args.size(cx, index)?;
    if count as u64 > MOST_BITS as u64 {
        return cx.error_about(ErrorClass::Range, format!("a byte at {count} bits"), args[index]);
    }
    Ok(count as u64)
}

/// Width of a byte that is given without one.
const BYTE: u64 = 8;

/// Implements `(ldb number position width)`.
pub(super) fn load_byte(cx: &mut Context, args: Args<'_>) -> Answer {
    let (number, position) = (integer(cx, args[0])?, bit_count(cx, &args, 1)?);
    let width = if args.len() > 2 { bit_count(cx, &args, 2)? } else { BYTE };
    let mask = (BigInt::from(1) << width) - 1;
    cx.integer(number >> position & mask)
}

/// Implements `(dpb value number position width)`.
pub(super) fn deposit_byte(cx: &mut Context, args: Args<'_>) -> Answer {
    let (value, number) = (integer(cx, args[0])?, integer(cx, args[1])?);
    let position = bit_count(cx, &args, 2)?;
    let width = if args.len() > 3 { bit_count(cx, &args, 3)? } else { BYTE };
    let mask: BigInt = ((BigInt::from(1) << width) - 1) << position;
    cx.integer(number & !mask.clone() | value << position & mask)
}

/// Implements `(lognot integer)`.
pub(super) fn complement(cx: &mut Context, args: Args<'_>) -> Answer {
    match args[0].as_fixnum() {
        Some(number) => Ok(Value::fixnum(!number)),
        None => integer(cx, args[0]).and_then(|number| cx.integer(!number)),
    }
}

/// Implements `(lognand integer ...)` and `(lognor integer ...)`: the complement of what `of` returns.
pub(super) fn not(cx: &mut Context, args: Args<'_>, of: fn(&mut Context, Args<'_>) -> Answer) -> Answer {
    let value = of(cx, args)?;
    cx.push(value)?;
    complement(cx, Args::new(&[value]))
}

/// Implements `(logtest integer integer)`.
pub(super) fn have_common_bits(cx: &mut Context, args: Args<'_>) -> Answer {
    let common = match (args[0].as_fixnum(), args[1].as_fixnum()) {
        (Some(a), Some(b)) => a & b != 0,
        _ => !(integer(cx, args[0])? & integer(cx, args[1])?).is_zero(),
    };
    Ok(cx.truth(common))
}

/// Implements `(logbitp index integer)`.
pub(super) fn has_bit(cx: &mut Context, args: Args<'_>) -> Answer {
    let index = args.size(cx, 0)?;
    let on = match args[1].as_fixnum() {
        Some(number) => number >> index.min(63) & 1 == 1,
        None => integer(cx, args[1])?.bit(index as u64),
    };
    Ok(cx.truth(on))
}
