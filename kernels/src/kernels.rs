//! The kernels as callers use them: they divide long vectors among threads, and give NaN results the reference's bits.

use crate::arch::{self, Tables};
use crate::element::Family;
use crate::fenv::{Exceptions, Trial};
use crate::parts::{each_part, in_parts};
use crate::reference::{PART, settle};
use crate::table::{KernelTable, of_products};
use crate::vector::Location;
use crate::{Complex, Element, Isa, Team, Vector, VectorMut};
use core::hint::black_box;

/// Size in bytes above which a vector fits in no processor's second-level cache: the largest have 2 MiB.
const FAR_FROM: usize = 4 << 20;

/// The kernels of one instruction set.
#[derive(Clone, Copy)]
pub struct Kernels {
    isa: Isa,
    tables: Tables,
}

/// Marks the type `&KernelTable<T>`, so that [`Element::choose`] can pick the table of an element type.
struct TableRef;

impl Family for TableRef {
    type Of<T: 'static> = &'static KernelTable<T>;
}

impl core::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Kernels").field(&self.isa).finish()
    }
}

impl Default for Kernels {
    fn default() -> Kernels {
        Kernels::best()
    }
}

impl Kernels {
    /// Returns the kernels of the fastest available instruction set. Keep the value: detection takes longer than a
    /// short sum.
    #[must_use]
    pub fn best() -> Kernels {
        let mut fastest_first = Isa::ALL.into_iter();
        fastest_first.find_map(Kernels::of).expect("the portable kernels are always available")
    }

    /// Returns the kernels of an instruction set, or `None` if the processor lacks it; for tests and measurements.
    #[must_use]
    pub fn of(isa: Isa) -> Option<Kernels> {
        let tables = if isa.is_available() { arch::tables(isa)? } else { return None };
        Some(Kernels { isa, tables })
    }

