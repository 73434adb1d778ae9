//! Defines the element types of vectors: `f64`, `f32`, and complex numbers of them.

use core::fmt::Debug;
use core::ops::{Add, Mul, Neg, Sub};

/// A type of real elements: `f64` or `f32`. No other type can be one, because the number of lanes belongs to the
/// definition of a result's bits.
pub trait Element:
    Copy
    + Debug
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// Number of lanes in which sums of real numbers are kept: 512 bytes, or eight AVX-512 registers.
    const LANES: usize;
    /// Positive zero, at which every lane starts.
    const ZERO: Self;
    /// Positive infinity, the result of sums that overflow.
    const INFINITY: Self;
    /// The result of an invalid operation without any NaN among the inputs: a quiet, positive NaN without payload.
    const NAN: Self;
    /// Bits of an absolute value as an integer. They are in the order of the numbers, with NaNs above infinity.
    type Magnitude: Copy + Ord;
    /// Magnitude of positive infinity.
    const INFINITE: Self::Magnitude;
    /// The range in which a sum of squares is exact enough for a norm, and the scale factors outside of it.
    const SQUARES: Squares<Self>;

    /// Returns `self * b + c`, rounded once.
    #[must_use]
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Returns the absolute value.
    #[must_use]
    fn abs(self) -> Self;
    /// Returns the square root, rounded once.
    #[must_use]
    fn sqrt(self) -> Self;
    /// Returns the number as a quiet NaN with the same payload and sign.
    #[must_use]
    fn quiet(self) -> Self;
    /// Returns the bits of the absolute value. It raises no floating-point exception, also for a signalling NaN.
    #[must_use]
    fn magnitude(self) -> Self::Magnitude;
    /// Returns the number with these bits.
    #[must_use]
    fn of_magnitude(bits: Self::Magnitude) -> Self;
    /// Returns whether this is a NaN.
    #[must_use]
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    #[doc(hidden)]
    fn choose<F: Family>(each: (F::Of<f64>, F::Of<f32>)) -> F::Of<Self>;
}

/// Marks a generic type, of which [`Element::choose`] picks the instance for an element type.
#[doc(hidden)]
pub trait Family {
    /// Instance for the element type `T`.
    type Of<T: 'static>;
}

/// The range in which a sum of squares, of any number of elements, loses nothing by underflow or overflow. A norm
/// whose sum of squares lies outside is computed again from scaled elements.
#[derive(Clone, Copy, Debug)]
pub struct Squares<T> {
    /// Smallest sum of squares that needs no scaling. No larger finite sum does either.
    pub least: T,
    /// Factor by which elements are scaled up if the sum is below `least`.
    pub up: T,
    /// Factor by which the square root is multiplied to undo `up`: the reciprocal of `up`.
    pub up_undone: T,
    /// Factor by which elements are scaled down if the sum overflowed.
    pub down: T,
    /// Factor by which the square root is multiplied to undo `down`: the reciprocal of `down`.
    pub down_undone: T,
}

/// A complex number, with the layout of C's `double _Complex` for `f64` and `float _Complex` for `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// Real part of the number.
    pub re: T,
    /// Imaginary part of the number.
    pub im: T,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
}

/// Implements [`Element`] for `f64` or `f32`, whose instance of a [`Family`] is the given position of the pair (`f64`,
/// `f32`).
macro_rules! element {
    ($position:tt, $t:ident, $bits:ident, $quiet_bit:expr, $squares:expr) => {
        impl Element for $t {
            // Signed, because AVX2 has no comparison of unsigned integers; the sign bit is always 0.
            type Magnitude = $bits;
            const INFINITE: $bits = $t::INFINITY.to_bits().cast_signed();
            const LANES: usize = 512 / size_of::<$t>();
            const ZERO: $t = 0.0;
            const INFINITY: $t = $t::INFINITY;
            const NAN: $t = $t::from_bits($t::INFINITY.to_bits() | $quiet_bit);
            const SQUARES: Squares<$t> = $squares;

            #[inline(always)]
            fn mul_add(self, b: $t, c: $t) -> $t {
                $t::mul_add(self, b, c)
            }

            #[inline(always)]
            fn abs(self) -> $t {
                $t::abs(self)
            }

            #[inline(always)]
            fn sqrt(self) -> $t {
                $t::sqrt(self)
            }

            fn quiet(self) -> $t {
                $t::from_bits(self.to_bits() | $quiet_bit)
            }

            #[inline(always)]
            fn magnitude(self) -> $bits {
                self.to_bits().cast_signed() & $bits::MAX
            }

            #[inline(always)]
            fn of_magnitude(bits: $bits) -> $t {
                $t::from_bits(bits.cast_unsigned())
            }

            #[inline(always)]
            fn choose<F: Family>(each: (F::Of<f64>, F::Of<f32>)) -> F::Of<$t> {
                each.$position
            }
        }
    };
}

// With n numbers, underflow takes less than n 2^-1075 from a sum of squares, negligible against 2^-900. The smallest
// number is 2^-1074, and 2^-474 after scaling; the largest sum that is scaled up is below 2^300.
element!(
    0,
    f64,
    i64,
    1 << 51,
    Squares {
        least: power_f64(-900),
        up: power_f64(600),
        up_undone: power_f64(-600),
        down: power_f64(-600),
        down_undone: power_f64(600),
    }
);
// Likewise n 2^-150 is negligible against 2^-50; 2^-149 becomes 2^-61; the largest sum scaled up is below 2^126.
element!(
    1,
    f32,
    i32,
    1 << 22,
    Squares {
        least: power_f32(-50),
        up: power_f32(88),
        up_undone: power_f32(-88),
        down: power_f32(-90),
        down_undone: power_f32(90),
    }
);

/// Returns 2 to a power between -1022 and 1023.
const fn power_f64(power: i64) -> f64 {
    f64::from_bits((power + 1023).cast_unsigned() << 52)
}

const fn power_f32(power: i32) -> f32 {
    f32::from_bits((power + 127).cast_unsigned() << 23)
}
