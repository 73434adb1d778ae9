//! Reuses the frames (physical pages) of evicted pages for later fills.
//!
//! This saves the kernel from freeing one frame and allocating another, and the pager from copying the page once more.
//! A page that is moved into place cannot be protected in the same step: the program may write to it at once, and its
//! checksum at its eviction shows whether it did.

use super::{BUFFERS, Staging, StagingGuard, are_resident};
use largesse_pages::base_page;
use largesse_pages::fault::{FaultError, Userfault};

/// Number of staging buffers that fills can hold, each for as long as its read from the store takes. The others remain
/// for evictions.
const FILLING: usize = BUFFERS / 2;

/// A part of a fill: its offset in the frames, its address in the program, and its length, all in bytes.
type Part = (usize, usize, usize);

/// The last frames of a staging buffer, into which a fill reads before it moves them into place.
pub(crate) struct Frames<'a> {
    buffer: StagingGuard<'a>,
    len: usize,
}

impl Staging {
    /// Returns frames for `len` bytes, if a free staging buffer has enough of them.
    pub(crate) fn frames(&self, len: usize) -> Option<Frames<'_>> {
        self.buffers[..FILLING].iter().find_map(|buffer| {
            let buffer = buffer.try_lock()?;
            (buffer.plain.shown >= len).then(|| Frames { buffer, len })
        })
    }
}

impl Frames<'_> {
    /// Returns the address at which the frames are mapped now.
    fn at(&self) -> usize {
        self.buffer.plain.end() - self.len
    }

    /// Returns the bytes of the frames, which hold contents of evicted pages until the caller overwrites them.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        let at = core::ptr::with_exposed_provenance_mut(self.at());
        // SAFETY: pages of the staging buffer, which belongs to this value as long as its guard lives; all pages that
        // were shown are resident.
        unsafe { core::slice::from_raw_parts_mut(at, self.len) }
    }

    /// Moves the frames to their addresses in the program. `parts` calls its argument for each part of the fill.
    pub(crate) fn put(
        mut self,
        faults: &Userfault,
        parts: impl FnOnce(&mut dyn FnMut(Part) -> Result<(), FaultError>) -> Result<(), FaultError>,
    ) -> Result<(), FaultError> {
        let at = self.at();
        // Also after an error, the staging buffer ends before the frames.
        self.buffer.plain.shown -= self.len;
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
            // SAFETY: pages of the staging buffer, which this value holds, beyond those that may be read.
            unsafe { largesse_pages::forget(at, self.len) }.map_err(|it| FaultError(it.errno))?;
        }
        Ok(())
    }
}

/// Copies pages that cannot be moved into place, because the program may not write there or its pages lie in several
/// mappings.
fn copy(faults: &Userfault, from: usize, to: usize, len: usize) -> Result<(), FaultError> {
    let whole = if are_resident(from, len) { len } else { base_page() };
    for offset in (0..len).step_by(whole.max(1)) {
        // If the frame is not in the staging buffer, its page is in place: Linux 6.18 may report a place as occupied to
        // which it has just moved the page (see `staging.rs`).
        if !are_resident(from + offset, whole) {
            continue;
        }
        let at = core::ptr::with_exposed_provenance(from + offset);
        // SAFETY: resident pages of a staging buffer that the caller holds.
        faults.fill(to + offset, unsafe { core::slice::from_raw_parts(at, whole) }, false)?;
    }
    Ok(())
}
