//! Gives each new thread of a program a processor of its own, for `largesse pin --threads` (`liblargesse_pin.so`).
//!
//! # Picture
//! ```text
//!   pthread_create ──► this thread moves to the next processor of the list ──► the C library's pthread_create,
//!                      whose new thread inherits that ──► this thread moves back
//! ```
//! The processor is inherited rather than set in the new thread, so that no frame of this library lies below the
//! thread's function: `pthread_exit` and cancellation unwind through all frames.
//!
//! # Knows / does not know
//! Knows the list (`LARGESSE_THREAD_CPUS`, written by `largesse pin`). Does not know the heap: it works with and
//! without `liblargesse.so`, whose own threads may use all processors of the list.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Number of words in a mask of 8192 processors, the most that Linux for x86-64 is built for.
const WORDS: usize = 128;

type Mask = [u64; WORDS];
type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// Holds the processors of `LARGESSE_THREAD_CPUS`, one for each thread in turn.
static CPUS: OnceLock<Vec<u32>> = OnceLock::new();
/// Number of the next thread; `largesse pin` has put thread 0, which runs `main`, on the first processor.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// Starts a thread as the C library does, on the next processor of the list.
///
/// # Safety
/// The requirements are those of the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
    if next.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: every definition of this name has this signature.
    let create: Create = unsafe { core::mem::transmute(next) };
    let moved = Moved::to(&processors_for(start));
    // SAFETY: the caller's promise.
    let answer = unsafe { create(thread, attributes, start, argument) };
    drop(moved);
    answer
}

/// Returns the processors for the thread that will run `start`: the next one of the list, or all for a thread of
/// Largesse. Returns none if there is no list.
fn processors_for(start: Start) -> Vec<u32> {
    let cpus = CPUS.get_or_init(list);
    if cpus.is_empty() || belongs_to_largesse(start) {
        return cpus.clone();
    }
    // Relaxed: no other memory depends on the number.
    vec![cpus[NEXT.fetch_add(1, Ordering::Relaxed) % cpus.len()]]
}

#[expect(clippy::disallowed_methods, reason = "this library is a front, and this is its one setting")]
fn list() -> Vec<u32> {
    let text = std::env::var("LARGESSE_THREAD_CPUS").unwrap_or_default();
    // Numbers in the order of the threads, which a set does not keep.
    text.split(',').filter_map(|number| number.parse().ok()).collect()
}

/// Returns whether the function `start` is in `liblargesse.so`, whose threads do not count as the program's.
fn belongs_to_largesse(start: Start) -> bool {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut about: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is writable; `dladdr` accepts any address.
    if unsafe { libc::dladdr(start as *const c_void, &raw mut about) } == 0 || about.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the dynamic linker's name of a loaded object, which ends with a zero.
    let path = unsafe { CStr::from_ptr(about.dli_fname) }.to_bytes();
    // A program that is linked with the library has it under the name liblargesse.so.2.
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.starts_with(b"liblargesse.so"))
}

/// A guard that keeps the calling thread on other processors until it is dropped.
struct Moved {
    before: Mask,
}

impl Moved {
    /// Moves the calling thread to `cpus`; returns `None` if the list is empty or the kernel refuses.
    fn to(cpus: &[u32]) -> Option<Moved> {
        let (mut before, mut wanted) = ([0; WORDS], [0; WORDS]);
        for &cpu in cpus {
            *wanted.get_mut(cpu as usize / 64)? |= 1 << (cpu % 64);
        }
        // SAFETY: the mask has as many bytes as the call states.
        let known =
            unsafe { libc::sched_getaffinity(0, size_of_val(&before), (&raw mut before).cast()) } == 0;
        (!cpus.is_empty() && known && set(&wanted)).then_some(Moved { before })
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        set(&self.before);
    }
}

/// Moves the calling thread to the processors of `mask`. Returns whether the kernel did so.
#[expect(
    clippy::disallowed_methods,
    reason = "`largesse_machine::pin` starts a thread to word a refusal, which would come here again"
)]
fn set(mask: &Mask) -> bool {
    // SAFETY: the mask has as many bytes as the call states.
    unsafe { libc::sched_setaffinity(0, size_of_val(mask), mask.as_ptr().cast()) == 0 }
}
