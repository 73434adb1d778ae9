//! The order in which the pages of one fill are put in place, and when the faulting thread is woken.

use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;

/// The order of one fill.
#[derive(Debug)]
pub struct FillOrder {
    range: Range<PageNumber>,
    /// The parts of `range`, in the order in which they are put in place.
    parts: [Range<PageNumber>; 3],
    /// Pages whose threads are woken as soon as these are in place, while the others are filled.
    woken: Range<PageNumber>,
}

impl FillOrder {
    /// Orders the fill of `range`: `first`, a part of it, before the others. Threads that wait for the pages `woken`
    /// are woken as soon as these are in place.
    pub(crate) fn new(
        range: &Range<PageNumber>,
        first: Range<PageNumber>,
        woken: Range<PageNumber>,
    ) -> FillOrder {
        let parts = [first.clone(), range.start..first.start, first.end..range.end];
        FillOrder { range: range.clone(), parts, woken }
    }

    /// Returns all pages of the fill.
    #[must_use]
    pub fn range(&self) -> Range<PageNumber> {
        self.range.clone()
    }

    /// Calls `put` for one part after the other, and `wake` as soon as the pages are in place whose threads continue at
    /// once.
    pub fn each(
        &self,
        mut put: impl FnMut(&Range<PageNumber>) -> Result<(), FaultError>,
        wake: impl Fn(Range<PageNumber>),
    ) -> Result<(), FaultError> {
        for part in self.parts.iter().filter(|part| !part.is_empty()) {
            put(part)?;
            if !self.woken.is_empty() && part.contains(&self.woken.start) {
                wake(self.woken.clone());
            }
        }
        Ok(())
    }
}
