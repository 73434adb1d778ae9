//! Chooses the number of threads that a call uses: the program's setting, else that of `OMP_NUM_THREADS`, else one for
//! each processor of the process.
//!
//! The affinity of the calling thread alone does not decide: OpenMP (`OMP_PROC_BIND`) and programs bind single threads,
//! the main one even before the library's constructor runs. The processors of the process are those that it had when it
//! asked for its first memory, or those that `largesse_pin` gave all of it later, and those of the main and the calling
//! thread. Once there is a worker thread, only its mask counts: it changes only with those of all threads, by a changed
//! cpuset or by `taskset --all-tasks`.

use crate::control::{BAD_ARGUMENT, OK};
use crate::start;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use largesse_machine::{Bitmap, pin};

/// The most threads that a call uses, which is the number of parts that its work is divided into.
const MOST: usize = largesse_kernels::reference::PARTS;

/// Bit set of the processors of the process, 64 per word; all words are 0 until [`remember`] is called.
static PROCESSORS: [AtomicU64; size_of::<pin::Mask>() / 8] = [const { AtomicU64::new(0) }; _];

/// Number of threads that the program set, 0 if it set none.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Stores the calling thread's processors as those of the process. Allocates nothing: called by the first request for
/// memory, before constructors of other libraries bind threads, and after the whole process was pinned.
#[cold]
pub(crate) fn remember() {
    if let Ok(mask) = pin::mask_of(0) {
        // Relaxed: in a mask that is read while it changes, each word is the old or the new one, and both are right.
        PROCESSORS.iter().zip(mask).for_each(|(word, now)| word.store(now, Ordering::Relaxed));
    }
}

/// Returns the affinity mask of the worker thread if there is one. Otherwise returns the union of the remembered mask
/// and the present masks of the main thread and the calling thread.
pub(super) fn of_process(worker: Option<u32>) -> Bitmap {
    let of_thread = |thread| pin::mask_of(thread).map(|mask| Bitmap::from_words(&mask)).ok();
    if let Some(mask) = worker.and_then(of_thread) {
        return mask;
    }
    let words = PROCESSORS.each_ref().map(|word| word.load(Ordering::Relaxed));
    // The main thread's mask shows processors that an administrator has added since then.
    let threads = [std::process::id(), 0].into_iter().filter_map(of_thread);
    threads.fold(Bitmap::from_words(&words), |all, one| all.or(&one))
}

/// Returns the number of threads for a call that begins now, 1 to [`MOST`].
pub(super) fn threads(worker: impl FnOnce() -> Option<u32>) -> usize {
    let chosen = match CHOSEN.load(Ordering::Relaxed) {
        0 => start::options().threads,
        number => Some(number),
    };
    chosen.unwrap_or_else(|| within_quota(&of_process(worker()))).clamp(1, MOST)
}

/// Returns the number of processors, or the smaller number that the CPU quota of the control group amounts to. The
/// result is cached until the number of processors changes.
fn within_quota(processors: &Bitmap) -> usize {
    /// Number of processors in the upper 32 bits, and the result for it in the lower 32 bits.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let number = processors.len().min(MOST) as u64;
    // Relaxed: no other data depends on this word.
    let known = KNOWN.load(Ordering::Relaxed);
    if known >> 32 == number {
        return known as u32 as usize;
    }
    // The standard library reads quotas, but counts the processors of the calling thread, so a thread bound to all of
    // them asks.
    let processors = processors.clone();
    let ask = move || {
        let _ = pin::thread(&processors);
        std::thread::available_parallelism().map_or(1, usize::from)
    };
    let answer = std::thread::Builder::new().spawn(ask).ok().and_then(|thread| thread.join().ok());
    let answer = answer.unwrap_or(number as usize).min(MOST);
    KNOWN.store(number << 32 | answer as u64, Ordering::Relaxed);
    answer
}

/// Sets the number of threads that later calls use; 0 selects `OMP_NUM_THREADS` or the processors of the process.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_set_threads(threads: c_int) -> c_int {
    match usize::try_from(threads) {
        Ok(number) => {
            CHOSEN.store(number, Ordering::Relaxed);
            OK
        }
        Err(_) => BAD_ARGUMENT,
    }
}

/// Returns the number of threads that a long call would use now.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_threads() -> c_int {
    threads(super::team::worker) as c_int
}
