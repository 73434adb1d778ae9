//! Checks that service threads are counted, in a process whose other tests start none.

use largesse_machine::service::{running, start};
use std::sync::mpsc::channel;

#[test]
fn service_thread_counts_and_blocks_signals() {
    let (into, from) = channel();
    let (stop, stopped) = channel::<()>();
    let work = move || {
        // SAFETY: both sets are local; a mask of NULL queries the current one.
        let blocks = unsafe {
            let mut mask: libc::sigset_t = core::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &raw mut mask);
            [libc::SIGTERM, libc::SIGBUS].map(|signal| libc::sigismember(&raw const mask, signal) == 1)
        };
        into.send(blocks).unwrap();
        let _ = stopped.recv();
    };
    start(c"a-service", 64 << 10, &[libc::SIGBUS], work).unwrap();
    assert_eq!(from.recv().unwrap(), [true, false], "SIGTERM must be blocked, SIGBUS must not");
    assert_eq!(running(), 1, "number of running service threads");
    drop(stop);
    while running() != 0 {
        std::thread::yield_now();
    }
}
