//! Who is measured: ours on every instruction set, OpenBLAS, a plain loop; each as a function that calls its
//! kernel again and again.

use super::case::{Case, Kernel};
use super::data::Vectors;
use super::loops::Loops;
use super::open_blas::OpenBlas;
use largesse_kernels::{Alone, Complex, Isa, Kernels, Vector, VectorMut};
use std::ffi::c_int;
use std::hint::black_box;
use std::path::Path;

/// The factor of `daxpy`: what is added again and again stays small.
pub(super) const FACTOR: f64 = 1e-9;
/// Elements above which code without fused operations is not worth the wait.
const SLOW_UP_TO: usize = 1 << 20;

/// Calls its kernel so many times and gives the last result; of `daxpy`, zeros.
pub(super) type Call<'a> = dyn Fn(Vectors, usize) -> [f64; 2] + 'a;

pub(super) struct Contestant {
    pub(super) name: &'static str,
    /// Its bits must be the reference's.
    pub(super) ours: bool,
    pub(super) run: Box<Call<'static>>,
}

/// Those that are installed here, or why not.
#[derive(Debug)]
pub(super) struct Peers {
    pub(super) open_blas: Result<OpenBlas, String>,
    pub(super) loops: Result<Loops, String>,
}

impl Peers {
    pub(super) fn find(root: &Path) -> Peers {
        Peers { open_blas: OpenBlas::load(), loops: Loops::compile(root) }
    }

    /// Names and reasons of those that are not.
    pub(super) fn absent(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let blas = self.open_blas.as_ref().err().map(|why| ("openblas", why.as_str()));
        blas.into_iter().chain(self.loops.as_ref().err().map(|why| ("gcc -O3", why.as_str())))
    }
}

/// Who can do this.
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

/// `call` so many times. The address goes through `black_box`, so that no call is left out.
fn again(call: impl Fn(Vectors) -> [f64; 2] + 'static) -> Box<Call<'static>> {
    Box::new(move |vectors, times| {
        let mut last = [0.0; 2];
        for _ in 0..times {
            last = black_box(call(Vectors { x: black_box(vectors.x), ..vectors }));
        }
        last
    })
}

fn ours(kernel: Kernel, k: Kernels) -> Box<Call<'static>> {
    // SAFETY (of all here): the vectors have `n` elements of the kernel's type, and nobody else has them.
    fn x<E>(v: Vectors) -> Vector<'static, E> {
        // SAFETY: as above.
        unsafe { Vector::from_raw(v.x.cast(), 1, v.n) }
    }
    fn y<E>(v: Vectors) -> Vector<'static, E> {
        // SAFETY: as above.
        unsafe { Vector::from_raw(v.y.cast_const().cast(), 1, v.n) }
    }
    match kernel {
        Kernel::Dsum => again(move |v| [k.sum(x::<f64>(v), &Alone), 0.0]),
        Kernel::Dasum => again(move |v| [k.asum(x::<f64>(v), &Alone), 0.0]),
        Kernel::Dsumsq => again(move |v| [k.sumsq(x::<f64>(v), &Alone), 0.0]),
        Kernel::Dnrm2 => again(move |v| [k.nrm2(x::<f64>(v), &Alone), 0.0]),
        Kernel::Ddot => again(move |v| [k.dot(x::<f64>(v), y(v), &Alone), 0.0]),
        Kernel::Ssum => again(move |v| [f64::from(k.sum(x::<f32>(v), &Alone)), 0.0]),
        Kernel::Sdot => again(move |v| [f64::from(k.dot(x::<f32>(v), y(v), &Alone)), 0.0]),
        Kernel::Daxpy => again(move |v| {
            // SAFETY: as above.
            let y = unsafe { VectorMut::from_raw(v.y, 1, v.n) };
            k.axpy(FACTOR, x(v), y, &Alone);
            [0.0; 2]
        }),
        Kernel::Zdotu => again(move |v| {
            let dot = k.dotu(x::<Complex<f64>>(v), y(v), &Alone);
            [dot.re, dot.im]
        }),
    }
}

