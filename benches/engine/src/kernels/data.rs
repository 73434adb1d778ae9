//! Holds the two vectors on large pages, at an offset from each other that is printed.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of memory; a double rounded to a float is still a number to sum"
)]

use super::case::{BlasKernel, Case};
use largesse_pages::{PageKind, Reserved, SPAN};

/// Greatest size of a vector, in bytes.
const MOST: usize = 512 << 20;
/// Difference of the offsets of `y` and `x` in their pages, in bytes: at equal offsets, stores to one vector delay
/// loads of the other, and both use the same banks of memory.
pub(super) const STAGGER: usize = 8192 + 320;

/// The memory of both vectors.
#[derive(Debug)]
pub(super) struct Data {
    range: Reserved,
    room: usize,
}

/// The addresses of a case's vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors {
    pub(super) x: *const f64,
    pub(super) y: *mut f64,
    /// Number of elements of the kernel's type.
    pub(super) n: usize,
}

impl Data {
    /// Allocates a quarter of the available memory, or `share` of that; at most 512 MiB for each vector.
    pub(super) fn new(share: f64) -> Result<Data, largesse_pages::MapError> {
        let quarter = usize::try_from(super::super::machine::available_mib() << 18).unwrap_or(MOST);
        let most = (quarter / 2).min(MOST) as f64 * share.min(1.0);
        let room = (most as usize).max(4 << 20) / SPAN * SPAN;
        let len = 2 * (room + SPAN);
        let range = Reserved::new(len, SPAN)?;
        range.commit(0, len, PageKind::Thp)?;
        // Pages that were never written share one page of zeros, which fits in the cache.
        for page in (0..len).step_by(4096) {
            // SAFETY: the offset is within the range, which is ours and committed.
            unsafe { range.start().add(page).write_volatile(0) };
        }
        Ok(Data { range, room })
    }

    /// Returns the bytes of one vector.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Returns the vectors of a case without changing them.
    pub(super) fn vectors(&self, case: &Case) -> Vectors {
        debug_assert!(case.n * case.kernel.element() <= self.room);
        let x = self.range.start().as_ptr().wrapping_add(case.shift);
        let y = self.range.start().as_ptr().wrapping_add(self.room + SPAN + STAGGER + case.shift);
        Vectors { x: x.cast(), y: y.cast(), n: case.n }
    }

    /// Fills the vectors of a case: 1, 1/2, 1/3, …, and numbers from -1 to 1.
    pub(super) fn fill(&self, case: &Case) -> Vectors {
        let vectors = self.vectors(case);
        let (x, y) = (vectors.x.cast_mut(), vectors.y);
        let numbers = case.n * if case.kernel == BlasKernel::Zdotu { 2 } else { 1 };
        for i in 0..numbers {
            let (one, other) = (1.0 / (i + 1) as f64, ((i * 7) % 1024) as f64 / 512.0 - 1.0);
            // SAFETY: `numbers` elements of either vector are in the range, which is ours.
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
