//! Defines the operations on vector registers that kernels need.

use crate::Element;

/// A vector register of numbers.
///
/// # Safety of every method
/// The processor has the instruction set of the type. Methods are inlined into functions that enable it: only there do
/// they become single instructions.
pub(crate) trait Simd: Copy {
    type Element: Element;
    /// A selection of neighbouring lanes of a register.
    type Mask: Copy;
    /// Number of lanes of the register, at most 16.
    const COUNT: usize;

    unsafe fn zero() -> Self;
    unsafe fn splat(value: Self::Element) -> Self;
    /// Loads a register from memory of any alignment.
    /// # Safety
    /// `COUNT` elements can be read.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Stores a register to memory of any alignment.
    /// # Safety
    /// `COUNT` elements can be written.
    unsafe fn store(self, to: *mut Self::Element);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn abs(self) -> Self;
    /// Exchanges lanes 0 and 1, lanes 2 and 3, and so on.
    unsafe fn swap_pairs(self) -> Self;
    /// Returns the mask of lanes `from..to`.
    unsafe fn mask(from: usize, to: usize) -> Self::Mask;
    /// Loads the lanes of the mask from memory, and sets the others to zero.
    /// # Safety
    /// The elements in the mask's lanes can be read. No other element is read.
    unsafe fn load_masked(from: *const Self::Element, mask: Self::Mask) -> Self;

    /// Adds the lanes of the register in halves until two are left.
    #[inline(always)]
    unsafe fn tree_pair(self) -> [Self::Element; 2] {
        let mut lanes = [Self::Element::ZERO; 16];
        // SAFETY: no register has more than 16 lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut width = Self::COUNT / 2;
        while width > 1 {
            for k in 0..width {
                lanes[k] = lanes[k] + lanes[k + width];
            }
            width /= 2;
        }
        [lanes[0], lanes[1]]
    }

    /// Returns the sum of the lanes of the register, added in halves.
    #[inline(always)]
    unsafe fn tree(self) -> Self::Element {
        // SAFETY: the caller's promise.
        let [a, b] = unsafe { self.tree_pair() };
        a + b
    }
}

/// A register of an instruction set that has a fused multiply-add.
pub(crate) trait Fused: Simd {
    /// Returns `self * b + c`, rounded once.
    unsafe fn mul_add(self, b: Self, c: Self) -> Self;
}

/// A register in which NaNs can be detected.
pub(crate) trait Nans: Fused {
    /// Returns a register with all bits set in lanes where `a` or `b` is a NaN, and none in the others.
    unsafe fn nans(a: Self, b: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    /// Returns whether the sign bit of any lane is set.
    unsafe fn any(self) -> bool;
}

/// Loads lanes `start..end` and sets the others to zero, for registers without masked loads.
///
/// # Safety
/// The processor has the instruction set; the elements in lanes `start..end` can be read.
#[inline(always)]
pub(crate) unsafe fn load_some<V: Simd>(from: *const V::Element, (start, end): (usize, usize)) -> V {
    let mut lanes = [V::Element::ZERO; 4];
    const { assert!(V::COUNT <= 4) };
    for k in start..end {
        // SAFETY: the caller's promise.
        lanes[k] = unsafe { from.wrapping_add(k).read() };
    }
    // SAFETY: the instruction set; a register has at most four lanes.
    unsafe { V::load(lanes.as_ptr()) }
}

/// A way to read a vector whose registers cross cache lines.
///
/// # Safety of every method
/// The processor has the instruction set.
pub(crate) trait Shifts<V: Simd> {
    /// Whether assembling a register from two aligned ones costs less than a load that crosses two cache lines.
    const PAYS: bool;
    /// A number of elements by which to shift, in the form that the instruction takes.
    type By: Copy;
    unsafe fn by(elements: usize) -> Self::By;
    /// Returns the lanes of `low` from lane `by` on, followed by the first lanes of `high`.
    unsafe fn shifted(low: V, high: V, by: Self::By) -> V;
}

/// Reads misaligned registers by loads that cross cache lines.
pub(crate) struct Crossing;

impl<V: Simd> Shifts<V> for Crossing {
    const PAYS: bool = false;
    type By = ();

    unsafe fn by(_: usize) {}

    unsafe fn shifted(low: V, _: V, (): ()) -> V {
        low
    }
}

/// Defines methods that are unsafe only because the processor must have the instruction set.
macro_rules! methods {
    ($(fn $name:ident($($argument:tt $(: $type:ty)?),*) -> $result:ty { $($body:tt)* })*) => {
        $(
            #[inline(always)]
            #[allow(unused_unsafe, reason = "what every processor has is safe to call")]
            unsafe fn $name($($argument $(: $type)?),*) -> $result {
                // SAFETY: the caller's promise, as the trait words it.
                unsafe { $($body)* }
            }
        )*
    };
}
pub(crate) use methods;
