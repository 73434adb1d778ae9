//! Signals of a thread, held back for a while.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// While it lives, no handler of the program runs in this thread, nor ever in those that it starts.
#[derive(Debug)]
pub(crate) struct Blocked(libc::sigset_t);

impl Blocked {
    pub(crate) fn all() -> Blocked {
        Blocked::all_but(&[])
    }

    pub(crate) fn all_but(let_through: &[c_int]) -> Blocked {
        let (mut held, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are written before they are read.
        unsafe {
            libc::sigfillset(held.as_mut_ptr());
            for &signal in let_through {
                libc::sigdelset(held.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, held.as_ptr(), before.as_mut_ptr());
            Blocked(before.assume_init())
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled in `all_but`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}
