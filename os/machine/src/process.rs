//! Finds out which processors the process may use.
//!
//! They are those of its main thread: `taskset -p`, a cpuset and a program that confines itself by
//! `sched_setaffinity(0, …)` change these. An affinity that binds the main thread alone does not count, though: then the
//! processors are those that the process had before, or those of a thread of the library, which nothing binds alone.
//! Nothing here allocates.

use crate::affinity::{self, ME, Mask, WORDS};
use crate::thread;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

type Stored = [AtomicU64; WORDS];

/// Bit set of the processors that the process had before its main thread was bound.
static GIVEN: Stored = [const { AtomicU64::new(0) }; WORDS];
/// Bit set of the processors to which the main thread alone was bound last; all words are 0 if it was not.
static BOUND: Stored = [const { AtomicU64::new(0) }; WORDS];
/// Whether a runtime binds each thread of the program, the main one included, by calls that are not seen here.
static THREADS_ARE_BOUND: AtomicBool = AtomicBool::new(false);

/// Stores the calling thread's processors as those of the process. It must be called at the start, before libraries bind
/// threads, and again each time the whole process was pinned.
#[cold]
pub fn remember() {
    if let Ok(mask) = affinity::get(ME) {
        store(&GIVEN, &mask);
    }
}

/// Declares that a runtime binds each thread of the program: to `processors`, or if there are none, to those that
/// [`remember`] has stored.
pub fn declare_threads_bound(processors: impl IntoIterator<Item = u32>) {
    let mut given = [0; WORDS];
    for number in processors {
        if let Some(word) = given.get_mut(number as usize / 64) {
            *word |= 1 << (number % 64);
        }
    }
    if given != [0; WORDS] {
        store(&GIVEN, &given);
    }
    THREADS_ARE_BOUND.store(true, Ordering::Relaxed); // Relaxed: as in `store`
}

/// Calls `bind`, which binds the calling thread alone. If that is the main thread, the processors of the process remain
/// those that it had before.
pub fn binding_one_thread<T>(bind: impl FnOnce() -> T) -> T {
    let is_main = thread::id() == std::process::id();
    let before = is_main.then(|| mask(None));
    let answer = bind();
    if let (Some(before), Ok(now)) = (before, affinity::get(ME)) {
        let is_free = before.iter().zip(&now).all(|(before, now)| before & !now == 0);
        store(&GIVEN, &before);
        store(&BOUND, if is_free { &[0; WORDS] } else { &now });
    }
    answer
}

/// Returns the processors of the process. If the main thread is bound alone, these are the processors of `thread`, the
/// number of a thread of the library.
#[must_use]
pub fn mask(thread: Option<u32>) -> Mask {
    // SAFETY: no preconditions.
    let main = affinity::get(unsafe { libc::getpid() }).or_else(|_| affinity::get(ME));
    let bound = load(&BOUND);
    match main {
        Ok(main) if main != bound && !THREADS_ARE_BOUND.load(Ordering::Relaxed) => main,
        _ => {
            let thread = thread.and_then(|thread| affinity::get(i32::try_from(thread).ok()?).ok());
            thread.unwrap_or_else(|| {
                // The main thread may have got a processor that an administrator has added.
                let (mut all, main) = (load(&GIVEN), main.unwrap_or([0; WORDS]));
                all.iter_mut().zip(main).for_each(|(word, more)| *word |= more);
                all
            })
        }
    }
}

/// Lets the calling thread run on these processors, except those that a cpuset forbids. A thread that already may is
/// left alone: the kernel keeps to an affinity that was set once, even if a cpuset grows.
pub fn adopt(mask: &Mask) {
    if affinity::get(ME).is_ok_and(|now| now != *mask) {
        // A thread on the wrong processors is slower, and nothing else.
        let _ = affinity::set(ME, mask);
    }
}

fn store(stored: &Stored, mask: &Mask) {
    // Relaxed: in a mask that is read while it changes, each word is the old or the new one, and both are right.
    stored.iter().zip(mask).for_each(|(word, now)| word.store(*now, Ordering::Relaxed));
}

fn load(stored: &Stored) -> Mask {
    stored.each_ref().map(|word| word.load(Ordering::Relaxed)) // Relaxed: as in `store`
}
