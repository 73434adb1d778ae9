//! Defines the table of kernels of an instruction set with fused multiply-add, from its registers and their number.
//!
//! The file of each instruction set imports the names that the macro uses from `super::prelude`.

/// Defines the functions of one element type for an instruction set with fused multiply-add. `$n` registers of type
/// `$v` hold the lanes, and `$a` of them are processed at a time (half as many for complex numbers). For long vectors
/// `$far` registers of type `$w` do, `$together` at a time. `$g` registers are loaded before the first of them is
/// added. The number of rows from which a vector is long depends on the kernel. `axpy` uses `$k` registers of type
/// `$half` at a time.
macro_rules! fused {
    (
        $t:ty, $features:literal, $v:ty, lanes $n:literal, at_once $a:literal,
        long $w:ty, lanes $far:literal, at_once $together:literal,
        reads $g:literal,
        from dot $dot:literal, sum $sum:literal, asum $asum:literal, sumsq $sumsq:literal, complex $complex:literal,
        axpy $k:literal of $half:ty, $shifts:ty
    ) => {{
        by_length!($features, fn sum(x: *const $t, n: usize) -> $t {
            if n <= <$t>::LANES / 2 => reduce::short_one::<$v, Itself, { $n / 2 }>(x, n),
            if n < $sum * <$t>::LANES => reduce::one::<$v, Itself, $n, $a, $g>(x, n),
            else reduce::one::<$w, Itself, $far, $together, $g>(x, n),
        });
        by_length!($features, fn asum(x: *const $t, n: usize) -> $t {
            if n <= <$t>::LANES / 2 => reduce::short_one::<$v, Absolute, { $n / 2 }>(x, n),
            if n < $asum * <$t>::LANES => reduce::one::<$v, Absolute, $n, $a, $g>(x, n),
            else reduce::one::<$w, Absolute, $far, $together, $g>(x, n),
        });
        by_length!($features, fn sumsq(x: *const $t, n: usize) -> $t {
            if n <= <$t>::LANES / 2 => reduce::short_one::<$v, Square, { $n / 2 }>(x, n),
            if n < $sumsq * <$t>::LANES => reduce::one::<$v, Square, $n, $a, $g>(x, n),
            else reduce::one::<$w, Square, $far, $together, $g>(x, n),
        });
        by_length!($features, fn dot(x: *const $t, y: *const $t, n: usize) -> $t {
            if n <= <$t>::LANES / 2 => reduce::short_two::<$v, { $n / 2 }>(x, y, n),
            if n < $dot * <$t>::LANES => reduce::two::<$v, $shifts, $n, $a, $g>(x, y, n),
            else reduce::two::<$w, $shifts, $far, $together, $g>(x, y, n),
        });
        #[inline(never)]
        #[target_feature(enable = $features)]
        unsafe fn products(x: *const $t, y: *const $t, n: usize) -> [$t; 4] {
            // SAFETY: the caller's promise, and this function's instruction set.
            unsafe { reduce::products::<$w, { $far / 2 }, { $together / 2 }, $g>(x, y, n) }
        }
        by_length!($features, fn dot_complex(x: *const $t, y: *const $t, n: usize, conjugate: bool) -> ($t, $t) {
            if 2 * n <= <$t>::LANES / 4 =>
                of_products(reduce::short_products::<$v, { $n / 4 }>(x, y, n), conjugate),
            if 2 * n < $complex * <$t>::LANES =>
                of_products(reduce::products::<$v, { $n / 2 }, { $a / 2 }, $g>(x, y, n), conjugate),
            else of_products(products(x, y, n), conjugate),
        });
        #[inline(never)]
        #[target_feature(enable = $features)]
        unsafe fn by_one(a: $t, x: *const $t, y: *mut $t, n: usize) {
            // SAFETY: the caller's promise, and this function's instruction set.
            unsafe { axpy::one_by_one(a, x, y, n) };
        }
        by_length!($features, fn axpy(a: $t, x: *const $t, y: *mut $t, n: usize) -> () {
            if n < axpy::ALIGN_FROM => axpy::short::<$half, $k>(a, x, y, n, by_one),
            else axpy::axpy::<$half, $shifts, $k>(a, x, y, n, by_one),
        });
        KernelTable {
            sum,
            asum,
            sumsq,
            sumsq_far: sumsq,
            dot,
            dot_complex,
            products,
            axpy,
            strided: strided!($t, $features),
        }
    }};
}
pub(super) use fused;

/// Defines the functions for vectors with steps: plain code, compiled for an instruction set.
macro_rules! strided {
    ($t:ty, $features:literal) => {{
        #[target_feature(enable = $features)]
        fn sum(x: Vector<'_, $t>) -> $t {
            portable::sum::<$t, { <$t>::LANES }>(x)
        }
        #[target_feature(enable = $features)]
        fn asum(x: Vector<'_, $t>) -> $t {
            portable::asum::<$t, { <$t>::LANES }>(x)
        }
        #[target_feature(enable = $features)]
        fn sumsq(x: Vector<'_, $t>) -> $t {
            portable::sumsq::<$t, { <$t>::LANES }>(x)
        }
        #[target_feature(enable = $features)]
        fn sumsq_scaled(x: Vector<'_, $t>, scale: $t) -> $t {
            portable::sumsq_scaled::<$t, { <$t>::LANES }>(x, scale)
        }
        #[target_feature(enable = $features)]
        fn extremes(x: Vector<'_, $t>) -> [$t; 2] {
            portable::extremes(x)
        }
        #[target_feature(enable = $features)]
        fn dot(x: Vector<'_, $t>, y: Vector<'_, $t>) -> $t {
            portable::dot::<$t, { <$t>::LANES }>(x, y)
        }
        #[target_feature(enable = $features)]
        fn products(x: Vector<'_, Complex<$t>>, y: Vector<'_, Complex<$t>>) -> [$t; 4] {
            portable::products::<$t, { <$t>::LANES / 4 }>(x, y)
        }
        #[target_feature(enable = $features)]
        fn axpy(a: $t, x: Vector<'_, $t>, y: &VectorMut<'_, $t>) {
            portable::axpy(a, x, y);
        }
        Strided { sum, asum, sumsq, sumsq_scaled, extremes, dot, products, axpy }
    }};
}
pub(super) use strided;
