//! Ends the process with the program's last thread, although the library's service threads still run.
//!
//! The C library calls `exit(0)` when the last thread that it counts ends, and the kernel ends a process with its last
//! thread. Both count the service threads, which run as long as the process. So this file applies both rules to the
//! threads of the program alone:
//!
//! ```text
//!   first thread ── pthread_exit ──► destructor of its key: it is the last one ─► exit(0), here
//!        │                                                  else ─► noted
//!        └── any end ──► kernel frees LOCK ──► `watch`, until the program has no thread
//!                                               ├─ noted ─► exit(0), in a thread of the ordinary kind
//!                                               └─ else (the bare system call) ─► the same status, no handlers
//! ```
//! As long as the first thread lives, as in nearly all programs, the only cost is a thread that sleeps. Where another
//! thread loaded the library, so that the first one could not take the lock, `watch` looks at it ten times a second.

use crate::guard;
use crate::symbol::symbol;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut, without_provenance, without_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use core::time::Duration;
use largesse_machine::{service, thread};

/// Interval at which the threads are counted once the first one has ended: no event reports the end of another one.
const INTERVAL: Duration = Duration::from_millis(10);
/// Interval at which the first thread is looked at if it does not hold [`LOCK`].
const LATE_INTERVAL: Duration = Duration::from_millis(100);
/// Largest number of times that the C library calls a thread's destructors, which it repeats while they set values
/// (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const ROUNDS: usize = 4;
const NO_KEY: i64 = -1;

/// A robust mutex that the first thread holds as long as it lives: the kernel releases it, however the thread ends.
struct Lock(UnsafeCell<MaybeUninit<libc::pthread_mutex_t>>);

// SAFETY: the mutex is initialised while the process has one thread, and used through the C library's calls only.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(MaybeUninit::uninit()));
/// The key whose destructor runs in the first thread when it calls `pthread_exit`, or [`NO_KEY`].
static KEY: AtomicI64 = AtomicI64::new(NO_KEY);
/// Whether the first thread holds [`LOCK`].
static HELD: AtomicBool = AtomicBool::new(false);
/// Whether this process has a thread that waits for [`LOCK`].
static WATCHED: AtomicBool = AtomicBool::new(false);
/// Whether the first thread ended by `pthread_exit`.
static BY_PTHREAD_EXIT: AtomicBool = AtomicBool::new(false);

/// Holds the signals that the first thread blocked when it ended, or those of the thread that loaded the library if
/// that was another one.
struct Mask(UnsafeCell<MaybeUninit<libc::sigset_t>>);

// SAFETY: the first thread writes it before it sets `BY_PTHREAD_EXIT`, and others read it after that. If the first
// thread does not hold `LOCK`, the constructor wrote it before any thread of this file was started.
unsafe impl Sync for Mask {}

static MASK: Mask = Mask(UnsafeCell::new(MaybeUninit::uninit()));

/// Locks [`LOCK`] and creates [`KEY`] if the calling thread is the process's first one. Is called by the constructor
/// and in a forked child.
pub(crate) fn hold() {
    if largesse_pages::thread_id() != std::process::id() {
        return note_mask();
    }
    let mutex = LOCK.0.get().cast::<libc::pthread_mutex_t>();
    // SAFETY: this is the only thread: at the start, or in a forked child, where the C library has emptied the list of
    // robust mutexes, so that the inherited one is plain memory. The attributes are local, and the destructor lives as
    // long as this library, which is never unloaded.
    unsafe {
        let mut attributes: libc::pthread_mutexattr_t = core::mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes);
        libc::pthread_mutexattr_setrobust(&raw mut attributes, libc::PTHREAD_MUTEX_ROBUST);
        libc::pthread_mutex_init(mutex, &raw const attributes);
        let held = libc::pthread_mutex_lock(mutex) == 0;
        HELD.store(held, Ordering::Relaxed); // Relaxed, as all here: there is one thread
        let mut key = 0;
        if KEY.load(Ordering::Relaxed) == NO_KEY
            && libc::pthread_key_create(&raw mut key, Some(first_thread_exits)) == 0
        {
            KEY.store(key.into(), Ordering::Relaxed);
        }
        set_round(1);
    }
}

/// Stores the signals that the calling thread blocks in [`MASK`].
fn note_mask() {
    // SAFETY: no other thread uses the mask now, see `Mask`; a set of NULL only reads the present mask.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, null(), MASK.0.get().cast()) };
}

/// Resets the state of this file in a forked child, whose first thread is the forking one and which has no service
/// threads.
pub(crate) fn in_child() {
    service::forget();
    // Relaxed: there is one thread.
    WATCHED.store(false, Ordering::Relaxed);
    BY_PTHREAD_EXIT.store(false, Ordering::Relaxed);
    hold();
}

/// Starts the thread that notices the end of the program's last thread, before the process gets service threads: these
/// would keep it alive.
pub(crate) fn watch() {
    const STACK: usize = 64 << 10;
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // `outside`, because starting a thread allocates. If it fails, the process outlives the program's last thread.
        let _ = guard::outside(|| service::start(c"largesse-last", STACK, &[], wait_and_end));
    }
}

