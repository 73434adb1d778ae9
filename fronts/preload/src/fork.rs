//! Handles `fork`: no other thread is inside the heap during it, and a child needs no page of the hugetlb pool.
//!
//! A child that writes to a hugetlb page it shares with its parent needs a free page of the pool and
//! is killed when there is none; a parent that writes while the child still shares the page takes
//! it from the child. So the child copies its blocks to ordinary pages while the forking thread waits. Other threads of
//! the parent go on: when one of them takes a page from the child, the child asks the forking thread for its bytes.
//!
//! ```text
//!   child ── address of a lost span, or 0: done ──► parent (in its handler)
//!         ◄──────────── the span's bytes ──────────
//! ```

use crate::backing::HeapBacking;
use crate::heap::{LargeHeap, backing, heap};
use crate::in_progress::{self, CallsInProgress};
use crate::near_calls::{self, NearCalls};
use crate::near_mappings::{self, NearMappings};
use crate::signals::Blocked;
use crate::slots::enumeration;
use crate::{
    family, far_fork, forked, helper, io, last_thread, limit_state, make, private, record, small, spill,
};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, Ordering};
use std::sync::MutexGuard;

/// Sockets by which a forked child asks its parent for the contents of the spans that it lost: the parent's end and the
/// child's end, -1 while there are none. The heap's lock, which is held across `fork`, keeps other threads from using
/// them.
static ENDS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];
const PARENT: usize = 0;
const CHILD: usize = 1;

/// Collects everything that the forking thread holds from [`before`] to [`in_parent`] or [`in_child`].
struct ForkGuards {
    heap: HeapGuard,
    /// The list of the calls that use near memory.
    calls: MutexGuard<'static, NearCalls>,
    /// The mappings that are near, so that no other thread is changing them.
    mappings: MutexGuard<'static, Option<NearMappings>>,
    /// The stopped pager, if there is far memory.
    far: Option<far_fork::StoppedPager>,
    /// The list of what system calls hold.
    in_progress: MutexGuard<'static, CallsInProgress>,
    private: private::ForkGuard,
    /// Signals stay blocked until all else is released, since a handler of the program could fork, too.
    signals: Blocked,
}

/// Whether the forking thread holds the heap's lock.
#[derive(Clone, Copy)]
enum HeapGuard {
    /// There was no heap. Another thread may make one before the fork is over.
    NoHeap,
    /// The forking thread holds the lock of this heap.
    Locked(&'static LargeHeap),
    /// The thread forks in a signal handler that interrupted a call of the heap. That call goes on in parent and child
    /// when the handler returns, with the lock that it holds.
    Interrupted,
}

/// Divisor of the room that the memory limit leaves for large pages: a forked child uses at most this part of it, since
/// its parent and other children use it, too.
const SHARERS: usize = 4;

struct GuardsCell(UnsafeCell<Option<ForkGuards>>);

// SAFETY: only the thread that holds the lock of `private`, whose guard is in the cell, uses the cell.
unsafe impl Sync for GuardsCell {}

static GUARDS: GuardsCell = GuardsCell(UnsafeCell::new(None));

fn guards() -> &'static mut Option<ForkGuards> {
    // SAFETY: only the forking thread calls it, see `Sync`; callers use the reference at once and drop it.
    unsafe { &mut *GUARDS.0.get() }
}

/// Largest number of times, 100 µs apart, that a forking thread checks whether other threads have left the heap or the
/// dynamic linker.
const MOST_CHECKS: u32 = 10_000;

/// Waits until `done` returns `true`, but checks at most [`MOST_CHECKS`] times: the threads waited for may themselves
/// wait for a lock that this thread holds.
fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..MOST_CHECKS {
        if done() {
            break;
        }
        // SAFETY: `usleep` has no preconditions.
        unsafe { libc::usleep(100) };
    }
}

pub(crate) unsafe extern "C" fn before() {
    let signals = Blocked::handlers();
    family::before_fork();
    forked::make_room();
    wait_until(|| heap().is_some() || make::forbid_heap());
    enumeration::forbid();
    wait_until(enumeration::is_over);
    let heap = lock_heap();
    let calls = near_calls::lock();
    let mappings = near_mappings::lock();
    // No handler interrupts a call of far memory: such calls block signals.
    let far = if let HeapGuard::Locked(_) = heap { far_fork::before() } else { None };
    let in_progress = in_progress::lock_for_fork();
    let private = private::lock();
    *guards() = Some(ForkGuards { heap, calls, mappings, far, in_progress, private, signals });
}

fn lock_heap() -> HeapGuard {
    let Some(heap) = heap() else { return HeapGuard::NoHeap };
    if heap.is_interrupted() {
        return HeapGuard::Interrupted;
    }
    small::before_fork();
    heap.before_fork();
    if heap.has_pool_pages() {
        connect();
    }
    HeapGuard::Locked(heap)
}