    /// Returns the instruction set of these kernels.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Returns the kernels for one element type.
    #[inline(always)]
    fn table<T: Element>(&self) -> &'static KernelTable<T> {
        T::choose::<TableRef>(self.tables)
    }

    /// Returns the sum of `x`.
    #[inline]
    pub fn sum<'a, T: Element>(&self, x: impl Into<Vector<'a, T>>, team: &dyn Team) -> T {
        let (x, table) = (x.into(), self.table::<T>());
        // SAFETY: the elements of a vector can be read, and the processor has the instruction set: only `of` makes
        // `Kernels`.
        at_once(x.is_contiguous(), x.len(), || unsafe { (table.sum)(x.first(), x.len()) })
            .unwrap_or_else(|| self.of_one(table.sum, table.strided.sum, x.location(), x.len(), team))
    }

    /// Returns the sum of the absolute values of `x`.
    #[inline]
    pub fn asum<'a, T: Element>(&self, x: impl Into<Vector<'a, T>>, team: &dyn Team) -> T {
        let (x, table) = (x.into(), self.table::<T>());
        // SAFETY: as in `sum`.
        at_once(x.is_contiguous(), x.len(), || unsafe { (table.asum)(x.first(), x.len()) })
            .unwrap_or_else(|| self.of_one(table.asum, table.strided.asum, x.location(), x.len(), team))
    }

    /// Returns the sum of the squares of `x`.
    #[inline]
    pub fn sumsq<'a, T: Element>(&self, x: impl Into<Vector<'a, T>>, team: &dyn Team) -> T {
        let (x, table) = (x.into(), self.table::<T>());
        // SAFETY: as in `sum`.
        at_once(x.is_contiguous(), x.len(), || unsafe { (table.sumsq)(x.first(), x.len()) }).unwrap_or_else(
            || {
                let is_far = x.len() >= FAR_FROM / size_of::<T>();
                let contiguous = if is_far { table.sumsq_far } else { table.sumsq };
                self.of_one(contiguous, table.strided.sumsq, x.location(), x.len(), team)
            },
        )
    }

    /// Returns the square root of the sum of the squares of `x`. It overflows or underflows, and raises exceptions,
    /// only where the exact result does: squares of elements may be too large or too small for the element type.
    #[inline]
    pub fn nrm2<'a, T: Element>(&self, x: impl Into<Vector<'a, T>>, team: &dyn Team) -> T {
        let x = x.into();
        let trial = Trial::begin();
        let plain = self.sumsq(x, team);
        if plain >= T::SQUARES.least && plain < T::INFINITY {
            // Squares that underflowed are negligible.
            trial.end(Exceptions::ALL_BUT_UNDERFLOW);
            plain.sqrt()
        } else {
            // Only the exception of a signalling NaN counts if the sum is discarded.
            trial.end(Exceptions::INVALID);
            self.nrm2_scaled(plain, x.location(), x.len(), team)
        }
    }

    /// Returns the largest absolute value of `x`, or zero if there are no elements.
    pub fn amax<'a, T: Element>(&self, x: impl Into<Vector<'a, T>>, team: &dyn Team) -> T {
        let x = x.into();
        let [_, most] = self.extremes(x, team);
        if most.magnitude() <= T::INFINITE { most } else { first_nan(x) }
    }

    /// Returns the smallest absolute value of `x`, or infinity if there are no elements.
    pub fn amin<'a, T: Element>(&self, x: impl Into<Vector<'a, T>>, team: &dyn Team) -> T {
        let x = x.into();
        let [least, most] = self.extremes(x, team);
        if most.magnitude() <= T::INFINITE { least } else { first_nan(x) }
    }

    /// Returns the smallest and the largest absolute value, the largest a NaN if an element is one.
    fn extremes<T: Element>(&self, x: Vector<'_, T>, team: &dyn Team) -> [T; 2] {
        let extremes = self.table::<T>().strided.extremes;
        // SAFETY: as in `sum`.
        let part = |start, len| unsafe { extremes(x.part(start, len)) };
        if x.len() <= PART {
            return part(0, x.len());
        }
        each_part(x.len(), size_of::<T>(), team, &part, |count, of_part| {
            let of = |k: usize| (0..count).map(move |i| of_part(i)[k].magnitude());
            [of(0).min(), of(1).max()].map(|found| T::of_magnitude(found.expect("there are parts")))
        })
    }

    /// Returns the sum of `x[i] * y[i]`.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    #[inline]
    pub fn dot<'a, T: Element>(
        &self,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<Vector<'a, T>>,
        team: &dyn Team,
    ) -> T {
        let (x, y, table) = (x.into(), y.into(), self.table::<T>());
        same_length(x.len(), y.len());
        // SAFETY: as in `sum`.
        at_once(x.is_contiguous() && y.is_contiguous(), x.len(), || unsafe {
            (table.dot)(x.first(), y.first(), x.len())
        })
        .unwrap_or_else(|| self.dot_of_any(x.location(), y.location(), x.len(), team))
    }

    /// Computes `y[i] = a * x[i] + y[i]`, rounded once, or does nothing if `a` is zero, as in BLAS.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    #[inline]
    pub fn axpy<'a, T: Element>(
        &self,
        a: T,
        x: impl Into<Vector<'a, T>>,
        y: impl Into<VectorMut<'a, T>>,
        team: &dyn Team,
    ) {
        let (x, y, table) = (x.into(), y.into(), self.table::<T>());
        same_length(x.len(), y.len());
        if a == T::ZERO {
            return;
        }
        if x.is_contiguous() && y.is_contiguous() && x.len() <= PART {
            // SAFETY: as in `sum`; the elements of a `VectorMut` can be written.
            unsafe { (table.axpy)(a, x.first(), y.first(), x.len()) };
        } else {
            self.axpy_of_any(a, x.location(), y.location(), x.len(), team);
        }
    }

    /// Returns the sum of `x[i] * y[i]` for complex numbers.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    #[inline]
    pub fn dotu<'a, T: Element>(
        &self,
        x: impl Into<Vector<'a, Complex<T>>>,
        y: impl Into<Vector<'a, Complex<T>>>,
        team: &dyn Team,
    ) -> Complex<T> {
        self.dot_complex(x.into(), y.into(), false, team)
    }

    /// Returns the sum of the conjugate of `x[i]` times `y[i]`.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    #[inline]
    pub fn dotc<'a, T: Element>(
        &self,
        x: impl Into<Vector<'a, Complex<T>>>,
        y: impl Into<Vector<'a, Complex<T>>>,
        team: &dyn Team,
    ) -> Complex<T> {
        self.dot_complex(x.into(), y.into(), true, team)
    }

    /// Reduces a vector with any step to a number, by `contiguous` where its elements are adjacent and by `strided`
    /// otherwise.
    #[inline(never)]
    fn of_one<T: Element>(
        &self,
        contiguous: unsafe fn(*const T, usize) -> T,
        strided: unsafe fn(Vector<'_, T>) -> T,
        x: Location<T>,
        n: usize,
        team: &dyn Team,
    ) -> T {
        // SAFETY: the vector is the caller's.
        let x = unsafe { Vector::at_location(x, n) };
        let [sum] = in_parts(x.len(), size_of::<T>(), team, &|start, len| {
            let x = x.part(start, len);
            // SAFETY: as in `sum`.
            [unsafe { if x.is_contiguous() { contiguous(x.first(), len) } else { strided(x) } }]
        });
        settle(sum, x.iter())
    }

    #[inline(never)]
    fn dot_of_any<T: Element>(&self, x: Location<T>, y: Location<T>, n: usize, team: &dyn Team) -> T {
        // SAFETY: the vectors are the caller's.
        let (x, y) = unsafe { (Vector::at_location(x, n), Vector::at_location(y, n)) };
        let table = self.table::<T>();
        let contiguous = x.is_contiguous() && y.is_contiguous();
        let [dot] = in_parts(x.len(), 2 * size_of::<T>(), team, &|start, len| {
            let (x, y) = (x.part(start, len), y.part(start, len));
            // SAFETY: as in `sum`.
            [unsafe {
                if contiguous { (table.dot)(x.first(), y.first(), len) } else { (table.strided.dot)(x, y) }
            }]
        });
        settle(dot, x.iter().zip(y.iter()).flat_map(|(x, y)| [x, y]))
    }

    #[inline(never)]
    fn axpy_of_any<T: Element>(&self, a: T, x: Location<T>, y: Location<T>, n: usize, team: &dyn Team) {
        // SAFETY: the vectors are the caller's, and `y` is writable.
        let (x, y) = unsafe { (Vector::at_location(x, n), VectorMut::at_location(y, n)) };
        let table = self.table::<T>();
        let contiguous = x.is_contiguous() && y.is_contiguous();
        // Every step changes the same element: one thread does them in order.
        let team = if y.is_one() { &crate::Alone } else { team };
        in_parts(x.len(), 3 * size_of::<T>(), team, &|start, len| {
            // SAFETY: parts do not overlap unless `y` is one element, and then they are processed in order; otherwise
            // as in `sum`.
            unsafe {
                let (x, y) = (x.part(start, len), y.part(start, len));
                if contiguous {
                    (table.axpy)(a, x.first(), y.first(), len);
                } else {
                    (table.strided.axpy)(a, x, &y);
                }
            }
            [T::ZERO; 0]
        });
    }

    /// Returns the norm of `x` when `plain`, its sum of squares, is a NaN, overflowed or may have underflowed.
    #[cold]
    fn nrm2_scaled<T: Element>(&self, plain: T, x: Location<T>, n: usize, team: &dyn Team) -> T {
        if plain.is_nan() {
            return plain;
        }
        // SAFETY: the vector is the caller's.
        let x = unsafe { Vector::at_location(x, n) };
        let (scale, undone) = match T::SQUARES {
            limits if plain < limits.least => (limits.up, limits.up_undone),
            limits => (limits.down, limits.down_undone),
        };
        let table = self.table::<T>();
        let trial = Trial::begin();
        let [sum] = in_parts(x.len(), size_of::<T>(), team, &|start, len| {
            // SAFETY: as in `sum`.
            [unsafe { (table.strided.sumsq_scaled)(x.part(start, len), scale) }]
        });
        // Elements that underflow when the largest ones are scaled down are negligible, and infinity is exact.
        trial.end(if sum < T::INFINITY { Exceptions::ALL_BUT_UNDERFLOW } else { Exceptions::INVALID });
        // The operations below raise the result's exceptions: they must not be moved before `end`.
        black_box(sum).sqrt() * undone
    }

    #[inline]
    fn dot_complex<T: Element>(
        &self,
        x: Vector<'_, Complex<T>>,
        y: Vector<'_, Complex<T>>,
        conjugate: bool,
        team: &dyn Team,
    ) -> Complex<T> {
        same_length(x.len(), y.len());
        let (re, im) = if x.is_contiguous() && y.is_contiguous() && x.len() <= PART {
            // SAFETY: as in `sum`; a complex number is two elements.
            unsafe { (self.table::<T>().dot_complex)(x.first().cast(), y.first().cast(), x.len(), conjugate) }
        } else {
            of_products(self.products_of_any(x.location(), y.location(), x.len(), team), conjugate)
        };
        settled_complex(re, im, x, y)
    }

    /// Returns the four sums of products of real and imaginary parts, as [`KernelTable::products`] does, for vectors
    /// of any length and step.
    #[inline(never)]
    fn products_of_any<T: Element>(
        &self,
        x: Location<Complex<T>>,
        y: Location<Complex<T>>,
        n: usize,
        team: &dyn Team,
    ) -> [T; 4] {
        // SAFETY: the vectors are the caller's.
        let (x, y) = unsafe { (Vector::at_location(x, n), Vector::at_location(y, n)) };
        let table = self.table::<T>();
        let contiguous = x.is_contiguous() && y.is_contiguous();
        in_parts(x.len(), 4 * size_of::<T>(), team, &|start, len| {
            let (x, y) = (x.part(start, len), y.part(start, len));
            // SAFETY: as in `dot_complex`.
            unsafe {
                if contiguous {
                    (table.products)(x.first().cast(), y.first().cast(), len)
                } else {
                    (table.strided.products)(x, y)
                }
            }
        })
    }
}

