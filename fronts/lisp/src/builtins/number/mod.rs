//! Implements integers of any size, ratios, and their arithmetic with floats.

mod arithmetic;
mod bits;
mod order;

use crate::builtin::{Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, flag};
use crate::world::class;
use arithmetic::{Op, absolute, add, arithmetic, divide, gcd, lcm, multiply, remainder, subtract};
use bits::{bits, deposit_byte, load_byte, shift};
use num_bigint::{BigInt, Sign};
use num_integer::Integer as _;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};
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
    builtin("LOGAND", 0, MANY, |cx, args| bits(cx, args, -1, |a, b| a & b, |a, b| a & b)),
    builtin("LOGIOR", 0, MANY, |cx, args| bits(cx, args, 0, |a, b| a | b, |a, b| a | b)),
    builtin("LOGXOR", 0, MANY, |cx, args| bits(cx, args, 0, |a, b| a ^ b, |a, b| a ^ b)),
    builtin("LOGEQV", 0, MANY, |cx, args| bits(cx, args, -1, |a, b| !(a ^ b), |a, b| !(a ^ b))),
    builtin("LOGNOT", 1, 1, |cx, args| args.fixnum(cx, 0).map(|number| Value::fixnum(!number))),
    builtin("LOGTEST", 2, 2, |cx, args| {
        let common = args.fixnum(cx, 0)? & args.fixnum(cx, 1)?;
        Ok(cx.truth(common != 0))
    }),
    builtin("LOGBITP", 2, 2, |cx, args| {
        let (index, number) = (args.size(cx, 0)?, args.fixnum(cx, 1)?);
        Ok(cx.truth(number >> index.min(63) & 1 == 1))
    }),
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

/// Returns the value of a float, in a word or boxed.
#[inline]
pub(crate) fn as_float(value: Value) -> Option<f64> {
    match value.word_float() {
        Some(number) => Some(number),
        None if value.is(ObjectKind::Float) => Some(f64::from_bits(value.get(1).0)),
        None => None,
    }
}

/// Returns the value of a bignum.
pub(crate) fn big(value: Value) -> BigInt {
    let digits: Vec<u32> = value
        .integers()
        .iter()
        .flat_map(|digit| {
            let digit = digit.cast_unsigned();
            [digit as u32, (digit >> 32) as u32]
        })
        .collect();
    let sign = if value.has_flag(flag::NEGATIVE) { Sign::Minus } else { Sign::Plus };
    BigInt::from_slice(sign, &digits)
}

pub(crate) fn in_base(number: i64, base: i64) -> String {
    BigInt::from(number).to_str_radix(base.clamp(2, 36) as u32).to_ascii_uppercase()
}

fn as_big(value: Value) -> Option<BigInt> {
    match value.as_fixnum() {
        Some(number) => Some(BigInt::from(number)),
        None => value.is(ObjectKind::Bignum).then(|| big(value)),
    }
}

/// Returns the value of an integer of any size.
pub(crate) fn integer(cx: &mut Context, value: Value) -> Result<BigInt, Exit> {
    match as_big(value) {
        Some(number) => Ok(number),
        None => cx.type_error("integer", value),
    }
}

/// Returns an integer or ratio as (numerator, denominator).
fn fraction(value: Value) -> Option<(BigInt, BigInt)> {
    if value.is(ObjectKind::Ratio) {
        return Some((as_big(value.slot(0))?, as_big(value.slot(1))?));
    }
    as_big(value).map(|top| (top, BigInt::one()))
}

impl Context {
    pub(crate) fn is_number(&self, value: Value) -> bool {
        value.is_fixnum()
            || value.word_float().is_some()
            || (value.is_object()
                && matches!(
                    value.header().kind(),
                    ObjectKind::Float | ObjectKind::Bignum | ObjectKind::Ratio
                ))
    }

    /// Returns any number as a float.
    #[inline]
    pub(crate) fn number(&mut self, value: Value) -> Result<f64, Exit> {
        if let Some(number) = as_float(value) {
            return Ok(number);
        }
        match value.as_fixnum() {
            Some(number) => Ok(number as f64),
            None => self.wide_number(value),
        }
    }

    #[cold]
    fn wide_number(&mut self, value: Value) -> Result<f64, Exit> {
        match fraction(value) {
            Some((top, bottom)) => {
                Ok(top.to_f64().unwrap_or(f64::INFINITY) / bottom.to_f64().unwrap_or(f64::INFINITY))
            }
            None => self.type_error("number", value),
        }
    }

    /// Returns a fixnum that counts or indexes.
    pub(crate) fn size(&mut self, value: Value) -> Result<usize, Exit> {
        match value.as_fixnum().map(usize::try_from) {
            Some(Ok(size)) => Ok(size),
            _ => self.type_error("integer that is not negative", value),
        }
    }

    /// Returns an integer in its shortest representation.
    pub(crate) fn integer(&mut self, number: BigInt) -> Answer {
        if let Some(small) = number.to_i64()
            && Value::fits_fixnum(small)
        {
            return Ok(Value::fixnum(small));
        }
        let (sign, digits) = number.to_u64_digits();
        self.bignum(sign == Sign::Minus, &digits)
    }

    #[inline]
    pub(crate) fn integer_from(&mut self, number: i64) -> Answer {
        if Value::fits_fixnum(number) {
            return Ok(Value::fixnum(number));
        }
        self.integer(BigInt::from(number))
    }

    pub(crate) fn integer_from_text(&mut self, digits: &str, negative: bool, base: u32) -> Answer {
        let number = BigInt::parse_bytes(digits.as_bytes(), base.clamp(2, 36)).unwrap_or_default();
        self.integer(if negative { -number } else { number })
    }

    /// Returns the exact quotient of two integers.
    pub(crate) fn ratio(&mut self, top: Value, bottom: Value) -> Answer {
        let (top, bottom) = (integer(self, top)?, integer(self, bottom)?);
        self.quotient(top, bottom)
    }

    fn quotient(&mut self, top: BigInt, bottom: BigInt) -> Answer {
        if bottom.is_zero() {
            return self.by_zero();
        }
        let common = top.gcd(&bottom);
        let (mut top, mut bottom) = (top / &common, bottom / &common);
        if bottom.is_negative() {
            (top, bottom) = (-top, -bottom);
        }
        if bottom.is_one() {
            return self.integer(top);
        }
        let mark = self.mark();
        let top = self.integer(top)?;
        self.push(top)?;
        let bottom = self.integer(bottom)?;
        self.push(bottom)?;
        let ratio = self.new_slots(ObjectKind::Ratio, class::RATIO, 2)?;
        self.release(mark);
        ratio.set_slot(0, top);
        ratio.set_slot(1, bottom);
        Ok(ratio)
    }

    #[cold]
    fn by_zero(&mut self) -> Answer {
        self.fail(ErrorClass::Arithmetic, "division by zero".to_owned())
    }
}
