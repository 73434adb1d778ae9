//! Decides how much free memory stays warm, and for how long.
//!
//! Warm memory is worth keeping: its first touch is paid. But a program must not hold more than it once needed, nor for
//! long after it stopped needing it. So there are a *bound* and a *decay*. The bound: warm memory never exceeds the
//! highest number of live bytes by more than a share of that number plus a constant, the floor. The decay: memory that
//! was free for [`DECAY_SECONDS`] is returned to the kernel. Near the process's memory limit the kernel may reclaim
//! free memory at once under memory pressure.

/// Number of seconds after which free memory is returned to the kernel.
pub const DECAY_SECONDS: u32 = 10;

/// The bound on an arena's warm memory.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Share of the highest number of live bytes, in 1/256, that may be warm in addition to it.
    pub share: u8,
    /// Number of bytes that may be warm in addition to the highest number of live bytes and the share of it.
    pub floor: usize,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { share: 32, floor: 64 << 20 }
    }
}

impl Retention {
    /// Returns the number of bytes that may be warm if the highest number of live bytes is `peak`.
    #[must_use]
    pub const fn allowed(&self, peak: usize) -> usize {
        peak + peak / 256 * self.share as usize + self.floor
    }
}
