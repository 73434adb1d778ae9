//! The frames of pages that left, used again for pages that come.
//!
//! Otherwise the kernel frees the one and makes the other, and what comes is copied once more on its way. A page that is
//! moved in cannot be protected in the same step: the program may write to it at once, and whether it did is found by its
//! checksum when it leaves.

use super::{LANES, LaneGuard, Staging, are_here};
use largesse_pages::base_page;
use largesse_pages::fault::{FaultError, Userfault};

/// Lanes that may be held while pages come, which lasts as long as the store takes: others remain for those that leave.
const COMING: usize = LANES / 2;

/// Protection of pages that come: where it lies in the frames, where the program misses it, and its bytes.
type Protection = (usize, usize, usize);

/// Frames of a lane, the last ones, for pages that come.
pub(crate) struct Frames<'a> {
    lane: LaneGuard<'a>,
    start: usize,
    len: usize,
}

impl Staging {
    /// Frames for so many bytes, if there are any.
    pub(crate) fn frames(&self, len: usize) -> Option<Frames<'_>> {
        self.lanes[..COMING].iter().enumerate().find_map(|(number, lane)| {
            let lane = lane.try_lock()?;
            (lane.shown >= len).then(|| Frames { lane, start: self.start_of(number), len })
        })
    }
}

impl Frames<'_> {
    fn at(&self) -> usize {
        self.start + self.lane.shown - self.len
    }

    /// For what comes; they hold what left.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let at = core::ptr::with_exposed_provenance_mut(self.at());
        // SAFETY: pages of the lane, which is ours as long as its guard lives, and all that was shown is there.
        unsafe { core::slice::from_raw_parts_mut(at, self.len) }
    }

    /// Moves them to where the program misses pages; `parts` calls what it is given with one after the other.
    pub(crate) fn put(
        mut self,
        faults: &Userfault,
        parts: impl FnOnce(&mut dyn FnMut(Protection) -> Result<(), FaultError>) -> Result<(), FaultError>,
    ) -> Result<(), FaultError> {
        let at = self.at();
        // Whatever happens, the lane ends before them.
        self.lane.shown -= self.len;
        let mut all = true;
        parts(&mut |(offset, to, len)| {
            let (moved, why) = faults.take(at + offset, to, len);
            if why.is_some() {
                all = false;
                copy(faults, at + offset + moved, to + moved, len - moved)?;
            }
            Ok(())
        })?;
        if !all {
            let at = core::ptr::with_exposed_provenance_mut(at);
            // SAFETY: the lane's, which is still ours, and nobody reads them any more.
            unsafe { largesse_pages::forget(at, self.len) }.map_err(|it| FaultError(it.errno))?;
        }
        Ok(())
    }
}

/// What cannot be moved is copied: where the program may not write, and where its pages lie in several mappings.
fn copy(faults: &Userfault, from: usize, to: usize, len: usize) -> Result<(), FaultError> {
    let whole = if are_here(from, len) { len } else { base_page() };
    for offset in (0..len).step_by(whole.max(1)) {
        // A frame that is not here is there: Linux 6.18 may say that the place is taken when it has just moved a page to it
        // (see `Staging::take`).
        if !are_here(from + offset, whole) {
            continue;
        }
        let at = core::ptr::with_exposed_provenance(from + offset);
        // SAFETY: pages of a lane that is the caller's, and they are there.
        faults.fill(to + offset, unsafe { core::slice::from_raw_parts(at, whole) }, false)?;
    }
    Ok(())
}
