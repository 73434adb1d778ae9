//! Converts between Lisp's types of numbers and those of Rust.

use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{MOST_POSITIVE, ObjectKind, Value, flag};
use crate::world::class;
use num_bigint::{BigInt, Sign};
use num_integer::Integer as _;
use num_traits::{One as _, Signed as _, ToPrimitive as _, Zero as _};

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

/// Returns the digits of a number in a base from 2 to 36, letters in lower case, as EusLisp prints them.
pub(crate) fn in_base(number: i64, base: i64) -> String {
    BigInt::from(number).to_str_radix(base.clamp(2, 36) as u32)
}

/// Returns the value of an integer; none for other values.
pub(super) fn as_big(value: Value) -> Option<BigInt> {
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
pub(super) fn fraction(value: Value) -> Option<(BigInt, BigInt)> {
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

    /// Returns the integer that an element of an integer-vector holds after `value` was stored in it: floats are
    /// rounded, as in EusLisp.
    #[inline]
    pub(crate) fn integer_of_64_bits(&mut self, value: Value) -> Result<i64, Exit> {
        match value.as_fixnum() {
            Some(number) => Ok(number),
            None => self.wide_integer_of_64_bits(value),
        }
    }

    #[cold]
    fn wide_integer_of_64_bits(&mut self, value: Value) -> Result<i64, Exit> {
        let rounded = as_float(value).and_then(|number| number.round().to_i64());
        match rounded.or_else(|| as_big(value)?.to_i64()) {
            Some(number) => Ok(number),
            None => self.type_error("integer of 64 bits", value),
        }
    }

    /// Returns a fixnum that counts or indexes.
    pub(crate) fn size(&mut self, value: Value) -> Result<usize, Exit> {
        match value.as_fixnum().map(usize::try_from) {
            Some(Ok(size)) => Ok(size),
            _ if value.is(ObjectKind::Bignum) && !value.has_flag(flag::NEGATIVE) => {
                self.type_error("size or index of at most 61 bits", value)
            }
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
        // Nearly all integers of a program are small ones.
        if let Ok(number) = i64::from_str_radix(digits, base.clamp(2, 36))
            && number <= MOST_POSITIVE
        {
            return Ok(Value::fixnum(if negative { -number } else { number }));
        }
        let number = BigInt::parse_bytes(digits.as_bytes(), base.clamp(2, 36)).unwrap_or_default();
        self.integer(if negative { -number } else { number })
    }

    /// Returns the exact quotient of two integers.
    pub(crate) fn ratio(&mut self, top: Value, bottom: Value) -> Answer {
        let (top, bottom) = (integer(self, top)?, integer(self, bottom)?);
        self.quotient(top, bottom)
    }

    /// Returns a ratio of value 0 for `:init`, which sets it.
    pub(crate) fn zero_ratio(&mut self) -> Answer {
        let ratio = self.new_slots(ObjectKind::Ratio, class::RATIO, 2)?;
        ratio.set_slot(0, Value::fixnum(0));
        ratio.set_slot(1, Value::fixnum(1));
        Ok(ratio)
    }

    pub(super) fn quotient(&mut self, top: BigInt, bottom: BigInt) -> Answer {
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
    pub(super) fn by_zero(&mut self) -> Answer {
        self.fail(ErrorClass::Arithmetic, "division by zero".to_owned())
    }
}
