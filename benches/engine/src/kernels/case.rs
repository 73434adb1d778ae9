//! Defines what is measured: a kernel, a number of elements, and where the vectors begin.

use super::kernel::{BlasKernel, Vectors};
use crate::engine::{available_mib, written};
use largesse_pages::{MapError, Reserved, SPAN};

impl BlasKernel {
    /// Returns the cases with all lengths of which a vector fits into `room` bytes. In each, the vectors are aligned
    /// to a cache line. For some lengths there are also cases with misaligned vectors, which should take little
    /// longer.
    pub(super) fn cases(self, room: usize) -> Vec<Case> {
        const K: usize = 1 << 10;
        const LENGTHS: [usize; 13] =
            [8, 32, 128, 512, K, 3 * K, 16 * K, 32 * K, 96 * K, 256 * K, 512 * K, 8 * K * K, 64 * K * K];
        let mut lengths = LENGTHS.map(|n| n.min(room / self.element)).to_vec();
        lengths.dedup();
        let apart = [K, 32 * K, 256 * K].into_iter().flat_map(|n| [(n, 16), (n, 48)]);
        let all = lengths.into_iter().map(|n| (n, 0)).chain(apart);
        all.map(|(n, shift)| Case { kernel: self, n, shift }).collect()
    }
}

/// One row of a table: a kernel, the number of elements, and the distance in bytes from the start of a cache line to
/// the start of each vector.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) kernel: BlasKernel,
    pub(super) n: usize,
    pub(super) shift: usize,
}

impl Case {
    /// Returns the number of bytes of all vectors of the case.
    pub(super) fn footprint(&self) -> usize {
        self.n * self.kernel.element * self.kernel.vectors
    }

    /// Returns the rate of a call that takes `seconds`, in units of 1e9 per second: of elements, each of which counts
    /// `each` times.
    pub(super) fn rate(&self, each: f64, seconds: f64) -> f64 {
        each * self.n as f64 / seconds * 1e-9
    }

    pub(super) fn title(&self) -> String {
        format!("{} of {}", self.kernel.name, self.n)
    }
}

/// Greatest size of a vector, in bytes.
const MOST: usize = 512 << 20;
/// Difference in bytes of the offsets of `y` and `x` in their pages. At equal offsets, stores to one vector would
/// delay loads of the other, and both would use the same banks of memory.
const STAGGER: usize = 8192 + 320;

/// The memory of both vectors, on large pages. Each vector has at most `room` bytes.
#[derive(Debug)]
pub(super) struct Data {
    range: Reserved,
    pub(super) room: usize,
}

impl Data {
    /// Allocates a quarter of the available memory, or `share` (0 to 1) of that quarter, and at most 512 MiB for each
    /// vector.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of memory")]
    pub(super) fn new(share: f64) -> Result<Data, MapError> {
        let quarter = usize::try_from(available_mib() << 18).unwrap_or(MOST);
        let most = (quarter / 2).min(MOST) as f64 * share.min(1.0);
        let room = (most as usize).max(4 << 20) / SPAN * SPAN;
        Ok(Data { range: written(2 * (room + SPAN))?, room })
    }

    /// Returns the addresses of a case's vectors without changing the vectors.
    pub(super) fn vectors(&self, case: &Case) -> Vectors {
        debug_assert!(case.n * case.kernel.element <= self.room);
        let x = self.range.start().as_ptr().wrapping_add(case.shift);
        Vectors { x: x.cast(), y: x.wrapping_add(self.room + SPAN + STAGGER).cast(), n: case.n }
    }

    /// Fills the vectors of a case, `x` with 1, 1/2, 1/3, … and `y` with numbers from -1 to 1, and returns their
    /// addresses.
    #[expect(clippy::cast_possible_truncation, reason = "a rounded double is a number to sum, too")]
    pub(super) fn fill(&self, case: &Case) -> Vectors {
        let vectors = self.vectors(case);
        let (x, y) = (vectors.x.cast_mut(), vectors.y);
        for i in 0..case.n * case.kernel.element.div_ceil(8) {
            let (one, other) = (1.0 / (i + 1) as f64, ((i * 7) % 1024) as f64 / 512.0 - 1.0);
            // SAFETY: these numbers of either vector are in the range, which is ours.
            unsafe {
                if case.kernel.is_single() {
                    x.cast::<f32>().add(i).write(one as f32);
                    y.cast::<f32>().add(i).write(other as f32);
                } else {
                    x.add(i).write(one);
                    y.add(i).write(other);
                }
            }
        }
        vectors
    }
}
