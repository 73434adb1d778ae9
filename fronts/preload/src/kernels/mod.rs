//! Exports the kernels under the C names of BLAS with the prefix `largesse_`.

mod team;
mod threads;

use crate::settings;
use core::ffi::c_int;
use largesse_kernels::{Complex, Kernels, Vector, VectorMut};
use std::sync::OnceLock;
use team::Processors;

/// Returns the kernels of this process: the fastest, or those for the instruction set that `LARGESSE_ISA` names.
fn kernels() -> Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    *KERNELS.get_or_init(|| settings::options().isa.and_then(Kernels::of).unwrap_or_default())
}

/// Returns the number of threads that a long call would use now.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_threads() -> c_int {
    threads::threads(team::worker) as c_int
}

/// Defines functions of one vector of `n` elements at a distance of `incx` elements, with `x` as the lowest address. If
/// `incx` is negative, the vector begins at its highest address.
macro_rules! of_one {
    ($($name:ident: $t:ty => $kernel:ident,)*) => {
        $(
            /// # Safety
            /// The vector's `n` elements must be readable.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(n: usize, x: *const $t, incx: isize) -> $t {
                // SAFETY: the caller's promise.
                let x = unsafe { Vector::from_raw(x, incx, n) };
                kernels().$kernel(x, &Processors)
            }
        )*
    };
}

of_one! {
    largesse_dsum: f64 => sum,
    largesse_ssum: f32 => sum,
    largesse_dsumsq: f64 => sumsq,
    largesse_ssumsq: f32 => sumsq,
    largesse_dnrm2: f64 => nrm2,
    largesse_snrm2: f32 => nrm2,
    largesse_dasum: f64 => asum,
    largesse_sasum: f32 => asum,
    largesse_damax: f64 => amax,
    largesse_samax: f32 => amax,
    largesse_damin: f64 => amin,
    largesse_samin: f32 => amin,
}

/// Defines functions of two vectors of `n` elements each, laid out as in `of_one`.
macro_rules! of_two {
    ($($name:ident: $t:ty => $kernel:ident,)*) => {
        $(
            /// # Safety
            /// The `n` elements of both vectors must be readable.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                n: usize,
                x: *const $t,
                incx: isize,
                y: *const $t,
                incy: isize,
            ) -> $t {
                // SAFETY: the caller's promise.
                let (x, y) = unsafe { (Vector::from_raw(x, incx, n), Vector::from_raw(y, incy, n)) };
                kernels().$kernel(x, y, &Processors)
            }
        )*
    };
}

of_two! {
    largesse_ddot: f64 => dot,
    largesse_sdot: f32 => dot,
    largesse_zdotu: Complex<f64> => dotu,
    largesse_cdotu: Complex<f32> => dotu,
    largesse_zdotc: Complex<f64> => dotc,
    largesse_cdotc: Complex<f32> => dotc,
}

macro_rules! axpy {
    ($($name:ident: $t:ty,)*) => {
        $(
            /// # Safety
            /// The `n` elements of both vectors must be readable and those of `y` writable; the vectors must be
            /// identical or disjoint.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                n: usize,
                a: $t,
                x: *const $t,
                incx: isize,
                y: *mut $t,
                incy: isize,
            ) {
                // SAFETY: the caller's promise.
                let (x, y) = unsafe { (Vector::from_raw(x, incx, n), VectorMut::from_raw(y, incy, n)) };
                kernels().axpy(a, x, y, &Processors);
            }
        )*
    };
}

axpy! {
    largesse_daxpy: f64,
    largesse_saxpy: f32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_steps_begin_at_the_end() {
        let (x, y) = ([1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 100.0, 1000.0]);
        // SAFETY: three elements of each.
        let dot = unsafe { largesse_ddot(3, x.as_ptr(), -2, y.as_ptr(), 1) };
        assert_eq!(dot, 50.0 + 300.0 + 1000.0);
        let mut y = y;
        // SAFETY: as above.
        unsafe { largesse_daxpy(3, 2.0, x.as_ptr(), 2, y.as_mut_ptr(), -1) };
        assert_eq!(y, [20.0, 106.0, 1002.0]);
    }

    #[test]
    fn complex_numbers_are_pairs() {
        let (x, y) = ([Complex { re: 1.0, im: 2.0 }], [Complex { re: 3.0, im: 5.0 }]);
        // SAFETY: one element of each.
        let (u, c) = unsafe {
            (largesse_zdotu(1, x.as_ptr(), 1, y.as_ptr(), 1), largesse_zdotc(1, x.as_ptr(), 1, y.as_ptr(), 1))
        };
        assert_eq!((u, c), (Complex { re: -7.0, im: 11.0 }, Complex { re: 13.0, im: -1.0 }));
    }
}
