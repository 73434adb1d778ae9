//! What one process's pages are written on, and where those from before its forks are read.
//!
//! A fork is a snapshot. So each side gets a new sheet that is its own, and what was written so far
//! is only read from then on:
//!
//! ```text
//!   parent:  sheet 0 ── sheet 1 (own)       writes, and room for new memory: the own sheet, on top
//!               │                           reads: the sheet that holds the page
//!   child:   sheet 0 ── sheet 1 (own)
//! ```
//!
//! A side that wrote nothing since the last fork keeps its empty sheet. The space of pages in a shared
//! sheet comes back when the last process that shares it has ended.

use crate::{PageStore, Ranges, StoreError};
use core::ops::Range;
use largesse_pages::Table;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sheets of one process: fewer than the descriptors that most may have.
pub(crate) const MOST_SHEETS: usize = 250;

/// A place of its own for pages; each has its own offset.
pub trait Sheet: PageStore {
    /// Bytes are about to be written that this sheet never held, although they were reserved before a
    /// fork, as all of `promised`. `true`: it need not be told again.
    fn make_room(&self, bytes: Range<u64>, promised: &Ranges) -> Result<bool, StoreError>;
}

/// The sheets of one process.
#[derive(Debug)]
pub struct Layers<S> {
    inner: Mutex<Inner<S>>,
}

#[derive(Debug)]
struct Inner<S> {
    /// Bottom to top; the last one is this process's alone.
    sheets: Vec<Arc<S>>,
    /// Which sheet holds each page; before the first fork it is the only one.
    holds: Option<Table<u8>>,
    /// Pages were written to the own sheet.
    used: bool,
    /// The own sheet has room for all of `promised`, or need not.
    roomy: bool,
    promised: Ranges,
}

impl<S: Sheet> Layers<S> {
    /// One sheet.
    #[must_use]
    pub fn new(first: S) -> Layers<S> {
        let sheets = vec![Arc::new(first)];
        let inner = Inner { sheets, holds: None, used: false, roomy: true, promised: Ranges::default() };
        Layers { inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`PageStore::reserve`].
    pub fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.own().reserve(at, len)?;
        inner.promised.add(at..at + len);
        Ok(())
    }

    /// As [`PageStore::read`].
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut done = 0;
        while done < into.len() {
            let from = at + done as u64;
            let (sheet, len) = self.lock().holder(from, into.len() - done);
            sheet.read(from, &mut into[done..done + len])?;
            done += len;
        }
        Ok(())
    }

    /// As [`PageStore::write`].
    pub fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        // No fork comes between the two: the pager is at rest then.
        let own = self.lock().write_to(at, from.len())?;
        own.write(at, from)?;
        self.lock().written(at, from.len());
        Ok(())
    }

    /// As [`PageStore::discard`].
    pub fn discard(&self, at: u64, len: u64) {
        let mut inner = self.lock();
        inner.promised.remove(&(at..at + len));
        // Other sheets are other processes' as well. A hole in this one is as good as a hole below.
        inner.own().discard(at, len);
    }

    /// Before a fork, with pages below `bytes`. `true`: the own sheet holds pages, so that either side
    /// gets a new one; otherwise the child only.
    pub fn prepare(&self, bytes: u64) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        if inner.used && inner.sheets.len() >= MOST_SHEETS {
            return Err(StoreError::Forks { most: MOST_SHEETS });
        }
        if inner.holds.is_none() {
            let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / largesse_pages::base_page();
            let table = Table::new(pages).ok_or(StoreError::System { call: "mmap", errno: libc::ENOMEM })?;
            inner.holds = Some(table);
        }
        Ok(inner.used)
    }

    /// What a child is to read, bottom to top; its own goes on top of them.
    #[must_use]
    pub fn frozen(&self) -> Vec<Arc<S>> {
        let inner = self.lock();
        inner.sheets[..inner.sheets.len() - usize::from(!inner.used)].to_vec()
    }

    /// After a fork, in the parent: a new sheet on top.
    pub fn push(&self, own: S) {
        let mut inner = self.lock();
        inner.sheets.push(Arc::new(own));
        (inner.used, inner.roomy) = (false, false);
    }

    /// After a fork, in the child: these are its sheets. Returns what they take the place of.
    pub fn replace(&self, sheets: Vec<Arc<S>>) -> Vec<Arc<S>> {
        let mut inner = self.lock();
        (inner.used, inner.roomy) = (false, false);
        core::mem::replace(&mut inner.sheets, sheets)
    }

    #[cfg(test)]
    pub(crate) fn sheets(&self) -> usize {
        self.lock().sheets.len()
    }

    /// What a forked child finds in its memory.
    #[cfg(test)]
    pub(crate) fn inherited(&self) -> Layers<S> {
        let inner = self.lock();
        let copied = |from: &Table<u8>| {
            let mut to = Table::new(from.len())?;
            to.copy_from_slice(from);
            Some(to)
        };
        let copy = Inner {
            sheets: inner.sheets.clone(),
            holds: inner.holds.as_ref().and_then(copied),
            promised: inner.promised.clone(),
            ..*inner
        };
        Layers { inner: Mutex::new(copy) }
    }
}

impl<S: Sheet> Inner<S> {
    fn own(&self) -> &Arc<S> {
        &self.sheets[self.sheets.len() - 1]
    }

    fn own_number(&self) -> u8 {
        u8::try_from(self.sheets.len() - 1).unwrap_or(u8::MAX)
    }

    /// The sheet that holds the first of these bytes, and how many of them.
    fn holder(&self, at: u64, len: usize) -> (Arc<S>, usize) {
        let Some(holds) = &self.holds else { return (Arc::clone(self.own()), len) };
        let mut pages = pages(at, len);
        let first = pages.next().map_or(0, |(page, _)| holds[page]);
        let len = pages.find(|(page, _)| holds[*page] != first).map_or(len, |(_, part)| part.start);
        (Arc::clone(&self.sheets[usize::from(first)]), len)
    }

    /// The own sheet is about to be written; what it never held gets room first.
    fn write_to(&mut self, at: u64, len: usize) -> Result<Arc<S>, StoreError> {
        self.used = true;
        let (own, number) = (Arc::clone(self.own()), self.own_number());
        if let Some(holds) = &self.holds
            && !self.roomy
            && pages(at, len).any(|(page, _)| holds[page] != number)
        {
            self.roomy = own.make_room(at..at + len as u64, &self.promised)?;
        }
        Ok(own)
    }

    /// The own sheet holds the bytes from now on.
    fn written(&mut self, at: u64, len: usize) {
        let own = self.own_number();
        if let Some(holds) = &mut self.holds {
            pages(at, len).for_each(|(page, _)| holds[page] = own);
        }
    }
}

/// The pages of `len` bytes at `at`, each with its bytes counted from there.
fn pages(at: u64, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let page = largesse_pages::base_page();
    let first = usize::try_from(at).unwrap_or(usize::MAX) / page;
    (0..len.div_ceil(page)).map(move |n| (first + n, n * page..len.min((n + 1) * page)))
}
