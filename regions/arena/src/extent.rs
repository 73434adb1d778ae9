//! Extents: runs of granules, used or free, found from either end (boundary tags in a table).

use largesse_pages::{Table, Zeroed};

/// No extent.
pub(crate) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub(crate) enum State {
    /// Not the first granule of an extent.
    #[default]
    Inside = 0,
    Free,
    Used,
}

/// The entry of a granule. `len` to `owner` count at an extent's first granule, `back` at its last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) len: u32,
    /// Length of the extent that ends here.
    pub(crate) back: u32,
    pub(crate) state: State,
    /// Free: neighbours in the bin. Used: `next` is the owner's tag.
    pub(crate) next: u32,
    pub(crate) prev: u32,
    /// Free: when it was given back, in seconds.
    pub(crate) stamp: u32,
}

// SAFETY: zero bytes are an `Inside` entry.
unsafe impl Zeroed for Entry {}

/// The table of all granules; extents tile it.
#[derive(Debug)]
pub(crate) struct Extents(Table<Entry>);

impl Extents {
    pub(crate) fn new(granules: usize) -> Option<Extents> {
        Some(Extents(Table::new(granules)?))
    }

    pub(crate) fn get(&self, at: u32) -> &Entry {
        &self.0[at as usize]
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Entry {
        &mut self.0[at as usize]
    }

    /// Write both boundary tags of an extent.
    pub(crate) fn define(&mut self, at: u32, len: u32, state: State, stamp: u32) {
        debug_assert!(len > 0);
        let entry = self.get_mut(at);
        *entry = Entry { back: entry.back, len, state, next: NONE, prev: NONE, stamp };
        self.get_mut(at + len - 1).back = len;
    }

    /// The extent at `at` is now a part of another one.
    pub(crate) fn forget(&mut self, at: u32) {
        self.get_mut(at).state = State::Inside;
    }

    /// The free extent that follows the one at `at`.
    pub(crate) fn free_after(&self, at: u32) -> Option<u32> {
        let next = at + self.get(at).len;
        let entry = self.0.get(next as usize)?;
        (entry.state == State::Free).then_some(next)
    }

    /// The free extent that precedes the one at `at`.
    pub(crate) fn free_before(&self, at: u32) -> Option<u32> {
        let last = at.checked_sub(1)?;
        let start = at - self.get(last).back;
        (self.get(start).state == State::Free).then_some(start)
    }

    #[cfg(test)]
    /// Every extent in the order of addresses.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let entry = self.0.get(at as usize)?;
            let here = at;
            at += entry.len;
            Some((here, entry))
        })
    }
}
