//! The numbers: `f64` and `f32`, and pairs of them.

use crate::Kernels;
use crate::table::Table;
use core::fmt::Debug;
use core::ops::{Add, Mul, Neg, Sub};

/// `f64` or `f32`. No other type can be one: the lanes below are part of what defines the bits.
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
    /// Sums of real numbers are kept in so many lanes: 512 bytes, eight registers of AVX-512.
    const LANES: usize;
    /// The positive zero, in every lane at the start.
    const ZERO: Self;
    /// Larger than every number.
    const INFINITY: Self;
    /// What a result is that is not a number, though every input is one: quiet, positive, no payload.
    const NAN: Self;
    /// When a sum of squares is not to be trusted, and what to do.
    const SQUARES: Squares<Self>;

    /// `self * b + c`, rounded once.
    #[must_use]
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// Without its sign.
    #[must_use]
    fn abs(self) -> Self;
    /// The square root, rounded once.
    #[must_use]
    fn sqrt(self) -> Self;
    /// The same as a quiet NaN, payload and sign kept.
    #[must_use]
    fn quiet(self) -> Self;
    /// Not a number.
    #[must_use]
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    #[doc(hidden)]
    fn table(kernels: &Kernels) -> &'static Table<Self>;
}

/// A sum of squares from [`Squares::least`] on that is finite lost nothing by underflow, however many
/// numbers there are. Any other is taken again of the numbers times a power of two.
#[derive(Clone, Copy, Debug)]
pub struct Squares<T> {
    /// The least sum that is believed.
    pub least: T,
    /// Below: times this, and the root times the next.
    pub up: T,
    /// One over `up`.
    pub up_undone: T,
    /// When it overflowed: times this, and the root times the next.
    pub down: T,
    /// One over `down`.
    pub down_undone: T,
}

/// Two numbers side by side, as C's `double _Complex` is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for f32 {}
}

macro_rules! element {
    ($t:ident, $quiet_bit:expr, $squares:expr) => {
        impl Element for $t {
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
            fn table(kernels: &Kernels) -> &'static Table<$t> {
                kernels.$t
            }
        }
    };
}

// With n numbers, underflow takes less than n 2^-1075 from a sum of squares: nothing beside 2^-900. The
// smallest number is 2^-1074, and 2^-474 after scaling; the largest sum that is scaled up, below 2^300.
element!(
    f64,
    1 << 51,
    Squares {
        least: power_f64(-900),
        up: power_f64(600),
        up_undone: power_f64(-600),
        down: power_f64(-600),
        down_undone: power_f64(600),
    }
);
// Likewise n 2^-150 beside 2^-50; 2^-149 becomes 2^-61, the largest sum scaled up is below 2^126.
element!(
    f32,
    1 << 22,
    Squares {
        least: power_f32(-50),
        up: power_f32(88),
        up_undone: power_f32(-88),
        down: power_f32(-90),
        down_undone: power_f32(90),
    }
);

/// 2 to a power that is a normal number.
const fn power_f64(power: i64) -> f64 {
    f64::from_bits((power + 1023).cast_unsigned() << 52)
}

const fn power_f32(power: i32) -> f32 {
    f32::from_bits((power + 127).cast_unsigned() << 23)
}
