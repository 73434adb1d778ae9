//! Saves, changes and restores a thread's floating-point environment: rounding mode, flushing of subnormal numbers,
//! exception flags, and unmasked exceptions.
//!
//! Kernels raise the exceptions of [`reference`](crate::reference)'s operations and no others, with any number of
//! threads. Worker threads run in the caller's mode with every exception masked, and return the flags they raised. The
//! caller raises these exceptions, so that a trap (`SIGFPE`) is delivered to the calling thread, after the workers
//! have stopped using its memory.

use core::arch::asm;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

/// A floating-point control word: MXCSR on x86-64, FPCR on AArch64.
type Word = u32;

#[cfg(target_arch = "x86_64")]
mod word {
    use super::Word;
    /// The exception flags, which are the lowest bits of MXCSR.
    pub(super) const FLAGS: Word = 0x3f;
    pub(super) const INVALID: Word = 1;
    pub(super) const DENORMAL: Word = 1 << 1;
    pub(super) const OVERFLOW: Word = 1 << 3;
    pub(super) const UNDERFLOW: Word = 1 << 4;
    pub(super) const INEXACT: Word = 1 << 5;
    const FLUSH_TO_ZERO: Word = 1 << 15;

    /// Returns the flags of the exceptions that trap.
    pub(super) fn traps(control: Word) -> Word {
        !(control >> 7) & FLAGS
    }

    /// Returns the control word with every exception masked. Where underflow traps, flush-to-zero is cleared as well,
    /// because the processor ignores it as long as underflow traps.
    pub(super) fn masked(control: Word) -> Word {
        let flush = if traps(control) & UNDERFLOW == 0 { 0 } else { FLUSH_TO_ZERO };
        (control | FLAGS << 7) & !flush
    }
}

#[cfg(target_arch = "aarch64")]
mod word {
    use super::Word;
    /// The exception flags in FPSR.
    pub(super) const FLAGS: Word = 0x9f;
    pub(super) const INVALID: Word = 1;
    pub(super) const DENORMAL: Word = 1 << 7;
    pub(super) const OVERFLOW: Word = 1 << 2;
    pub(super) const UNDERFLOW: Word = 1 << 3;
    pub(super) const INEXACT: Word = 1 << 4;

    /// Returns the flags of the exceptions that trap.
    pub(super) fn traps(control: Word) -> Word {
        control >> 8 & FLAGS
    }

    /// Returns the control word with every exception masked.
    pub(super) fn masked(control: Word) -> Word {
        control & !(FLAGS << 8)
    }
}

/// An arithmetic operation that raises an exception for some operands.
type Operation = fn(f32, f32) -> f32;

/// A set of floating-point exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceptions(Word);

impl Exceptions {
    pub(crate) const INVALID: Exceptions = Exceptions(word::INVALID);
    /// Every exception except underflow.
    pub(crate) const ALL_BUT_UNDERFLOW: Exceptions = Exceptions(word::FLAGS & !word::UNDERFLOW);

    /// Raises these exceptions in the calling thread: sets their flags, and traps on those that the thread has
    /// unmasked.
    pub(crate) fn raise(self) {
        let now = Environment::here();
        if self.0 & word::traps(now.control) != 0 {
            self.raise_by_operations();
        }
        let now = Environment::here();
        if self.0 & !now.flags != 0 {
            // SAFETY: the thread's own mode, with further flags set.
            unsafe { Environment { flags: now.flags | self.0, ..now }.set() };
        }
    }

    /// Executes, for each exception, an operation that raises it.
    #[cold]
    fn raise_by_operations(self) {
        let denormal = f32::from_bits(1);
        let each: [(Word, Operation, f32, f32); 5] = [
            (word::INVALID, |x, y| x / y, 0.0, 0.0),
            (word::DENORMAL, |x, y| x + y, denormal, denormal),
            (word::OVERFLOW, |x, y| x * y, f32::MAX, f32::MAX),
            (word::UNDERFLOW, |x, y| x * y, f32::MIN_POSITIVE, f32::MIN_POSITIVE),
            (word::INEXACT, |x, y| x + y, 1.0, f32::MIN_POSITIVE),
        ];
        for (flag, operation, x, y) in each {
            if self.0 & flag != 0 {
                black_box(operation(black_box(x), black_box(y)));
            }
        }
    }
}

/// The exceptions that several threads have raised.
#[derive(Debug, Default)]
pub(crate) struct Raised(AtomicU32);

