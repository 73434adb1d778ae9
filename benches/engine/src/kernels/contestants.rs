//! Defines the contestants: Largesse's kernels on every instruction set, OpenBLAS, a plain loop; each is a function
//! that calls its kernel repeatedly.

use super::case::{BlasKernel, Case};
use super::data::Vectors;
use super::loops::Loops;
use super::open_blas::OpenBlas;
use largesse_kernels::{Alone, Complex, Isa, Kernels, Vector, VectorMut};
use std::ffi::c_int;
use std::hint::black_box;
use std::path::Path;

/// Factor of `daxpy`, small so that sums of many calls stay small.
pub(super) const FACTOR: f64 = 1e-9;
/// Greatest number of elements for code without fused operations, which takes long.
const SLOW_UP_TO: usize = 1 << 20;

/// A function that calls its kernel this many times and returns the last result; for `daxpy`, zeros.
pub(super) type Call<'a> = dyn Fn(Vectors, usize) -> [f64; 2] + 'a;

pub(super) struct Contestant {
    pub(super) name: &'static str,
    /// Whether the kernel is Largesse's, whose bits must equal the reference's.
    pub(super) ours: bool,
    pub(super) run: Box<Call<'static>>,
}

/// The peers that are installed here, or why they are not.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) open_blas: Result<OpenBlas, String>,
    pub(super) loops: Result<Loops, String>,
}

impl Peers {
    pub(super) fn find(root: &Path) -> Peers {
        Peers { open_blas: OpenBlas::load(), loops: Loops::compile(root) }
    }

    /// Returns the names of the peers that are not installed, with the reason.
    pub(super) fn absent(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let blas = self.open_blas.as_ref().err().map(|why| ("openblas", why.as_str()));
        blas.into_iter().chain(self.loops.as_ref().err().map(|why| ("gcc -O3", why.as_str())))
    }
}

/// Returns the contestants that have the kernel of `case`.
pub(super) fn of(case: &Case, isas: &[Kernels], peers: &Peers) -> Vec<Contestant> {
    let kernel = case.kernel;
    let mut all: Vec<Contestant> = Vec::new();
    for kernels in isas {
        let slow = matches!(kernels.isa(), Isa::Portable | Isa::Sse2);
        if !slow || case.n <= SLOW_UP_TO {
            all.push(Contestant { name: kernels.isa().name(), ours: true, run: ours(kernel, *kernels) });
        }
    }
    let blas = peers.open_blas.as_ref().ok().and_then(|blas| open_blas(kernel, *blas));
    all.extend(blas.map(|run| Contestant { name: "openblas", ours: false, run }));
    let plain = peers.loops.as_ref().ok().map(|loops| plain(kernel, *loops));
    all.extend(plain.map(|run| Contestant { name: "gcc -O3", ours: false, run }));
    all
}

/// Repeats `call`. The address passes through `black_box`, so that the compiler omits no call.
fn again(call: impl Fn(Vectors) -> [f64; 2] + 'static) -> Box<Call<'static>> {
    Box::new(move |vectors, times| {
        let mut last = [0.0; 2];
        for _ in 0..times {
            last = black_box(call(Vectors { x: black_box(vectors.x), ..vectors }));
        }
        last
    })
}

fn ours(kernel: BlasKernel, k: Kernels) -> Box<Call<'static>> {
    // SAFETY (of all here): the vectors have `n` elements of the kernel's type, and no other code uses them.
    fn x<E>(v: Vectors) -> Vector<'static, E> {
        // SAFETY: as above.
        unsafe { Vector::from_raw(v.x.cast(), 1, v.n) }
    }
    fn y<E>(v: Vectors) -> Vector<'static, E> {
        // SAFETY: as above.
        unsafe { Vector::from_raw(v.y.cast_const().cast(), 1, v.n) }
    }
    match kernel {
        BlasKernel::Dsum => again(move |v| [k.sum(x::<f64>(v), &Alone), 0.0]),
        BlasKernel::Dasum => again(move |v| [k.asum(x::<f64>(v), &Alone), 0.0]),
        BlasKernel::Dsumsq => again(move |v| [k.sumsq(x::<f64>(v), &Alone), 0.0]),
        BlasKernel::Dnrm2 => again(move |v| [k.nrm2(x::<f64>(v), &Alone), 0.0]),
        BlasKernel::Ddot => again(move |v| [k.dot(x::<f64>(v), y(v), &Alone), 0.0]),
        BlasKernel::Ssum => again(move |v| [f64::from(k.sum(x::<f32>(v), &Alone)), 0.0]),
        BlasKernel::Sdot => again(move |v| [f64::from(k.dot(x::<f32>(v), y(v), &Alone)), 0.0]),
        BlasKernel::Daxpy => again(move |v| {
            // SAFETY: as above.
            let y = unsafe { VectorMut::from_raw(v.y, 1, v.n) };
            k.axpy(FACTOR, x(v), y, &Alone);
            [0.0; 2]
        }),
        BlasKernel::Zdotu => again(move |v| {
            let dot = k.dotu(x::<Complex<f64>>(v), y(v), &Alone);
            [dot.re, dot.im]
        }),
    }
}

