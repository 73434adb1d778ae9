//! Defines the kernels that are compared. For each it has the calls of Largesse's kernel, of the reference and of a
//! library in C.

use largesse_kernels::{Alone, Complex, Kernels, VectorMut, reference};
use std::ffi::{c_int, c_void};
use std::hint::black_box;

/// Factor `a` of `daxpy`, small so that the results of many calls in a row stay small.
const FACTOR: f64 = 1e-9;

/// The addresses of a case's vectors, and their number of elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors {
    pub(super) x: *const f64,
    pub(super) y: *mut f64,
    pub(super) n: usize,
}

impl Vectors {
    /// Returns `x` as elements of the kernel's type, or as the real and imaginary parts of complex elements.
    pub(super) fn x<E>(&self) -> &'static [E] {
        // SAFETY: only `Data` makes vectors, with room for `n` elements, and it outlives every use.
        unsafe { std::slice::from_raw_parts(self.x.cast(), self.n) }
    }

    /// Returns `y`, like [`Vectors::x`].
    pub(super) fn y<E>(&self) -> &'static [E] {
        Vectors { x: self.y, ..*self }.x()
    }
}

/// A function that calls its kernel the given number of times and returns the last result, or zeros for `daxpy`.
pub(super) type Call = Box<dyn Fn(Vectors, usize) -> [f64; 2]>;

/// A kernel under its BLAS name. An element has `element` bytes, and takes `flops` additions and multiplications.
#[derive(Clone, Copy)]
pub(super) struct BlasKernel {
    pub(super) name: &'static str,
    pub(super) formula: &'static str,
    pub(super) element: usize,
    pub(super) flops: f64,
    pub(super) vectors: usize,
    pub(super) ours: fn(Kernels) -> Call,
    /// Returns the reference's answer, and the sum of the absolute values of what is added, to which rounding errors
    /// are relative.
    pub(super) want: fn(Vectors) -> ([f64; 2], f64),
    /// Returns a [`Call`] of the C function at this address.
    pub(super) foreign: fn(*mut c_void) -> Call,
}

impl BlasKernel {
    pub(super) fn is_single(&self) -> bool {
        self.element == 4
    }

    /// Returns whether the kernel changes `y`.
    pub(super) fn updates(&self) -> bool {
        self.name == "daxpy"
    }

    /// Returns the number of bytes read and written for each element.
    pub(super) fn moved(&self) -> f64 {
        ((self.vectors + usize::from(self.updates())) * self.element) as f64
    }
}

type One<T> = unsafe extern "C" fn(c_int, *const T, c_int) -> T;
type Two<T> = unsafe extern "C" fn(c_int, *const T, c_int, *const T, c_int) -> T;
type Update = unsafe extern "C" fn(c_int, f64, *const f64, c_int, *mut f64, c_int);
type TwoComplex = unsafe extern "C" fn(c_int, *const f64, c_int, *const f64, c_int, *mut f64);

macro_rules! kernels {
    (|$k:ident, $v:ident, $f:ident, $n:ident| $($name:literal: $formula:literal, $element:literal, $flops:literal,
        $vectors:literal; ours $ours:expr; want $want:expr, $size:expr; foreign $type:ty, $foreign:expr;)*) => {
        /// All kernels, in the order of their tables.
        pub(super) const ALL: [BlasKernel; 9] = [$(BlasKernel {
            name: $name, formula: $formula, element: $element, flops: $flops, vectors: $vectors,
            ours: |$k| again(move |$v| $ours),
            want: |$v| ($want, $size),
            foreign: |address| {
                // SAFETY: the function has this type (cblas.h, loops.c).
                let $f = unsafe { core::mem::transmute::<*mut c_void, $type>(address) };
                again(move |$v| {
                    let $n = c_int::try_from($v.n).unwrap_or(c_int::MAX);
                    // SAFETY: the vectors have `n` elements of the kernel's type, and no other code uses them.
                    unsafe { $foreign }
                })
            },
        }),*];
    };
}

