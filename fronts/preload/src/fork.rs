//! `fork`: nobody is inside the heap meanwhile, and a child never depends on the hugetlb pool.
//!
//! A child that writes to a hugetlb page it shares with its parent needs a free page of the pool and
//! is killed when there is none; a parent that writes while the child still shares the page takes
//! it from the child. So the child copies its blocks to ordinary pages, and the parent waits. Other
//! threads of the parent do not wait: a page that one of them took away meanwhile is asked for.
//!
//! ```text
//!   child ── address of a lost span, or 0: done ──► parent (in its handler)
//!         ◄──────────── the span's bytes ──────────
//! ```

use crate::ground::Ground;
use crate::serve::LargeHeap;
use crate::signals::Blocked;
use crate::slots::enumeration;
use crate::{far_fork, helper, last_thread, private, record, serve};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The two ends of a pair of sockets, -1 when there is none. The heap's lock, which is kept across
/// `fork`, orders forks of several threads.
static ENDS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
const PARENT: usize = 0;
const CHILD: usize = 1;

/// Everything that the forking thread holds from [`before`] to [`in_parent`] or [`in_child`].
struct Forking {
    heap: Keeping,
    /// Far memory at rest, if there is any.
    far: Option<far_fork::Resting>,
    private: private::Held,
    /// No handler of the program may run before all is released: it could fork, too.
    signals: Blocked,
}

/// The forking thread's hold on the heap.
#[derive(Clone, Copy)]
enum Keeping {
    /// There was no heap. Another thread may make one before the fork is over.
    NoHeap,
    /// The thread holds its lock.
    Heap(&'static LargeHeap),
    /// The thread forks in a signal handler that interrupted a call of the heap. That call goes on in parent and child when
    /// the handler returns, with the lock that it holds.
    Interrupted,
}

struct Slot(UnsafeCell<Option<Forking>>);

// SAFETY: only the thread that holds the lock of `private`, which is in the slot, uses it.
unsafe impl Sync for Slot {}

static FORKING: Slot = Slot(UnsafeCell::new(None));

fn slot() -> &'static mut Option<Forking> {
    // SAFETY: as `Sync` says; callers use the reference at once and drop it.
    unsafe { &mut *FORKING.0.get() }
}

/// Ask to be told of forks; once, and before anybody else asks.
pub(crate) fn watch() {
    static WATCHING: AtomicBool = AtomicBool::new(false);
    if !WATCHING.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers live as long as this library, which is never unloaded.
        unsafe { far_fork::register(Some(before), Some(in_parent), Some(in_child), null_mut()) };
    }
}

/// How often to look whether other threads are done, with the heap or the dynamic linker: a second or two in all.
const PATIENCE: u32 = 10_000;

/// For good would be too long: they may wait for something that this thread holds.
fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..PATIENCE {
        if done() {
            break;
        }
        // SAFETY: sleeping has no preconditions.
        unsafe { libc::usleep(100) };
    }
}

unsafe extern "C" fn before() {
    let signals = Blocked::handlers();
    wait_until(|| serve::heap().is_some() || serve::no_heap_while_forking());
    enumeration::forbid();
    wait_until(enumeration::is_over);
    let heap = keep_heap();
    // Far memory is never interrupted: its calls block signals.
    let far = if let Keeping::Heap(_) = heap { far_fork::before() } else { None };
    let private = private::hold();
    *slot() = Some(Forking { heap, far, private, signals });
}

fn keep_heap() -> Keeping {
    let Some(heap) = serve::heap() else { return Keeping::NoHeap };
    if heap.is_interrupted() {
        return Keeping::Interrupted;
    }
    heap.before_fork();
    if heap.has_pool_pages() {
        connect();
    }
    Keeping::Heap(heap)
}

unsafe extern "C" fn in_parent() {
    let Some(Forking { heap, far, private, signals }) = slot().take() else { return };
    drop(private);
    enumeration::allow();
    serve::fork_is_over();
    if let Keeping::Heap(heap) = heap {
        close(CHILD);
        // Ends when the child says so, or dies: then nobody holds the other end.
        while let Some(lost @ 1..) = receive_address() {
            send(PARENT, core::ptr::with_exposed_provenance(lost), largesse_pages::SPAN);
        }
        close(PARENT);
        far_fork::in_parent(far);
        heap.after_fork_in_parent();
    }
    drop(signals);
}

unsafe extern "C" fn in_child() {
    let Some(Forking { heap, far, private, signals }) = slot().take() else { return };
    drop(private);
    enumeration::reset_in_child();
    serve::fork_is_over();
    helper::forget();
    last_thread::in_child();
    record::in_child();
    match heap {
        Keeping::Heap(heap) => in_child_with(heap, far),
        Keeping::NoHeap => {
            far_fork::not_held();
            serve::after_fork_without_heap();
        }
        Keeping::Interrupted => {}
    }
    drop(signals);
}

fn in_child_with(heap: &LargeHeap, far: Option<far_fork::Resting>) {
    close(PARENT);
    heap.after_fork_in_child();
    far_fork::in_child(far);
    let mut lost = |to, from: usize, len| {
        let address = from.to_ne_bytes();
        send(CHILD, address.as_ptr(), address.len()) && receive(CHILD, to, len)
    };
    if let Some(near) = serve::ground().and_then(Ground::near) {
        // SAFETY: only this thread exists in the child.
        heap.demote_in_child(|first, spans| unsafe { near.demote(first, spans, &mut lost) });
    }
    let done = 0_usize.to_ne_bytes();
    send(CHILD, done.as_ptr(), done.len());
    close(CHILD);
}

fn connect() {
    let mut ends: [c_int; 2] = [-1, -1];
    // SAFETY: room for two descriptors. Without them the parent does not wait.
    unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) };
    for (end, fd) in ENDS.iter().zip(ends) {
        end.store(fd, Ordering::Relaxed); // Relaxed: under the heap's lock
    }
}

fn close(end: usize) {
    let fd = ENDS[end].swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(fd) };
    }
}

fn receive_address() -> Option<usize> {
    let mut bytes = [0_u8; size_of::<usize>()];
    receive(PARENT, NonNull::from(&mut bytes).cast(), bytes.len()).then(|| usize::from_ne_bytes(bytes))
}

/// Read exactly `len` bytes; `false` when the other side is gone.
fn receive(end: usize, into: NonNull<u8>, len: usize) -> bool {
    let fd = ENDS[end].load(Ordering::Relaxed);
    transfer(len, |done| {
        // SAFETY: callers hand in room for `len` bytes, and `done < len`.
        unsafe { libc::read(fd, into.as_ptr().add(done).cast(), len - done) }
    })
}

/// Write exactly `len` bytes; `false` when the other side is gone (and no SIGPIPE for the program).
fn send(end: usize, from: *const u8, len: usize) -> bool {
    let fd = ENDS[end].load(Ordering::Relaxed);
    transfer(len, |done| {
        // SAFETY: callers hand in `len` readable bytes, and `done < len`.
        unsafe { libc::send(fd, from.add(done).cast(), len - done, libc::MSG_NOSIGNAL) }
    })
}

fn transfer(len: usize, mut step: impl FnMut(usize) -> isize) -> bool {
    let mut done = 0;
    while done < len {
        match usize::try_from(step(done)) {
            Ok(0) => return false,
            Ok(more) => done += more,
            // SAFETY: the location is this thread's and always valid.
            Err(_) if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            Err(_) => return false,
        }
    }
    true
}
