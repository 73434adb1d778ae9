//! Calls Largesse's kernels on every instruction set, OpenBLAS's and plain loops, and times the calls.

use super::case::Case;
use super::kernel::{ALL, BlasKernel, Call, Vectors};
use crate::engine::*;
use largesse_kernels::{Isa, Kernels};
use largesse_machine::cycles::Counter;
use largesse_terminal::name;
use std::ffi::{CString, c_int, c_void};
use std::path::Path;

/// Greatest number of elements of vectors for kernels without fused operations, which are slow.
const SLOW_UP_TO: usize = 1 << 20;
/// Least duration of a sample, in seconds.
const SAMPLE: f64 = 200e-6;
/// Number of elements from which five turns suffice, because a call takes long.
const LONG: usize = 4 << 20;

/// One column of the table: what calls the kernel. If `ours`, it is Largesse's, and its bits must equal the
/// reference's.
pub(super) struct Caller {
    pub(super) name: &'static str,
    pub(super) ours: bool,
    pub(super) call: Call,
}

/// The name of something to be timed, and a function that does it the given number of times.
pub(super) type Work<'w> = (&'static str, Box<dyn Fn(usize) + 'w>);

/// The result of timing: `best` is the seconds of a call in the best turn; `spread` is the median of all turns divided
/// by `best`, less 1.
pub(super) struct Time {
    pub(super) name: String,
    pub(super) best: f64,
    pub(super) spread: f64,
}

/// A clock, and the number of turns in which work is timed.
pub(super) struct Timer {
    pub(super) counter: Counter,
    pub(super) turns: u32,
}

impl Caller {
    pub(super) fn work(&self, vectors: Vectors) -> Work<'_> {
        (self.name, Box::new(move |calls| _ = (self.call)(vectors, calls)))
    }
}

impl Timer {
    /// Times all work on vectors of `n` elements in turns. Work that is shorter than [`SAMPLE`] is repeated in a
    /// sample.
    pub(super) fn time<'w>(&self, n: usize, all: impl IntoIterator<Item = Work<'w>>) -> Vec<Time> {
        let contestant = |(name, work): Work<'w>| {
            let seconds = move |times| {
                let watch = self.counter.start();
                work(times);
                self.counter.nanoseconds(watch.stop()) * 1e-9
            };
            let mut times = 1;
            while seconds(times) < SAMPLE {
                times *= 2;
            }
            Contestant::new(name, move || Ok(seconds(times) / times as f64))
        };
        let contestants: Vec<_> = all.into_iter().map(contestant).collect();
        let turns = if n >= LONG { self.turns.min(5) } else { self.turns };
        let samples = take_turns(&contestants, turns, |one, _| (one.run)(), || ());
        let time = |Samples { name, mut runs, .. }: Samples<f64>| {
            runs.sort_by(f64::total_cmp);
            let (best, middle) = (runs[0], runs[runs.len() / 2]);
            Time { name, best, spread: middle / best - 1.0 }
        };
        samples.into_iter().map(time).collect()
    }
}

/// A library of kernels in C with the types of `cblas.h`. It is loaded at run time, and stays loaded.
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
        // The library runs in this process: other users must not be able to write to the folder.
        let folder = temp_dir()?;
        let made = compiled(root, "kernels/loops.c", &["-O3"], folder.path())?;
        let library = Library::open("gcc -O3", "plain_", &made.to_string_lossy());
        library.ok_or_else(|| format!("{} cannot be loaded", name(&made)))
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the library is open, and the name is a C string.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    /// Returns the caller of a kernel, or `None` if the library has no such function.
    fn caller(&self, kernel: BlasKernel) -> Option<Caller> {
        let find = |name: &str| self.symbol(&format!("{}{name}", self.prefix));
        let found = match kernel.name {
            "zdotu" => find("zdotu_sub"),
            // OpenBLAS has no sum of squares, so the product of the vector with itself replaces it.
            "dsumsq" => find("dsumsq").or_else(|| find("ddot")),
            name => find(name),
        };
        Some(Caller { name: self.name, ours: false, call: (kernel.foreign)(found?) })
    }

    /// Returns the caller of a function of the library that sums doubles.
    pub(super) fn sum(&self, function: &str, name: &'static str) -> Option<Caller> {
        Some(Caller { name, ours: false, call: (ALL[0].foreign)(self.symbol(function)?) })
    }
}

/// Returns a caller for each instruction set and library that has the kernel of `case`.
pub(super) fn of(case: &Case, libraries: &[Library]) -> Vec<Caller> {
    let fast = |kernels: &Kernels| !matches!(kernels.isa(), Isa::Portable | Isa::Sse2);
    let all = Isa::ALL.into_iter().filter_map(Kernels::of);
    let all = all.filter(|kernels| case.n <= SLOW_UP_TO || fast(kernels));
    let peers = libraries.iter().filter_map(|library| library.caller(case.kernel));
    all.map(|kernels| ours(case.kernel, kernels)).chain(peers).collect()
}

/// Returns the caller of Largesse's kernel on an instruction set.
pub(super) fn ours(kernel: BlasKernel, kernels: Kernels) -> Caller {
    Caller { name: kernels.isa().name(), ours: true, call: (kernel.ours)(kernels) }
}
