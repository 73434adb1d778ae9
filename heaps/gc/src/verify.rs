//! Verification of the whole heap after a collection. A broken invariant is a bug of the heap or of its language, and
//! a panic.

use crate::blocks::{BLOCK, Blocks, Offset, object_at};
use crate::heap::HeapShared;
use crate::keep::Keep;
use crate::record::Record;
use crate::sync::lock;
use crate::{Language, Layout, Tracer, Word};
use core::ptr::NonNull;
use std::collections::HashSet;
use std::sync::Arc;

/// This word overwrites dead cells under [`GcSettings::poison`](crate::GcSettings::poison): no address of any object.
/// A language that checks for it where it reads words finds lost roots immediately, not at the next collection.
pub const POISON: u64 = 0xdead_beef_dead_bee0;

/// Holds the objects reached without the help of marks.
#[derive(Debug, Default)]
pub(crate) struct Reached(HashSet<usize>);

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

impl<L: Language> HeapShared<L> {
    /// Panics unless the marked objects are the reachable ones and the keep's counts agree.
    pub(crate) fn verify(&self, members: &[Arc<Record>], keep: &Keep) {
        let mut tracer = Tracer::verifying(&self.language, &self.blocks);
        for record in members {
            // SAFETY: the world is stopped.
            unsafe { record.roots() }.iter().for_each(|&word| tracer.word(word));
        }
        self.language.roots(&mut tracer);
        lock(&self.finalizers).ready.iter().for_each(|&object| tracer.object(object_at(object)));
        let reached = tracer.look();
        let marked: usize = keep.in_use.iter().map(|&block| self.blocks.count_marks(block)).sum();
        assert_eq!(marked, reached.0.len(), "marked objects, and reachable ones");
        for &address in &reached.0 {
            self.verify_weak(address);
        }
        keep.verify(&self.blocks);
    }

    fn verify_weak(&self, address: usize) {
        let Some(block) = self.blocks.offset(address).map(|offset| self.blocks.at_offset(offset)) else {
            return;
        };
        if block.layout() != Layout::Weak {
            return;
        }
        for index in 0..block.words() {
            // SAFETY: a slot of a live object, while the world is stopped.
            let word = unsafe { object_at(address).cast::<Word>().add(index).read() };
            let target = L::reference(word).and_then(|it| self.blocks.offset(it.as_ptr().addr()));
            assert!(
                target.is_none_or(|at| self.blocks.is_marked(at)),
                "a weak slot of {address:#x} refers to a dead object"
            );
        }
    }
}
