//! Defines the reasons for measuring times by the kernel's clock instead of the processor's counter.

use core::fmt;

/// The reason for which the processor's counter is not used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fallback {
    /// The processor (or the virtual machine) does not guarantee that its counter runs at one rate.
    NotInvariant,
    /// The kernel has stopped using the counter as a clock.
    Distrusted,
    /// This process may not read the counter (`prctl(PR_SET_TSC)`).
    Forbidden,
    /// The counter's rate, measured against the kernel's clock, varied by this relative amount.
    Unsteady(f64),
    /// No counter is known for this kind of processor.
    NoCounter,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::NotInvariant => write!(f, "the counter is not invariant (CPUID 8000_0007h, EDX bit 8)"),
            Fallback::Distrusted => write!(f, "the kernel does not offer the counter as a clock source"),
            Fallback::Forbidden => write!(f, "this process may not read the counter (PR_SET_TSC)"),
            Fallback::Unsteady(apart) => write!(f, "the counter's rate varies by {:.1} %", apart * 100.0),
            Fallback::NoCounter => write!(f, "no counter is known for this kind of processor"),
        }
    }
}
