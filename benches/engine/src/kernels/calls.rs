//! Calls Largesse's kernels on every instruction set, OpenBLAS's, plain loops, and the reference; times calls.

use super::case::{BlasKernel, Case, Operation, Vectors};
use crate::engine::*;
use Operation::{Asum, Axpy, Dot, Dotu, Nrm2, Sum, Sumsq};
use largesse_kernels::{Alone, Complex, Isa, Kernels, VectorMut, reference};
use largesse_machine::cycles::Counter;
use std::ffi::{CString, c_int, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// Factor of `daxpy`, small so that sums of many calls stay small.
const FACTOR: f64 = 1e-9;
/// Greatest number of elements for code without fused operations, which takes long.
const SLOW_UP_TO: usize = 1 << 20;
/// Least length of a sample, in seconds.
const SAMPLE: f64 = 200e-6;
/// Number of elements from which five turns suffice, since a call takes long.
const LONG: usize = 4 << 20;

/// A function that calls its kernel this many times and returns the last result; for `daxpy`, zeros.
type Call = Box<dyn Fn(Vectors, usize) -> [f64; 2]>;

/// One column of the table. If the kernel is ours, its bits must equal the reference's.
pub(super) struct Caller {
    pub(super) name: &'static str,
    pub(super) ours: bool,
    pub(super) call: Call,
}

/// The seconds of a call in the best turn, and the median of the turns divided by them, less 1.
pub(super) struct Time {
    pub(super) name: &'static str,
    pub(super) best: f64,
    pub(super) spread: f64,
}

/// A clock, and the number of turns in which callers are timed.
pub(super) struct Timer {
    pub(super) counter: Counter,
    pub(super) turns: u32,
}

impl Timer {
    /// Samples all callers in turns. A sample repeats calls that are shorter than [`SAMPLE`].
    pub(super) fn time<'c>(&self, all: impl IntoIterator<Item = &'c Caller>, vectors: Vectors) -> Vec<Time> {
        let contestant = |one: &'c Caller| {
            let call = move |calls| {
                let watch = self.counter.start();
                (one.call)(vectors, calls);
                self.counter.nanoseconds(watch.stop()) * 1e-9
            };
            let mut calls = 1;
            while call(calls) < SAMPLE {
                calls *= 2;
            }
            (one.name, Contestant::new(one.name, move || Ok(call(calls) / calls as f64)))
        };
        let (names, contestants): (Vec<_>, Vec<_>) = all.into_iter().map(contestant).unzip();
        let turns = if vectors.n >= LONG { self.turns.min(5) } else { self.turns };
        let samples = take_turns(&contestants, turns, |_, _, _| ());
        let times = names.into_iter().zip(samples).map(|(name, mut sample)| {
            sample.runs.sort_by(f64::total_cmp);
            let (best, middle) = (sample.runs[0], sample.runs[sample.runs.len() / 2]);
            Time { name, best, spread: middle / best - 1.0 }
        });
        times.collect()
    }
}

/// A library of kernels in C with the types of `cblas.h`, which is never linked. It stays loaded.
pub(super) struct Library {
    pub(super) name: &'static str,
    prefix: &'static str,
    handle: *mut c_void,
}

impl Library {
    fn open(name: &'static str, prefix: &'static str, file: &str) -> Option<Library> {
        let file = CString::new(file).ok()?;
        // SAFETY: the name is a C string, and the constructors are those of a numerical library.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW) };
        (!handle.is_null()).then_some(Library { name, prefix, handle })
    }

