//! Defines the kernels of each instruction set in a file of its own, over loops that are written once.
#![expect(clippy::needless_range_loop, reason = "the index is a register's, and a position in memory")]
#![expect(clippy::cast_possible_truncation, reason = "lanes of a register: 16 at most")]

mod axpy;
mod by_length;
mod fused;
mod portable;
mod prelude;
mod reduce;
mod simd;
mod sums;
mod terms;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;

use crate::Isa;
use crate::table::KernelTable;

/// The kernels of one instruction set, for both element types.
pub(crate) type Tables = (&'static KernelTable<f64>, &'static KernelTable<f32>);

/// Returns the kernels of an instruction set, or `None` if this program was compiled for another architecture. The
/// caller must check that the processor has the instruction set.
pub(crate) fn tables(isa: Isa) -> Option<Tables> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => Some((&avx512::F64, &avx512::F32)),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => Some((&avx2::F64, &avx2::F32)),
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => Some((&sse2::F64, &sse2::F32)),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => Some((&neon::F64, &neon::F32)),
        Isa::Portable => Some((&scalar::F64, &scalar::F32)),
        _ => None,
    }
}
