//! The rounding mode of the calling thread, and whether it flushes subnormal numbers: for the threads that help it.

use core::arch::asm;

/// What a thread's arithmetic is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(Word);

#[cfg(target_arch = "x86_64")]
type Word = u32;
#[cfg(target_arch = "aarch64")]
type Word = u64;

impl Mode {
    /// Of this thread.
    pub(crate) fn here() -> Mode {
        let mut word: Word = 0;
        // SAFETY: reads a control register that every processor has.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack));
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!("mrs {}, fpcr", out(reg) word, options(nostack, nomem));
        }
        Mode(word)
    }

    /// Work in this mode, and then in the thread's own again.
    pub(crate) fn during(self, work: impl FnOnce()) {
        let own = Mode::here();
        // SAFETY: another thread's mode, which the work asks for, and then our own.
        unsafe { self.set() };
        work();
        // SAFETY: as above.
        unsafe { own.set() };
    }

    /// # Safety
    /// What computes next expects this mode.
    unsafe fn set(self) {
        // SAFETY: a value that the register had; the caller's promise.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const self.0, options(nostack));
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            asm!("msr fpcr, {}", in(reg) self.0, options(nostack));
        }
    }
}
