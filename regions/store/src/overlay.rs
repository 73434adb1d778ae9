//! The layers that a store has after forks, like those of overlayfs.
//!
//! A fork is a snapshot. Each of the two processes gets a new layer of its own for writes, and both only read the
//! layers below:
//!
//! ```text
//!   parent:  layer 0 ── layer 1 (top)       writes, and room for new memory: the top layer
//!               │                           reads: the layer that owns the page
//!   child:   layer 0 ── layer 1 (top)
//! ```
//!
//! A process that wrote nothing since its last fork keeps its empty top layer. The room of pages in a shared layer is
//! freed when the last process that shares it has ended.

use crate::{PageStore, Ranges, StoreError};
use core::ops::Range;
use largesse_pages::Table;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest number of layers of one process, below the usual limit on open descriptors.
pub(crate) const MAX_LAYERS: usize = 250;

/// A store that holds the pages which one process wrote between two forks, each page at its own offset.
pub trait Layer: PageStore {
    /// Makes room for a write of `bytes`, for which room was reserved in another layer before a fork. `reserved` is
    /// everything that the process has reserved. Returns whether no further call is needed, because there is room for
    /// all of it.
    fn make_room(&self, bytes: Range<u64>, reserved: &Ranges) -> Result<bool, StoreError>;
}

/// The layers that one process reads and writes.
#[derive(Debug)]
pub struct Overlay<S> {
    inner: Mutex<Layers<S>>,
}

#[derive(Debug)]
struct Layers<S> {
    /// The layers from bottom to top. The top layer belongs to this process alone.
    layers: Vec<Arc<S>>,
    /// Index of the layer that holds each page; `None` before the first fork, with a single layer.
    owners: Option<Table<u8>>,
    /// Whether any page was written to the top layer.
    dirty: bool,
    /// Whether the top layer has room for all reserved bytes, so that `make_room` needs no further call.
    has_room: bool,
    reserved: Ranges,
}