impl Raised {
    pub(crate) fn add(&self, exceptions: Exceptions) {
        // Relaxed: the end of the team's work orders this before `get`.
        self.0.fetch_or(exceptions.0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Exceptions {
        Exceptions(self.0.load(Ordering::Relaxed))
    }
}

/// The floating-point environment of a thread: its control word and its exception flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    control: Word,
    flags: Word,
}

impl Environment {
    /// Returns the calling thread's environment.
    #[inline(always)]
    pub(crate) fn here() -> Environment {
        #[cfg(target_arch = "x86_64")]
        {
            let mut control: Word = 0;
            // SAFETY: stores the four bytes of MXCSR, which every x86-64 processor has, into a local of that size.
            unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack)) };
            Environment { control, flags: control & word::FLAGS }
        }
        #[cfg(target_arch = "aarch64")]
        {
            let (control, flags): (u64, u64);
            // SAFETY: reads control registers that every processor has.
            unsafe {
                asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) flags, options(nostack));
            }
            // Both registers have 32 bits.
            Environment {
                control: (control & 0xffff_ffff) as Word,
                flags: (flags & 0xffff_ffff) as Word & word::FLAGS,
            }
        }
    }

    /// Runs `work` in this environment's mode with every exception masked, and then restores the thread's own
    /// environment. Returns the exceptions that `work` raised.
    pub(crate) fn during(self, work: impl FnOnce()) -> Exceptions {
        let own = Environment::here();
        // SAFETY: the mode that `work` expects.
        unsafe { self.masked().set() };
        work();
        let raised = Exceptions(Environment::here().flags);
        // SAFETY: the thread's own environment.
        unsafe { own.set() };
        raised
    }

    /// Returns this environment with every exception masked and no flag set.
    fn masked(self) -> Environment {
        Environment { control: word::masked(self.control), flags: 0 }
    }

    /// Makes this environment the calling thread's.
    ///
    /// # Safety
    /// The code that runs next expects this mode.
    #[inline]
    unsafe fn set(self) {
        #[cfg(target_arch = "x86_64")]
        {
            let word = self.control & !word::FLAGS | self.flags;
            // SAFETY: reads the four bytes of a local. The instruction faults for a reserved bit (16 to 31): `control` was
            // stored by `stmxcsr`, which leaves these zero, and only flags and masks below them are changed. It raises no
            // exception for a flag that it sets, masked or not. The mode itself is the caller's promise.
            unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack)) };
        }
        #[cfg(target_arch = "aarch64")]
        {
            let (control, flags) = (u64::from(self.control), u64::from(self.flags));
            // SAFETY: as above.
            unsafe { asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) control, in(reg) flags, options(nostack)) };
        }
    }
}

/// A computation whose exceptions are filtered before they reach the program. None of them traps before its end.
#[derive(Debug)]
#[must_use]
pub(crate) struct Trial {
    own: Environment,
}

impl Trial {
    /// Begins a trial. This only reads the control word unless the thread has unmasked an exception.
    #[inline(always)]
    pub(crate) fn begin() -> Trial {
        let own = Environment::here();
        if word::traps(own.control) != 0 {
            core::hint::cold_path();
            // SAFETY: the same mode; no exception traps until `end`.
            unsafe { own.masked().set() };
        }
        Trial { own }
    }

    /// Ends the trial, and raises in the program's environment those of its exceptions that are in `keep`.
    #[inline(always)]
    pub(crate) fn end(self, keep: Exceptions) {
        let new = Environment::here().flags & !self.own.flags;
        if word::traps(self.own.control) != 0 || new & !keep.0 != 0 {
            self.end_slow(keep);
        }
    }

    #[cold]
    fn end_slow(self, keep: Exceptions) {
        let raised = Exceptions(Environment::here().flags & keep.0);
        // SAFETY: the thread's own environment.
        unsafe { self.own.set() };
        raised.raise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that each operation raises its exception, and no other one except inexact.
    #[test]
    fn operations_raise_their_exceptions() {
        for flag in [word::INVALID, word::OVERFLOW, word::UNDERFLOW, word::INEXACT] {
            let raised = Environment::here().during(|| Exceptions(flag).raise_by_operations());
            assert_eq!(raised.0 & !word::INEXACT | flag, flag, "{flag:#x} raised {raised:?}");
            assert!(raised.0 & flag != 0, "{flag:#x} raised {raised:?}");
        }
    }

    #[test]
    fn dropped_exceptions_leave_no_flag() {
        let raised = Environment::here().during(|| {
            let trial = Trial::begin();
            Exceptions(word::UNDERFLOW | word::INVALID).raise();
            trial.end(Exceptions::ALL_BUT_UNDERFLOW);
        });
        assert_eq!(raised, Exceptions::INVALID);
    }
}
