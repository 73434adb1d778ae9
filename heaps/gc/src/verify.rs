//! Verifies the whole heap after a collection. A broken invariant is a bug of the heap or of its language, and causes
//! a panic.

use crate::blocks::{BLOCK, object_at};
use crate::heap::HeapShared;
use crate::keep::Keep;
use crate::partial::Scope;
use crate::record::Record;
use crate::sync::lock;
use crate::{Language, Layout, Tracer, Word};
use std::sync::Arc;

impl<L: Language> HeapShared<L> {
    /// Panics unless the marked objects are the reachable ones and the keep's counts agree. After a partial collection,
    /// marked objects need not be reachable, but all that they refer to must be marked.
    pub(crate) fn verify(&self, members: &[Arc<Record>], keep: &Keep, scope: Scope) {
        let mut tracer = Tracer::verifying(&self.language, &self.blocks);
        for record in members {
            // SAFETY: the world is stopped.
            unsafe { record.roots() }.iter().for_each(|&word| tracer.word(word));
        }
        self.language.roots(&mut tracer);
        lock(&self.finalizers).ready.iter().for_each(|&object| tracer.object(object_at(object)));
        if scope == Scope::Partial {
            let marked = keep.in_use.iter().flat_map(|&block| self.blocks.marked(block, 0..BLOCK));
            marked.for_each(|offset| tracer.object(object_at(self.blocks.address(0) + offset.get())));
        }
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
