//! Instruction sets, and which of them this processor has.

use core::fmt;

/// What a kernel is made of. All of them give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// AVX-512 F and VL, with AVX2 and FMA.
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// SSE2. Without fused operations: all but `sum` and `asum` are the portable kernels.
    Sse2,
    /// NEON.
    Neon,
    /// Whatever the compiler makes of plain code. Fused operations are one call of the C library each where
    /// the architecture does not always have them.
    Portable,
}

impl Isa {
    /// The fastest first.
    pub const ALL: [Isa; 5] = [Isa::Avx512, Isa::Avx2, Isa::Sse2, Isa::Neon, Isa::Portable];

    /// This processor, and its system, have it.
    #[must_use]
    pub fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx512f") && has!("avx512vl") && Isa::Avx2.is_here()
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx2") && has!("fma")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Sse2 => true,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => true,
            Isa::Portable => true,
            _ => false,
        }
    }

    /// `avx512`, `avx2`, `sse2`, `neon`, `portable`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Sse2 => "sse2",
            Isa::Neon => "neon",
            Isa::Portable => "portable",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl core::str::FromStr for Isa {
    type Err = ();

    fn from_str(name: &str) -> Result<Isa, ()> {
        Isa::ALL.into_iter().find(|isa| isa.name() == name).ok_or(())
    }
}