// Name: formula, bytes of an element, operations for each, vectors. `v` are the vectors, `f` is a function in C.
kernels! { |k, v, f, n|
    "dsum": "sum of x[i]", 8, 1.0, 1;
        ours real(k.sum(v.x::<f64>(), &Alone)); want real(reference::sum(v.x::<f64>())), asum(v.x());
        foreign One<f64>, real(f(n, v.x, 1));
    "dasum": "sum of |x[i]|", 8, 1.0, 1;
        ours real(k.asum(v.x::<f64>(), &Alone)); want real(reference::asum(v.x::<f64>())), asum(v.x());
        foreign One<f64>, real(f(n, v.x, 1));
    "dsumsq": "sum of x[i]^2", 8, 2.0, 1;
        ours real(k.sumsq(v.x::<f64>(), &Alone)); want real(reference::sumsq(v.x::<f64>())), norm(v.x()).powi(2);
        foreign Two<f64>, real(f(n, v.x, 1, v.x, 1));
    "dnrm2": "root of the sum of x[i]^2, safe", 8, 2.0, 1;
        ours real(k.nrm2(v.x::<f64>(), &Alone)); want real(reference::nrm2(v.x::<f64>())), norm(v.x());
        foreign One<f64>, real(f(n, v.x, 1));
    "ddot": "sum of x[i] * y[i]", 8, 2.0, 2;
        ours real(k.dot(v.x::<f64>(), v.y::<f64>(), &Alone));
        want real(reference::dot(v.x::<f64>(), v.y())), norm(v.x()) * norm(v.y());
        foreign Two<f64>, real(f(n, v.x, 1, v.y, 1));
    "daxpy": "y[i] = a * x[i] + y[i]", 8, 2.0, 2;
        ours {
            // SAFETY: `y` has `n` elements, and no other code uses them.
            let y = unsafe { VectorMut::from_raw(v.y, 1, v.n) };
            k.axpy(FACTOR, v.x::<f64>(), y, &Alone);
            [0.0; 2]
        };
        want {
            let mut new = v.y::<f64>().to_vec();
            reference::axpy(FACTOR, v.x(), &mut new);
            real(reference::sum(&new))
        }, FACTOR * asum(v.x()) + asum(v.y());
        foreign Update, { f(n, FACTOR, v.x, 1, v.y, 1); [0.0; 2] };
    "zdotu": "sum of x[i] * y[i], complex", 16, 8.0, 2;
        ours pair(k.dotu(v.x::<Complex<f64>>(), v.y::<Complex<f64>>(), &Alone));
        want pair(reference::dotu(v.x::<Complex<f64>>(), v.y())), {
            let parts = Vectors { n: 2 * v.n, ..v };
            norm(parts.x()) * norm(parts.y())
        };
        foreign TwoComplex, { let mut dot = [0.0; 2]; f(n, v.x, 1, v.y, 1, dot.as_mut_ptr()); dot };
    "ssum": "sum of x[i]", 4, 1.0, 1;
        ours real(k.sum(v.x::<f32>(), &Alone));
        want real(reference::sum(v.x::<f32>())), Kernels::best().asum(v.x::<f32>(), &Alone).into();
        foreign One<f32>, real(f(n, v.x.cast(), 1));
    "sdot": "sum of x[i] * y[i]", 4, 2.0, 2;
        ours real(k.dot(v.x::<f32>(), v.y::<f32>(), &Alone));
        want real(reference::dot(v.x::<f32>(), v.y())), {
            let norm = |x: &[f32]| f64::from(Kernels::best().nrm2(x, &Alone));
            norm(v.x()) * norm(v.y())
        };
        foreign Two<f32>, real(f(n, v.x.cast(), 1, v.y.cast_const().cast(), 1));
}

fn real(answer: impl Into<f64>) -> [f64; 2] {
    [answer.into(), 0.0]
}

fn pair(answer: Complex<f64>) -> [f64; 2] {
    [answer.re, answer.im]
}

fn asum(x: &[f64]) -> f64 {
    Kernels::best().asum(x, &Alone)
}

fn norm(x: &[f64]) -> f64 {
    Kernels::best().nrm2(x, &Alone)
}

/// Returns a function that repeats `call`. The address of `x` passes through `black_box`, so that the compiler omits no
/// call.
fn again(call: impl Fn(Vectors) -> [f64; 2] + 'static) -> Call {
    Box::new(move |vectors, times| {
        let once = |_| black_box(call(Vectors { x: black_box(vectors.x), ..vectors }));
        (0..times).map(once).last().unwrap_or_default()
    })
}
