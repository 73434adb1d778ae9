//! Records extents, which are runs of used or free granules, in a table of boundary tags, by which an extent is found
//! from either end.

use largesse_pages::{Table, Zeroed};

/// Index that stands for no extent in a link.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub(crate) enum ExtentState {
    /// The granule is inside an extent, not the first of one.
    #[default]
    Inside = 0,
    Free,
    Used,
}

/// Tags the boundaries of extents. `back` is valid at an extent's last granule, the other fields at its first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BoundaryTag {
    pub(crate) len: u32,
    /// Length of the extent that ends with this granule, in granules.
    pub(crate) back: u32,
    pub(crate) state: ExtentState,
    /// For a free extent, the next free extent in its bin. For a used extent, the tag that the arena's owner has given
    /// it.
    pub(crate) next: u32,
    pub(crate) prev: u32,
    /// For a free extent, the time at which it was freed, in seconds of the caller's clock.
    pub(crate) stamp: u32,
}

// SAFETY: zero bytes are a tag of state `Inside`.
unsafe impl Zeroed for BoundaryTag {}

/// The tags of all granules. Together, the extents cover all granules without gaps.
#[derive(Debug)]
pub(crate) struct Extents(Table<BoundaryTag>);

impl Extents {
    pub(crate) fn new(granules: usize) -> Option<Extents> {
        Some(Extents(Table::new(granules)?))
    }

    pub(crate) fn get(&self, at: u32) -> &BoundaryTag {
        &self.0[at as usize]
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut BoundaryTag {
        &mut self.0[at as usize]
    }

    /// Writes both boundary tags of an extent.
    pub(crate) fn define(&mut self, at: u32, len: u32, state: ExtentState, stamp: u32) {
        debug_assert!(len > 0);
        let entry = self.get_mut(at);
        *entry = BoundaryTag { back: entry.back, len, state, next: NONE, prev: NONE, stamp };
        self.get_mut(at + len - 1).back = len;
    }

    /// Marks the extent that began at `at` as part of another one.
    pub(crate) fn forget(&mut self, at: u32) {
        self.get_mut(at).state = ExtentState::Inside;
    }

    /// Returns the free extent that follows the one at `at`, if there is one.
    pub(crate) fn free_after(&self, at: u32) -> Option<u32> {
        let next = at + self.get(at).len;
        let entry = self.0.get(next as usize)?;
        (entry.state == ExtentState::Free).then_some(next)
    }

    /// Returns the free extent that precedes the one at `at`, if there is one.
    pub(crate) fn free_before(&self, at: u32) -> Option<u32> {
        let last = at.checked_sub(1)?;
        let start = at - self.get(last).back;
        (self.get(start).state == ExtentState::Free).then_some(start)
    }

    #[cfg(test)]
    /// Returns every extent in address order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &BoundaryTag)> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let entry = self.0.get(at as usize)?;
            let here = at;
            at += entry.len;
            Some((here, entry))
        })
    }
}
