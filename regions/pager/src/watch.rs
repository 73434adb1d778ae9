//! Tells which pages that are not resident have not changed since a moment. A garbage collector needs to read none of
//! these: their references are those that it followed before.

use crate::Kernel;
use crate::page::runs;
use crate::pager::Pager;
use core::ops::Range;
use largesse_arena::Reads;
use largesse_policy::PageNumber;
use largesse_store::PageStore;

/// Number of pages that are looked at while the lock is held: a fraction of a millisecond.
const PIECE: usize = 16 << 10;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Notes that the program only reads until the next call of [`watch`](Pager::watch). Pages that are filled in
    /// between are write-protected, so that they are known to be unchanged after their eviction. With
    /// [`Reads::Changed`], each page, changed or not, is a transfer unit of its own.
    pub fn only_read(&self, which: Reads) {
        self.lock().only_read = Some(which);
    }

    /// Begins to watch pages: [`unchanged`](Pager::unchanged) compares with their contents at the last call of this.
    /// The caller lets no thread write to the pages during the call.
    pub fn watch(&self, pages: Range<PageNumber>) {
        for piece in pieces(pages) {
            self.lock().pages.watch(piece);
        }
        self.lock().only_read = None;
    }

    /// Returns the pages that are in the store, not resident, and have the contents that they had at the last
    /// [`watch`](Pager::watch). Pages for which that is unknown are left out.
    pub fn unchanged(&self, pages: Range<PageNumber>) -> Vec<Range<PageNumber>> {
        let mut all: Vec<Range<PageNumber>> = Vec::new();
        for piece in pieces(pages) {
            let inner = self.lock();
            for (run, ()) in runs(piece, |page| inner.pages.is_unchanged(page).then_some(())) {
                match all.last_mut().filter(|last| last.end == run.start) {
                    Some(last) => last.end = run.end,
                    None => all.push(run),
                }
            }
        }
        all
    }
}

/// Returns the parts of `pages` that are looked at while the lock is held, so that faults are served in between.
fn pieces(pages: Range<PageNumber>) -> impl Iterator<Item = Range<PageNumber>> {
    pages.clone().step_by(PIECE).map(move |first| first..pages.end.min(first + PIECE))
}
