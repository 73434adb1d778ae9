//! Pages on their way in: in which order they come, and when who waits for them goes on.

use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;

/// Pages that come together.
#[derive(Debug)]
pub struct FillOrder {
    range: Range<PageNumber>,
    /// The pages of `range`, in their order of coming.
    parts: [Range<PageNumber>; 3],
    /// Who waits for these goes on as soon as they are here, while others come or are noted.
    woken: Range<PageNumber>,
}

impl FillOrder {
    /// `range`, and of it `first` before the others. Who waits for the pages `woken` goes on at once.
    pub(crate) fn new(
        range: &Range<PageNumber>,
        first: Range<PageNumber>,
        woken: Range<PageNumber>,
    ) -> FillOrder {
        let parts = [first.clone(), range.start..first.start, first.end..range.end];
        FillOrder { range: range.clone(), parts, woken }
    }

    /// All of them.
    #[must_use]
    pub fn range(&self) -> Range<PageNumber> {
        self.range.clone()
    }

    /// Calls `put` for one part after the other, and `wake` as soon as the pages are in place whose threads continue at once.
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
