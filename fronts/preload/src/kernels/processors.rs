//! Finds out which processors the process may use.
//!
//! The affinity of the calling thread alone does not decide: OpenMP (`OMP_PROC_BIND`) and programs bind single threads,
//! the main one even before the library's constructor runs. The processors of the process are those that it had when it
//! asked for its first memory, or those that `largesse_pin` gave all of it later, and those of the main and the calling
//! thread. Once there is a worker thread, only that thread's affinity mask counts: it changes only together with the
//! masks of all threads, by a changed cpuset or by `taskset --all-tasks`.

use core::sync::atomic::{AtomicU64, Ordering};
use largesse_machine::{Bitmap, pin};

/// Bit set of the processors of the process, 64 per word; all words are 0 until [`remember`] is called.
static PROCESSORS: [AtomicU64; size_of::<pin::Mask>() / 8] = [const { AtomicU64::new(0) }; _];

/// Stores the calling thread's processors as those of the process. Is called by the first request for memory, before
/// constructors of other libraries bind threads, and after the whole process was pinned; so it allocates nothing.
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