/// `None` where a build lacks the function.
fn open_blas(kernel: Kernel, blas: OpenBlas) -> Option<Box<Call<'static>>> {
    let n = |v: Vectors| c_int::try_from(v.n).unwrap_or(c_int::MAX);
    // SAFETY (of all here): as in `ours`; these are the functions' contracts.
    Some(match kernel {
        Kernel::Dsum => {
            let dsum = blas.dsum?;
            // SAFETY: as above.
            again(move |v| [unsafe { dsum(n(v), v.x, 1) }, 0.0])
        }
        Kernel::Ssum => {
            let ssum = blas.ssum?;
            // SAFETY: as above.
            again(move |v| [f64::from(unsafe { ssum(n(v), v.x.cast(), 1) }), 0.0])
        }
        // SAFETY: as above.
        Kernel::Dasum => again(move |v| [unsafe { (blas.dasum)(n(v), v.x, 1) }, 0.0]),
        // It has no sum of squares.
        // SAFETY: as above.
        Kernel::Dsumsq => again(move |v| [unsafe { (blas.ddot)(n(v), v.x, 1, v.x, 1) }, 0.0]),
        // SAFETY: as above.
        Kernel::Dnrm2 => again(move |v| [unsafe { (blas.dnrm2)(n(v), v.x, 1) }, 0.0]),
        // SAFETY: as above.
        Kernel::Ddot => again(move |v| [unsafe { (blas.ddot)(n(v), v.x, 1, v.y, 1) }, 0.0]),
        Kernel::Sdot => again(move |v| {
            // SAFETY: as above.
            [f64::from(unsafe { (blas.sdot)(n(v), v.x.cast(), 1, v.y.cast(), 1) }), 0.0]
        }),
        Kernel::Daxpy => again(move |v| {
            // SAFETY: as above.
            unsafe { (blas.daxpy)(n(v), FACTOR, v.x, 1, v.y, 1) };
            [0.0; 2]
        }),
        Kernel::Zdotu => again(move |v| {
            let mut dot = [0.0; 2];
            // SAFETY: as above.
            unsafe { (blas.zdotu)(n(v), v.x, 1, v.y, 1, dot.as_mut_ptr()) };
            dot
        }),
    })
}

fn plain(kernel: Kernel, loops: Loops) -> Box<Call<'static>> {
    // SAFETY (of all here): as in `ours`; these are the functions' contracts.
    match kernel {
        // SAFETY: as above.
        Kernel::Dsum => again(move |v| [unsafe { (loops.dsum)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        Kernel::Dasum => again(move |v| [unsafe { (loops.dasum)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        Kernel::Dsumsq => again(move |v| [unsafe { (loops.dsumsq)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        Kernel::Dnrm2 => again(move |v| [unsafe { (loops.dnrm2)(v.n, v.x) }, 0.0]),
        // SAFETY: as above.
        Kernel::Ddot => again(move |v| [unsafe { (loops.ddot)(v.n, v.x, v.y) }, 0.0]),
        // SAFETY: as above.
        Kernel::Ssum => again(move |v| [f64::from(unsafe { (loops.ssum)(v.n, v.x.cast()) }), 0.0]),
        Kernel::Sdot => again(move |v| {
            // SAFETY: as above.
            [f64::from(unsafe { (loops.sdot)(v.n, v.x.cast(), v.y.cast_const().cast()) }), 0.0]
        }),
        Kernel::Daxpy => again(move |v| {
            // SAFETY: as above.
            unsafe { (loops.daxpy)(v.n, FACTOR, v.x, v.y) };
            [0.0; 2]
        }),
        Kernel::Zdotu => again(move |v| {
            let mut dot = [0.0; 2];
            // SAFETY: as above.
            unsafe { (loops.zdotu)(v.n, v.x, v.y, dot.as_mut_ptr()) };
            dot
        }),
    }
}

/// A step of the ladder.
pub(super) fn rung(sum: super::loops::One<f64>) -> Box<Call<'static>> {
    // SAFETY: as in `ours`.
    again(move |v| [unsafe { sum(v.n, v.x) }, 0.0])
}