/// Returns OpenBLAS's kernel; `None` if the build lacks the function.
fn open_blas(kernel: BlasKernel, blas: OpenBlas) -> Option<Box<Call<'static>>> {
    let n = |v: Vectors| c_int::try_from(v.n).unwrap_or(c_int::MAX);
    // SAFETY (of all here): as in `ours`; these are the functions' contracts.
    Some(match kernel {
        BlasKernel::Dsum => {
            let dsum = blas.dsum?;
            // SAFETY: as above.
            again(move |v| [unsafe { dsum(n(v), v.x, 1) }, 0.0])
        }
        BlasKernel::Ssum => {
            let ssum = blas.ssum?;
            // SAFETY: as above.
            again(move |v| [f64::from(unsafe { ssum(n(v), v.x.cast(), 1) }), 0.0])
        }
        // SAFETY: as above.
        BlasKernel::Dasum => again(move |v| [unsafe { (blas.dasum)(n(v), v.x, 1) }, 0.0]),
        // OpenBLAS has no sum of squares, so the product of the vector with itself replaces it.
        // SAFETY: as above.
        BlasKernel::Dsumsq => again(move |v| [unsafe { (blas.ddot)(n(v), v.x, 1, v.x, 1) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Dnrm2 => again(move |v| [unsafe { (blas.dnrm2)(n(v), v.x, 1) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Ddot => again(move |v| [unsafe { (blas.ddot)(n(v), v.x, 1, v.y, 1) }, 0.0]),
        BlasKernel::Sdot => again(move |v| {
            // SAFETY: as above.
            [f64::from(unsafe { (blas.sdot)(n(v), v.x.cast(), 1, v.y.cast(), 1) }), 0.0]
        }),
        BlasKernel::Daxpy => again(move |v| {
            // SAFETY: as above.
            unsafe { (blas.daxpy)(n(v), FACTOR, v.x, 1, v.y, 1) };
            [0.0; 2]
        }),
        BlasKernel::Zdotu => again(move |v| {
            let mut dot = [0.0; 2];
            // SAFETY: as above.
            unsafe { (blas.zdotu)(n(v), v.x, 1, v.y, 1, dot.as_mut_ptr()) };
            dot
        }),
    })
}

fn plain(kernel: BlasKernel, loops: Loops) -> Box<Call<'static>> {
    // SAFETY (of all here): as in `ours`; these are the functions' contracts.
    match kernel {
        // SAFETY: as above.
        BlasKernel::Dsum => again(move |v| [unsafe { (loops.dsum)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Dasum => again(move |v| [unsafe { (loops.dasum)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Dsumsq => again(move |v| [unsafe { (loops.dsumsq)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Dnrm2 => again(move |v| [unsafe { (loops.dnrm2)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Ddot => again(move |v| [unsafe { (loops.ddot)(v.n, v.x, v.y) }, 0.0]),
        // SAFETY: as above.
        BlasKernel::Ssum => again(move |v| [f64::from(unsafe { (loops.ssum)(v.n, v.x.cast()) }), 0.0]),
        BlasKernel::Sdot => again(move |v| {
            // SAFETY: as above.
            [f64::from(unsafe { (loops.sdot)(v.n, v.x.cast(), v.y.cast_const().cast()) }), 0.0]
        }),
        BlasKernel::Daxpy => again(move |v| {
            // SAFETY: as above.
            unsafe { (loops.daxpy)(v.n, FACTOR, v.x, v.y) };
            [0.0; 2]
        }),
        BlasKernel::Zdotu => again(move |v| {
            let mut dot = [0.0; 2];
            // SAFETY: as above.
            unsafe { (loops.zdotu)(v.n, v.x, v.y, dot.as_mut_ptr()) };
            dot
        }),
    }
}

/// Returns the sum of a step of the ladder as a repeated call.
pub(super) fn rung(sum: super::loops::One<f64>) -> Box<Call<'static>> {
    // SAFETY: the vector has `n` elements of the type, and no other code uses it.
    again(move |v| [unsafe { sum(v.n, v.x) }, 0.0])
}