/// Returns the result of `sum` in the usual case: a contiguous vector of one part whose sum is not a NaN. Otherwise
/// returns `None`.
#[inline(always)]
fn at_once<T: Element>(contiguous: bool, n: usize, sum: impl FnOnce() -> T) -> Option<T> {
    if !contiguous || n > PART {
        return None;
    }
    let sum = sum() + T::ZERO;
    (!sum.is_nan()).then_some(sum)
}

/// Returns the first NaN of a vector that has one, made quiet.
#[cold]
fn first_nan<T: Element>(x: Vector<'_, T>) -> T {
    x.iter().find(|x| x.magnitude() > T::INFINITE).map_or(T::NAN, T::quiet)
}

#[inline]
#[track_caller]
fn same_length(x: usize, y: usize) {
    assert!(x == y, "vectors of {x} and {y} elements");
}

/// Returns a complex number with these parts, with NaNs replaced by the reference's rule.
#[inline]
fn settled_complex<T: Element>(
    re: T,
    im: T,
    x: Vector<'_, Complex<T>>,
    y: Vector<'_, Complex<T>>,
) -> Complex<T> {
    if re.is_nan() || im.is_nan() {
        return settled_complex_slow(re, im, x.location(), y.location(), x.len());
    }
    Complex { re, im }
}

#[cold]
fn settled_complex_slow<T: Element>(
    re: T,
    im: T,
    x: Location<Complex<T>>,
    y: Location<Complex<T>>,
    n: usize,
) -> Complex<T> {
    // SAFETY: the vectors are the caller's.
    let (x, y) = unsafe { (Vector::at_location(x, n), Vector::at_location(y, n)) };
    let inputs = || x.iter().zip(y.iter()).flat_map(|(x, y)| [x.re, x.im, y.re, y.im]);
    Complex { re: settle(re, inputs()), im: settle(im, inputs()) }
}