impl<S: Layer> Overlay<S> {
    /// Makes an overlay with a single layer.
    #[must_use]
    pub fn new(first: S) -> Overlay<S> {
        let layers = vec![Arc::new(first)];
        let inner =
            Layers { layers, owners: None, dirty: false, has_room: true, reserved: Ranges::default() };
        Overlay { inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Layers<S>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the layer that holds the first of the `len` bytes from `at` on, and the number of bytes from there on
    /// that it holds.
    pub fn source(&self, at: u64, len: usize) -> (Arc<S>, usize) {
        self.lock().owner(at, len)
    }

    /// Returns the layer to which the `len` bytes from `at` on must be written. It has room for them.
    pub fn target(&self, at: u64, len: usize) -> Result<Arc<S>, StoreError> {
        self.lock().write_to(at, len)
    }

    /// Records that the `len` bytes from `at` on were written to their [target](Overlay::target).
    pub fn written(&self, at: u64, len: usize) {
        self.lock().written(at, len);
    }

    /// Prepares for a fork of a store whose pages lie below `bytes`. Returns whether the top layer holds pages, so that
    /// parent and child both need a new layer; otherwise only the child needs one.
    pub fn prepare(&self, bytes: u64) -> Result<bool, StoreError> {
        let mut inner = self.lock();
        if inner.dirty && inner.layers.len() >= MAX_LAYERS {
            return Err(StoreError::Forks { most: MAX_LAYERS });
        }
        if inner.owners.is_none() {
            let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / largesse_pages::base_page();
            let table = Table::new(pages).ok_or(StoreError::System { call: "mmap", errno: libc::ENOMEM })?;
            inner.owners = Some(table);
        }
        Ok(inner.dirty)
    }

    /// Returns the layers that a child will share with its parent, from bottom to top. The child adds a new layer of
    /// its own.
    #[must_use]
    pub fn frozen(&self) -> Vec<Arc<S>> {
        let inner = self.lock();
        inner.layers[..inner.layers.len() - usize::from(!inner.dirty)].to_vec()
    }

    /// Adds a new layer on top, in the parent after a fork.
    pub fn push(&self, top: S) {
        let mut inner = self.lock();
        inner.layers.push(Arc::new(top));
        (inner.dirty, inner.has_room) = (false, false);
    }

    /// Replaces all layers, in the child after a fork, and returns the previous layers.
    pub fn replace(&self, layers: Vec<Arc<S>>) -> Vec<Arc<S>> {
        let mut inner = self.lock();
        (inner.dirty, inner.has_room) = (false, false);
        core::mem::replace(&mut inner.layers, layers)
    }

    #[cfg(test)]
    pub(crate) fn layers(&self) -> usize {
        self.lock().layers.len()
    }

    /// Returns a copy of this overlay, as a forked child has it in its memory.
    #[cfg(test)]
    pub(crate) fn inherited(&self) -> Overlay<S> {
        let inner = self.lock();
        let copied = |from: &Table<u8>| {
            let mut to = Table::new(from.len())?;
            to.copy_from_slice(from);
            Some(to)
        };
        let copy = Layers {
            layers: inner.layers.clone(),
            owners: inner.owners.as_ref().and_then(copied),
            reserved: inner.reserved.clone(),
            ..*inner
        };
        Overlay { inner: Mutex::new(copy) }
    }
}

/// Reserves room and writes in the top layer, and reads bytes from the layers that hold them.
impl<S: Layer> PageStore for Overlay<S> {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let mut inner = self.lock();
        inner.top().reserve(at, len)?;
        inner.reserved.add(at..at + len);
        Ok(())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut done = 0;
        while done < into.len() {
            let from = at + done as u64;
            let (layer, len) = self.source(from, into.len() - done);
            layer.read(from, &mut into[done..done + len])?;
            done += len;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        // The pager is at rest during a fork, so that none comes between these two steps.
        self.target(at, from.len())?.write(at, from)?;
        self.written(at, from.len());
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let mut inner = self.lock();
        inner.reserved.remove(&(at..at + len));
        // Other processes share the layers below, so that these keep the contents. The pager reads a discarded page
        // only after it has written it again.
        inner.top().discard(at, len);
    }
}

impl<S: Layer> Layers<S> {
    fn top(&self) -> &Arc<S> {
        &self.layers[self.layers.len() - 1]
    }

    fn top_number(&self) -> u8 {
        u8::try_from(self.layers.len() - 1).unwrap_or(u8::MAX)
    }

    /// Returns the layer that holds the first of the `len` bytes from `at` on, and the number of bytes from there on
    /// that it holds.
    fn owner(&self, at: u64, len: usize) -> (Arc<S>, usize) {
        let Some(owners) = &self.owners else { return (Arc::clone(self.top()), len) };
        let mut pages = pages(at, len);
        let first = pages.next().map_or(0, |(page, _)| owners[page]);
        let len = pages.find(|(page, _)| owners[*page] != first).map_or(len, |(_, part)| part.start);
        (Arc::clone(&self.layers[usize::from(first)]), len)
    }

    /// Returns the top layer for a write of these bytes, after making room for those that it does not hold yet.
    fn write_to(&mut self, at: u64, len: usize) -> Result<Arc<S>, StoreError> {
        let (top, number) = (Arc::clone(self.top()), self.top_number());
        if let Some(owners) = &self.owners
            && !self.has_room
            && pages(at, len).any(|(page, _)| owners[page] != number)
        {
            self.has_room = top.make_room(at..at + len as u64, &self.reserved)?;
        }
        self.dirty = true;
        Ok(top)
    }

    /// Records that the top layer holds the `len` bytes from `at` on.
    fn written(&mut self, at: u64, len: usize) {
        let top = self.top_number();
        if let Some(owners) = &mut self.owners {
            pages(at, len).for_each(|(page, _)| owners[page] = top);
        }
    }
}

/// Returns the number of each page that has any of the `len` bytes from `at` on, with these bytes as offsets from `at`.
fn pages(at: u64, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let page = largesse_pages::base_page();
    let first = usize::try_from(at).unwrap_or(usize::MAX) / page;
    (0..len.div_ceil(page)).map(move |n| (first + n, n * page..len.min((n + 1) * page)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A layer that never has room for pages of the layers below.
    #[derive(Debug)]
    struct FullLayer;

    impl PageStore for FullLayer {
        fn reserve(&self, _: u64, _: u64) -> Result<(), StoreError> {
            Ok(())
        }
        fn read(&self, _: u64, _: &mut [u8]) -> Result<(), StoreError> {
            Ok(())
        }
        fn write(&self, _: u64, _: &[u8]) -> Result<(), StoreError> {
            Ok(())
        }
        fn discard(&self, _: u64, _: u64) {}
    }

    impl Layer for FullLayer {
        fn make_room(&self, bytes: Range<u64>, _: &Ranges) -> Result<bool, StoreError> {
            Err(StoreError::Full { wanted: bytes.end - bytes.start })
        }
    }

    #[test]
    fn refused_write_needs_no_new_layer() {
        let overlay = Overlay::new(FullLayer);
        let page = largesse_pages::base_page();
        overlay.write(0, &vec![1; page]).unwrap();
        assert_eq!(overlay.prepare(4 * page as u64), Ok(true));
        overlay.push(FullLayer);
        assert!(overlay.write(0, &vec![2; page]).is_err());
        assert_eq!(overlay.prepare(4 * page as u64), Ok(false), "the top layer is empty");
    }
}