    /// Loads OpenBLAS if it is installed, and sets it to one thread.
    pub(super) fn open_blas() -> Result<Library> {
        let library = Library::open("openblas", "cblas_", "libopenblas.so.0");
        let library = library.ok_or("no libopenblas.so.0 (apt-get install libopenblas0-pthread)")?;
        let threads = "openblas_set_num_threads";
        let threads = library.symbol(threads).ok_or_else(|| format!("libopenblas.so.0 has no {threads}"))?;
        // SAFETY: the C function of this name has this type.
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(threads)(1) };
        Ok(library)
    }

    /// Compiles the plain loops of `benches/programs/c/kernels/loops.c` if there is a compiler.
    pub(super) fn loops(root: &Path) -> Result<Library> {
        let source = root.join("programs/c/kernels/loops.c");
        // The library runs in this process: other users must not be able to write to the folder.
        let folder = temp_dir()?;
        let made = folder.path().join("loops.so");
        let options = ["-O3", "-fPIC", "-shared", "-o"];
        let done = Command::new("gcc").args(options).arg(&made).arg(&source).arg("-lm").output();
        let done = done.map_err(|_| "no gcc (apt-get install gcc)")?;
        if !done.status.success() {
            return Err(format!("gcc {}: {}", source.display(), String::from_utf8_lossy(&done.stderr)));
        }
        let library = Library::open("gcc -O3", "plain_", &made.to_string_lossy());
        library.ok_or_else(|| format!("{} cannot be loaded", made.display()))
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the library is open, and the name is a C string.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    /// Returns the caller of a kernel; `None` if the library has no such function.
    fn caller(&self, kernel: BlasKernel) -> Option<Caller> {
        let find = |name: &str| self.symbol(&format!("{}{name}", self.prefix));
        let found = match kernel.operation {
            Dotu => find("zdotu_sub"),
            // OpenBLAS has no sum of squares, so the product of the vector with itself replaces it.
            Sumsq => find("dsumsq").or_else(|| find("ddot")),
            _ => find(kernel.name),
        };
        let call = foreign(kernel.operation, kernel.is_single(), found?);
        Some(Caller { name: self.name, ours: false, call })
    }

    /// Returns the caller of a function that sums doubles.
    pub(super) fn sum(&self, function: &str, name: &'static str) -> Option<Caller> {
        Some(Caller { name, ours: false, call: foreign(Sum, false, self.symbol(function)?) })
    }
}

/// Returns the callers that have the kernel of `case`.
pub(super) fn of(case: &Case, libraries: &[Library]) -> Vec<Caller> {
    let fast = |kernels: &Kernels| !matches!(kernels.isa(), Isa::Portable | Isa::Sse2);
    let all = Isa::ALL.into_iter().filter_map(Kernels::of);
    let all = all.filter(|kernels| case.n <= SLOW_UP_TO || fast(kernels));
    let peers = libraries.iter().filter_map(|library| library.caller(case.kernel));
    all.map(|kernels| ours(case.kernel, kernels)).chain(peers).collect()
}

/// Repeats `call`. The address passes through `black_box`, so that the compiler omits no call.
fn again(call: impl Fn(Vectors) -> [f64; 2] + 'static) -> Call {
    Box::new(move |vectors, times| {
        let mut last = [0.0; 2];
        for _ in 0..times {
            last = black_box(call(Vectors { x: black_box(vectors.x), ..vectors }));
        }
        last
    })
}

/// Returns the caller of Largesse's kernel `k`.
pub(super) fn ours(kernel: BlasKernel, k: Kernels) -> Caller {
    let call = match (kernel.operation, kernel.is_single()) {
        (Sum, true) => again(move |v| [f64::from(k.sum(v.x::<f32>(), &Alone)), 0.0]),
        (Sum, false) => again(move |v| [k.sum(v.x::<f64>(), &Alone), 0.0]),
        (Asum, _) => again(move |v| [k.asum(v.x::<f64>(), &Alone), 0.0]),
        (Sumsq, _) => again(move |v| [k.sumsq(v.x::<f64>(), &Alone), 0.0]),
        (Nrm2, _) => again(move |v| [k.nrm2(v.x::<f64>(), &Alone), 0.0]),
        (Dot, true) => again(move |v| [f64::from(k.dot(v.x::<f32>(), v.y::<f32>(), &Alone)), 0.0]),
        (Dot, false) => again(move |v| [k.dot(v.x::<f64>(), v.y::<f64>(), &Alone), 0.0]),
        (Axpy, _) => again(move |v| {
            // SAFETY: `y` has `n` elements, and no other code uses them.
            let y = unsafe { VectorMut::from_raw(v.y, 1, v.n) };
            k.axpy(FACTOR, v.x::<f64>(), y, &Alone);
            [0.0; 2]
        }),
        (Dotu, _) => again(move |v| {
            let dot = k.dotu(v.x::<Complex<f64>>(), v.y::<Complex<f64>>(), &Alone);
            [dot.re, dot.im]
        }),
    };
    Caller { name: k.isa().name(), ours: true, call }
}

