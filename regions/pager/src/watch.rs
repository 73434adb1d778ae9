//! Tells which pages that are not resident have not changed since a moment. A garbage collector needs to read none of
//! these: their references are those that it followed before.

use crate::Kernel;
use crate::page::runs;
use crate::pager::Pager;
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_store::PageStore;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Notes that the program only reads until the next call of [`watch`](Pager::watch). Pages that are filled in between
    /// are write-protected, so that they are known to be unchanged after their eviction.
    pub fn only_read(&self) {
        self.lock().only_read = true;
    }

    /// Begins to watch pages: [`unchanged`](Pager::unchanged) compares with their contents at the last call of this. The
    /// caller lets no thread write to the pages during the call.
    pub fn watch(&self, pages: Range<PageNumber>) {
        let mut inner = self.lock();
        inner.only_read = false;
        inner.pages.watch(pages);
    }

    /// Returns the pages that are in the store, not resident, and have the contents that they had at the last
    /// [`watch`](Pager::watch). Pages for which that is unknown are left out.
    pub fn unchanged(&self, pages: Range<PageNumber>) -> Vec<Range<PageNumber>> {
        let inner = self.lock();
        let found = runs(pages, |page| inner.pages.is_unchanged(page).then_some(()));
        found.into_iter().map(|(run, ())| run).collect()
    }
}
