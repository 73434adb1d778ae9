//! Names the instruction sets, and detects them on this processor.

use core::fmt;

/// An instruction set for kernels. All of them give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// Kernels use AVX-512 F and VL, with AVX2 and FMA.
    Avx512,
    /// Kernels use AVX2 and FMA.
    Avx2,
    /// `sum` and `asum` use SSE2. The other kernels are portable, because SSE2 has no fused operations.
    Sse2,
    /// Kernels use NEON.
    Neon,
    /// Kernels are plain code. Unless every processor of the architecture has a fused multiply-add, they call the C
    /// library for it.
    Portable,
}

impl Isa {
    /// Lists every instruction set, the fastest first.
    pub const ALL: [Isa; 5] = [Isa::Avx512, Isa::Avx2, Isa::Sse2, Isa::Neon, Isa::Portable];

    /// Returns whether the processor and the operating system support this instruction set.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx512f") && has!("avx512vl") && Isa::Avx2.is_available()
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

    /// Returns the name: `avx512`, `avx2`, `sse2`, `neon` or `portable`.
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
