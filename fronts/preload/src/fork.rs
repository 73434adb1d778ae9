//! `fork`: nobody is inside the heap meanwhile, and a child never depends on the hugetlb pool.
//!
//! A child that writes to a hugetlb page it shares with its parent needs a free page of the pool and
//! is killed when there is none; a parent that writes while the child still shares the page takes
//! it from the child. So the child copies its blocks to ordinary pages, and the parent waits.

use crate::{helper, serve};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};

/// The pipe on which a parent waits for its child: read and write end, -1 when there is none.
static PIPE: [AtomicI32; 2] = [AtomicI32::new(-1), AtomicI32::new(-1)];

/// Ask to be told of forks; once.
pub(crate) fn watch() {
    // SAFETY: the handlers live as long as this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

unsafe extern "C" fn before() {
    let Some(heap) = serve::heap() else { return };
    if heap.has_pool_pages() {
        let mut ends: [c_int; 2] = [-1, -1];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0 {
            // Relaxed: the heap's lock, taken below, orders forks of several threads.
            PIPE[0].store(ends[0], Ordering::Relaxed);
            PIPE[1].store(ends[1], Ordering::Relaxed);
        }
    }
    heap.before_fork();
}

unsafe extern "C" fn in_parent() {
    let Some(heap) = serve::heap() else { return };
    close(1);
    let done = PIPE[0].load(Ordering::Relaxed);
    if done >= 0 {
        let mut byte = 0_u8;
        // Returns when the child has written, or died: then nobody holds the write end.
        // SAFETY: room for one byte.
        while unsafe { libc::read(done, (&raw mut byte).cast(), 1) } < 0 && interrupted() {}
    }
    close(0);
    heap.after_fork_in_parent();
}

unsafe extern "C" fn in_child() {
    helper::forget();
    let Some(heap) = serve::heap() else { return };
    heap.after_fork_in_child();
    heap.demote_in_child();
    close(0);
    let done = PIPE[1].load(Ordering::Relaxed);
    if done >= 0 {
        // SAFETY: one readable byte. If it fails, closing the pipe says the same.
        unsafe { libc::write(done, b"+".as_ptr().cast(), 1) };
    }
    close(1);
}

fn interrupted() -> bool {
    // SAFETY: the location is this thread's and always valid.
    unsafe { *libc::__errno_location() == libc::EINTR }
}

fn close(end: usize) {
    let fd = PIPE[end].swap(-1, Ordering::Relaxed);
    if fd >= 0 {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(fd) };
    }
}
