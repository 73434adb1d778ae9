//! `liblargesse_pin.so`: gives each new thread of a program a processor of its own, for `largesse pin --threads`.
//!
//! # Picture
//! ```text
//!   pthread_create ──► this thread moves to the next processor of the list ──► the C library's pthread_create,
//!                      whose new thread inherits that ──► this thread moves back
//! ```
//! The processor is inherited rather than set in the new thread, so that no frame of ours lies below the thread's
//! function: `pthread_exit` and cancellation unwind through every frame there is.
//!
//! # Knows / does not know
//! Knows the list (`LARGESSE_THREAD_CPUS`, written by `largesse pin`). Does not know the heap: it works with and
//! without `liblargesse.so`, whose own threads may use all processors of the list.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Words of a mask: 8192 processors, the most that Linux for x86-64 is built for.
const WORDS: usize = 128;

type Mask = [u64; WORDS];
type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// The list as `largesse pin` writes it: numbers separated by commas, one for each thread in turn.
static CPUS: OnceLock<Vec<u32>> = OnceLock::new();
/// Number of the next thread; `largesse pin` has put thread 0, which runs `main`, on the first processor.
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// Starts a thread as the C library does, on the next processor of the list.
///
/// # Safety
/// Those of the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the name ends with a zero.
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

/// Returns the processors of the thread that will run `start`; none if there is no list.
fn processors_for(start: Start) -> Vec<u32> {
    let cpus = CPUS.get_or_init(list);
    if cpus.is_empty() || belongs_to_largesse(start) {
        return cpus.clone();
    }
    // Relaxed: only the number counts, no other memory depends on it.
    vec![cpus[NEXT.fetch_add(1, Ordering::Relaxed) % cpus.len()]]
}

#[expect(clippy::disallowed_methods, reason = "this library is a front, and this is its one setting")]
fn list() -> Vec<u32> {
    let text = std::env::var("LARGESSE_THREAD_CPUS").unwrap_or_default();
    text.split(',').filter_map(|number| number.parse().ok()).collect()
}

/// Whether the code at `start` is that of `liblargesse.so`: its threads do not count as the program's.
fn belongs_to_largesse(start: Start) -> bool {
    // SAFETY: all zero bytes are a valid `Dl_info`.
    let mut about: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is ours; any address may be asked about.
    if unsafe { libc::dladdr(start as *const c_void, &raw mut about) } == 0 || about.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the dynamic linker's name of a loaded object, which ends with a zero.
    let path = unsafe { CStr::from_ptr(about.dli_fname) }.to_bytes();
    path.rsplit(|byte| *byte == b'/').next() == Some(b"liblargesse.so")
}

/// The calling thread is on other processors until this is dropped.
struct Moved {
    before: Mask,
}

impl Moved {
    /// Moves the calling thread; `None` when it stays where it is: an empty list, or the kernel refuses.
    fn to(cpus: &[u32]) -> Option<Moved> {
        let (mut before, mut wanted) = ([0; WORDS], [0; WORDS]);
        for &cpu in cpus {
            *wanted.get_mut(cpu as usize / 64)? |= 1 << (cpu % 64);
        }
        // SAFETY: the mask has as many bytes as the kernel is told.
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
    // SAFETY: the mask has as many bytes as the kernel is told.
    unsafe { libc::sched_setaffinity(0, size_of_val(mask), mask.as_ptr().cast()) == 0 }
}