/// Sets the value of [`KEY`] in the calling thread: the number of the round in which its destructor is called next.
fn set_round(round: usize) {
    if let Ok(key) = libc::pthread_key_t::try_from(KEY.load(Ordering::Relaxed)) {
        // SAFETY: the key exists; the value is a number that is never used as an address.
        unsafe { libc::pthread_setspecific(key, without_provenance::<c_void>(round)) };
    }
}

/// Returns whether the program has no thread besides the first one, alive or not. Where `/proc` is unreadable, the C
/// library's counter decides, which excludes a thread that has called `pthread_exit`. Returns `false` if neither can be
/// read.
fn only_first() -> bool {
    let ours = service::running();
    let Some(threads) = thread::count() else {
        // Acquire: as in `wait_and_end`.
        let first = u32::from(!BY_PTHREAD_EXIT.load(Ordering::Acquire));
        return c_library_count().is_some_and(|threads| threads <= ours + first);
    };
    threads <= ours + 1
}

/// Returns whether the C library counts at most `threads` threads. It does not notice a thread that ends by the bare
/// system call. Returns `true` before glibc 2.34, whose counter only debuggers can find.
fn c_library_counts(threads: u32) -> bool {
    c_library_count().is_none_or(|counted| counted <= threads)
}

/// Returns the number of threads that the C library counts, if it shows its counter.
fn c_library_count() -> Option<u32> {
    let counter = symbol(c"__nptl_nthreads").cast::<AtomicU32>();
    // SAFETY: the symbol is a counter of 32 bits that the C library changes atomically.
    let counter = unsafe { counter.as_ref() };
    counter.map(|counter| counter.load(Ordering::Relaxed)) // Relaxed: nothing else is read
}

/// Runs as the destructor of [`KEY`] in the first thread after `pthread_exit`. The C library calls destructors in
/// rounds: this one sets the key again until the last round, when the program's own destructors have been called.
unsafe extern "C" fn first_thread_exits(round: *mut c_void) {
    if round.addr() < ROUNDS {
        return set_round(round.addr() + 1);
    }
    // Without service threads the C library ends the process itself.
    let ours = service::running();
    if ours != 0 && only_first() && c_library_counts(ours + 1) {
        // SAFETY: the C library calls `exit` at this point, too, when it counts no other thread.
        guard::outside(|| unsafe { libc::exit(0) });
    }
    note_mask();
    // Release: pairs with the Acquire in `wait_and_end`, so that it sees the mask.
    BY_PTHREAD_EXIT.store(true, Ordering::Release);
}

/// Waits for the end of the first thread. Returns whether it was the program's last one, or `None` if that cannot be
/// noticed, so that the process must not be ended.
fn wait_for_first() -> Option<bool> {
    // Relaxed: set before this thread was started.
    if HELD.load(Ordering::Relaxed) {
        // SAFETY: the mutex was initialised before this thread was started.
        let locked = unsafe { libc::pthread_mutex_lock(LOCK.0.get().cast()) };
        if locked != libc::EOWNERDEAD {
            return None; // the first thread has not ended
        }
        wait_for_starting();
        return Some(only_first());
    }
    let mut was_only = false;
    while !thread::first_has_ended()? {
        wait_for_starting();
        was_only = only_first();
        std::thread::sleep(LATE_INTERVAL);
    }
    Some(was_only)
}

/// Waits until every service thread is counted: one that is not would look like one of the program.
fn wait_for_starting() {
    while service::starting() != 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end of the first thread and then of all others of the program, and ends the process as they would.
fn wait_and_end() {
    let Some(first_was_last) = wait_for_first() else { return };
    while !only_first() {
        std::thread::sleep(INTERVAL);
    }
    // If the first thread does not hold the lock, the C library's counter alone says how it ended.
    // Acquire: pairs with the Release in `first_thread_exits`.
    let by_pthread_exit = BY_PTHREAD_EXIT.load(Ordering::Acquire) || !HELD.load(Ordering::Relaxed);
    if by_pthread_exit && c_library_counts(service::running()) {
        return exit_in_ordinary_thread();
    }
    // The status is that of the last thread, 0 for a thread that returned.
    let status = if first_was_last { thread::exit_status_of_first().unwrap_or(0) } else { 0 };
    // SAFETY: no preconditions; at the end of a last thread the kernel runs no exit handlers either.
    unsafe { libc::_exit(status) };
}

/// Calls `exit(0)` in a thread like those of the program, whose exit handlers may need a full stack and its signals.
fn exit_in_ordinary_thread() {
    extern "C" fn exit(_: *mut c_void) -> *mut c_void {
        // SAFETY: the mask was written before, see `Mask`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, MASK.0.get().cast(), null_mut()) };
        // SAFETY: no thread of the program is left.
        unsafe { libc::exit(0) }
    }
    guard::outside(|| {
        let mut thread: libc::pthread_t = 0;
        // SAFETY: the default attributes, and a function that needs no argument.
        let refused: c_int =
            unsafe { libc::pthread_create(&raw mut thread, null(), exit, without_provenance_mut(0)) };
        if refused != 0 {
            exit(null_mut());
        }
    });
}
