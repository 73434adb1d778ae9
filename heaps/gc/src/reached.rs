//! Verifies single objects: holds the set of objects reached, and checks each once.

use crate::Layout;
use crate::blocks::{BLOCK, Blocks, Offset, POISON};
use core::ptr::NonNull;
use std::collections::HashSet;

/// The addresses of the objects reached, found without the help of marks.
#[derive(Debug, Default)]
pub(crate) struct Reached(pub(crate) HashSet<usize>);

impl Reached {
    /// Checks an object; returns `false` when it was checked before.
    pub(crate) fn first_time(&mut self, object: NonNull<u64>, offset: Offset, blocks: &Blocks) -> bool {
        let address = object.as_ptr().expose_provenance();
        if !self.0.insert(address) {
            return false;
        }
        let block = blocks.at_offset(offset);
        assert!(block.words() > 0, "{address:#x} is reachable, but in no block in use");
        let inside = offset.get() % BLOCK;
        let starts = if block.is_large() { inside == 0 } else { inside.is_multiple_of(block.words() * 8) };
        assert!(
            starts,
            "{address:#x} is reachable, but not the start of an object of {} words",
            block.words()
        );
        assert!(blocks.is_marked(offset), "{address:#x} is reachable, but not marked");
        if block.layout() != Layout::Opaque {
            for index in 0..block.words() {
                // SAFETY: the checks above: the object is a cell or large object in use.
                let word = unsafe { object.add(index).read() };
                assert!(word != POISON, "word {index} of {address:#x}, which is reachable, is poison");
            }
        }
        true
    }
}
