//! Stores numbers in a word.

use super::Value;

pub(crate) const ZERO: Value = Value(0x23);
pub(crate) const NEGATIVE_ZERO: Value = Value(0x33);
/// This offset makes the exponents near 1 start with binary 10, the tag, after the rotation.
pub(crate) const SHIFT: u64 = 1 << 60;

/// This is the largest fixnum; the smallest is its negative minus 1.
pub(crate) const MOST_POSITIVE: i64 = (1 << 61) - 1;

impl Value {
    pub(crate) const fn fixnum(number: i64) -> Value {
        Value((number << 2).cast_unsigned() | 1)
    }

    pub(crate) fn is_fixnum(self) -> bool {
        self.0 & 3 == 1
    }

    /// Returns the number, if the value is a fixnum.
    pub(crate) fn as_fixnum(self) -> Option<i64> {
        self.is_fixnum().then(|| self.0.cast_signed() >> 2)
    }

    pub(crate) fn fits_fixnum(number: i64) -> bool {
        (-MOST_POSITIVE - 1..=MOST_POSITIVE).contains(&number)
    }

    /// Returns the word of a float, if it fits without loss.
    pub(crate) fn float_word(number: f64) -> Option<Value> {
        let word = number.to_bits().wrapping_add(SHIFT).rotate_left(3);
        if word & 3 == 2 {
            return Some(Value(word));
        }
        match number.to_bits() {
            0 => Some(ZERO),
            0x8000_0000_0000_0000 => Some(NEGATIVE_ZERO),
            _ => None,
        }
    }

    /// Returns the float in the word, if there is one; floats that do not fit are objects.
    pub(crate) fn word_float(self) -> Option<f64> {
        if self.0 & 3 == 2 {
            return Some(f64::from_bits(self.0.rotate_right(3).wrapping_sub(SHIFT)));
        }
        match self {
            ZERO => Some(0.0),
            NEGATIVE_ZERO => Some(-0.0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_floats_round_trip_exactly() {
        for number in [0.0, -0.0, 1.0, -1.5, 0.1, 1e-70, 1e70, 3.5e7, f64::EPSILON] {
            let word = Value::float_word(number).unwrap();
            assert_eq!(word.word_float().map(f64::to_bits), Some(number.to_bits()), "{number}");
        }
        for number in [1e300, 1e-300, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE] {
            assert_eq!(Value::float_word(number), None, "{number}");
        }
    }

    #[test]
    fn fixnums_round_trip() {
        for number in [0, 1, -1, MOST_POSITIVE, -MOST_POSITIVE - 1] {
            assert_eq!(Value::fixnum(number).as_fixnum(), Some(number));
        }
    }
}
