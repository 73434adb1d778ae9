//! Chooses the number of threads that a call uses: the program's setting, else that of `OMP_NUM_THREADS`, else one for
//! each processor of the process.

use crate::settings::options;
use crate::status::{BAD_ARGUMENT, OK};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use largesse_machine::{Bitmap, pin, process, service};

/// The most threads that a call uses, which is the number of parts that its work is divided into.
const MOST: usize = largesse_kernels::reference::PARTS;

/// Number of threads that the program set, 0 if it set none.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of threads for a call that begins now, 1 to [`MOST`].
pub(super) fn threads(worker: impl FnOnce() -> Option<u32>) -> usize {
    let chosen = match CHOSEN.load(Ordering::Relaxed) {
        0 => options().threads,
        number => Some(number),
    };
    chosen.unwrap_or_else(|| within_quota(&Bitmap::from_words(&process::mask(worker())))).clamp(1, MOST)
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
    let answer = service::ask(|| {
        let _ = pin::thread(processors);
        std::thread::available_parallelism().map_or(1, usize::from)
    });
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