/// Makes a call of the C function at an address: of this type, and with this answer.
macro_rules! c_call {
    ($address:expr, $type:ty, |$function:ident, $v:ident, $n:ident| $answer:expr) => {{
        // SAFETY: the function has this type (cblas.h, loops.c).
        let $function = unsafe { core::mem::transmute::<*mut c_void, $type>($address) };
        again(move |$v| {
            let $n = c_int::try_from($v.n).unwrap_or(c_int::MAX);
            // SAFETY: the vectors have `n` elements of the kernel's type, and no other code uses them.
            unsafe { $answer }
        })
    }};
}
type One<T> = unsafe extern "C" fn(c_int, *const T, c_int) -> T;
type Two<T> = unsafe extern "C" fn(c_int, *const T, c_int, *const T, c_int) -> T;
type Update = unsafe extern "C" fn(c_int, f64, *const f64, c_int, *mut f64, c_int);
type TwoComplex = unsafe extern "C" fn(c_int, *const f64, c_int, *const f64, c_int, *mut f64);

/// Returns the call of a C function at an address.
fn foreign(operation: Operation, is_single: bool, at: *mut c_void) -> Call {
    match (operation, is_single) {
        (Sum, true) => c_call!(at, One<f32>, |f, v, n| [f64::from(f(n, v.x.cast(), 1)), 0.0]),
        (Sum | Asum | Nrm2, _) => c_call!(at, One<f64>, |f, v, n| [f(n, v.x, 1), 0.0]),
        (Dot, true) => c_call!(at, Two<f32>, |f, v, n| {
            [f64::from(f(n, v.x.cast(), 1, v.y.cast_const().cast(), 1)), 0.0]
        }),
        (Dot, false) => c_call!(at, Two<f64>, |f, v, n| [f(n, v.x, 1, v.y, 1), 0.0]),
        (Sumsq, _) => c_call!(at, Two<f64>, |f, v, n| [f(n, v.x, 1, v.x, 1), 0.0]),
        (Axpy, _) => c_call!(at, Update, |f, v, n| {
            f(n, FACTOR, v.x, 1, v.y, 1);
            [0.0; 2]
        }),
        (Dotu, _) => c_call!(at, TwoComplex, |f, v, n| {
            let mut dot = [0.0; 2];
            f(n, v.x, 1, v.y, 1, dot.as_mut_ptr());
            dot
        }),
    }
}

/// Returns the reference's answer, and the sum of the addends' sizes.
pub(super) fn want(kernel: BlasKernel, v: Vectors) -> ([f64; 2], f64) {
    let best = Kernels::best();
    let norm = |x: &[f64]| best.nrm2(x, &Alone);
    let size = |x: &[f64]| best.asum(x, &Alone);
    let (answer, size) = match (kernel.operation, kernel.is_single()) {
        (Sum, true) => (reference::sum(v.x::<f32>()).into(), best.asum(v.x::<f32>(), &Alone).into()),
        (Sum, false) => (reference::sum(v.x()), size(v.x())),
        (Asum, _) => (reference::asum(v.x()), size(v.x())),
        (Sumsq, _) => (reference::sumsq(v.x()), best.sumsq(v.x::<f64>(), &Alone)),
        (Nrm2, _) => (reference::nrm2(v.x()), norm(v.x())),
        (Dot, true) => {
            let (x, y) = (v.x::<f32>(), v.y::<f32>());
            (reference::dot(x, y).into(), (best.nrm2(x, &Alone) * best.nrm2(y, &Alone)).into())
        }
        (Dot, false) => (reference::dot(v.x(), v.y()), norm(v.x()) * norm(v.y())),
        (Axpy, _) => {
            let mut new = v.y::<f64>().to_vec();
            reference::axpy(FACTOR, v.x(), &mut new);
            (reference::sum(&new), size(&new))
        }
        (Dotu, _) => {
            let dot = reference::dotu(v.x::<Complex<f64>>(), v.y::<Complex<f64>>());
            let numbers = Vectors { n: 2 * v.n, ..v };
            return ([dot.re, dot.im], norm(numbers.x()) * norm(numbers.y()));
        }
    };
    ([answer, 0.0], size)
}