pub(crate) unsafe extern "C" fn in_parent() {
    let Some(ForkGuards { heap, calls, mappings, far, in_progress, private, signals }) = guards().take()
    else {
        return;
    };
    drop(private);
    drop(in_progress);
    drop(mappings);
    drop(calls);
    forked::is_over();
    enumeration::allow();
    make::fork_is_over();
    if let HeapGuard::Locked(heap) = heap {
        close(CHILD);
        // Ends when the child sends 0, or ends, which closes the last descriptor of the other end.
        while let Some(lost @ 1..) = receive_address() {
            send(PARENT, core::ptr::with_exposed_provenance(lost), largesse_pages::SPAN);
        }
        close(PARENT);
        far_fork::in_parent(far);
        heap.after_fork_in_parent();
        small::after_fork_in_parent();
    }
    drop(signals);
}

pub(crate) unsafe extern "C" fn in_child() {
    let Some(ForkGuards { heap, mut calls, mappings, far, mut in_progress, private, signals }) =
        guards().take()
    else {
        return;
    };
    drop(private);
    in_progress.in_child();
    calls.in_child(|number| in_progress.holds_near(number));
    drop(in_progress);
    drop(mappings);
    drop(calls);
    io::in_this_process();
    forked::is_over();
    enumeration::reset_in_child();
    make::fork_is_over();
    helper::forget();
    last_thread::in_child();
    record::in_child();
    match heap {
        HeapGuard::Locked(heap) => in_child_with(heap, far),
        HeapGuard::NoHeap => {
            far_fork::refuse_unstopped();
            make::after_fork_without_heap();
            limit_state::forget();
        }
        HeapGuard::Interrupted => limit_state::forget(),
    }
    drop(signals);
}

fn in_child_with(heap: &LargeHeap, far: Option<far_fork::StoppedPager>) {
    close(PARENT);
    heap.after_fork_in_child();
    small::after_fork_in_child();
    far_fork::in_child(far);
    in_progress::pin_again();
    let mut lost = |to, from: usize, len| {
        let address = from.to_ne_bytes();
        send(CHILD, address.as_ptr(), address.len()) && receive(CHILD, to, len)
    };
    if let Some(near) = backing().and_then(HeapBacking::near) {
        // SAFETY: only this thread exists in the child.
        heap.demote_in_child(|first, spans| unsafe { near.demote(first, spans, &mut lost) });
    }
    let done = 0_usize.to_ne_bytes();
    send(CHILD, done.as_ptr(), done.len());
    close(CHILD);
    if spill::in_child() {
        family::in_child();
        helper::start(false);
        family::wait();
    } else {
        // No helper will read the limit again here.
        heap.share_limit(SHARERS);
    }
}

fn connect() {
    let mut ends: [c_int; 2] = [-1, -1];
    // SAFETY: `ends` has room for two descriptors. Without them the parent does not wait.
    unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) };
    for (end, fd) in ENDS.iter().zip(ends) {
        end.store(fd, Ordering::Relaxed); // Relaxed: under the heap's lock
    }
}

fn close(end: usize) {
    let fd = ENDS[end].swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        // SAFETY: the descriptor belongs to this file, and the swap makes sure that it is closed once.
        unsafe { libc::close(fd) };
    }
}

fn receive_address() -> Option<usize> {
    let mut bytes = [0_u8; size_of::<usize>()];
    receive(PARENT, NonNull::from(&mut bytes).cast(), bytes.len()).then(|| usize::from_ne_bytes(bytes))
}

/// Reads exactly `len` bytes from the socket `ENDS[end]`; returns `false` if the other end is closed.
fn receive(end: usize, into: NonNull<u8>, len: usize) -> bool {
    let fd = ENDS[end].load(Ordering::Relaxed);
    transfer(len, |done| {
        // SAFETY: callers pass room for `len` bytes, and `done < len`.
        unsafe { libc::read(fd, into.as_ptr().add(done).cast(), len - done) }
    })
}

/// Writes exactly `len` bytes to the socket `ENDS[end]`; returns `false`, without a SIGPIPE for the program, if the
/// other end is closed.
fn send(end: usize, from: *const u8, len: usize) -> bool {
    let fd = ENDS[end].load(Ordering::Relaxed);
    transfer(len, |done| {
        // SAFETY: callers pass `len` readable bytes, and `done < len`.
        unsafe { libc::send(fd, from.add(done).cast(), len - done, libc::MSG_NOSIGNAL) }
    })
}

fn transfer(len: usize, mut step: impl FnMut(usize) -> isize) -> bool {
    let mut done = 0;
    while done < len {
        match usize::try_from(step(done)) {
            Ok(0) => return false,
            Ok(more) => done += more,
            // SAFETY: the location belongs to this thread and is always valid.
            Err(_) if unsafe { *libc::__errno_location() } == libc::EINTR => {}
            Err(_) => return false,
        }
    }
    true
}
