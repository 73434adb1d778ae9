//! Runs a collection: stops the world, marks, sweeps and resumes.

use crate::blocks::{BLOCK, object_at};
use crate::heap::{Finalizers, HeapShared};
use crate::keep::Keep;
use crate::partial::{OldMarks, Scope, Unchanged};
use crate::record::Record;
use crate::sync::{Ordering, lock};
use crate::world::{ATTENTION, Member, Stopped};
use crate::{Language, Tracer, Word};
use largesse_arena::Reads;
use std::sync::Arc;
use std::time::Instant;

impl<L: Language> HeapShared<L> {
    /// Runs a collection, or waits for the end of the one that is under way. After a request for a full one, either has
    /// been full.
    pub(crate) fn collect(&self, me: Option<&Record>, scope: Scope) {
        let asked = Instant::now();
        loop {
            if let Some(stopped) = self.world.stop(me.map(Record::signal)) {
                return self.collect_stopped(stopped, me, scope, asked);
            }
            if scope == Scope::Partial || lock(&self.keep).old.is_none_or(|old| old.are_exact()) {
                return;
            }
        }
    }

    /// Runs a collection that was requested at the time `asked`, while the world is stopped.
    fn collect_stopped(
        &self,
        stopped: Stopped<'_, Record>,
        me: Option<&Record>,
        scope: Scope,
        asked: Instant,
    ) {
        let began = Instant::now();
        let writing = self.allocating.write();
        let mut keep = lock(&self.keep);
        let (far, before) = (keep.spans.far_bytes(), keep.old.take());
        let scope = scope.choose(before, far, keep.used_blocks * BLOCK, self.settings.floor);
        let tracer = self.begin(&stopped.members, &mut keep, scope);
        let finalize = self.mark(tracer, &mut lock(&self.finalizers));
        let marked = Instant::now();
        if self.settings.poison {
            keep.in_use.iter().for_each(|&block| self.blocks.poison(block));
        }
        let live = self.sweep(&mut keep);
        self.set_pace(&mut keep, asked, live.bytes);
        let read = keep.spans.far_bytes().read - far.read;
        keep.spans.watch();
        keep.old = Some(OldMarks::after(scope, live.bytes, before));
        if self.settings.verify {
            self.verify(&stopped.members, &keep, scope);
        }
        keep.resumed = Instant::now();
        drop((keep, writing));
        {
            let mut totals = lock(&self.totals);
            totals.live_objects = live.objects;
            totals.live_bytes = live.bytes;
            let collections = &mut totals.collections;
            collections.stopping += began - asked;
            collections.marking += marked - began;
            collections.sweeping += marked.elapsed();
            collections.objects += live.objects;
            collections.add(scope, far.stored, read);
            collections.pauses.add(asked.elapsed());
        }
        drop(stopped);
        if let Some(me) = me {
            // Relaxed: only this thread reads it.
            me.signal().poll.fetch_or(ATTENTION, Ordering::Relaxed);
        }
        if finalize {
            self.world.call_attention();
        }
    }

    /// Takes all free cells from the threads and the keep. Returns a tracer that has reached the roots and, in a partial
    /// collection, the old slots that may have changed.
    fn begin(&self, members: &[Arc<Record>], keep: &mut Keep, scope: Scope) -> Tracer<'_, L> {
        for record in members {
            // SAFETY: the world is stopped, and the caller borrows nothing from its own record.
            let (delegation, bumps) = unsafe { record.delegation(self.hides_bumps()) };
            delegation.retire(bumps);
        }
        keep.retire();
        let mut tracer = Tracer::new(&self.language, &self.blocks);
        match scope {
            Scope::Full => {
                keep.spans.only_read(Reads::All);
                self.clear_marks(&keep.in_use);
            }
            Scope::Partial => {
                keep.spans.only_read(Reads::Changed);
                tracer.add_changed(&keep.in_use, &Unchanged::of(&keep.spans));
            }
        }
        for record in members {
            // SAFETY: as above.
            unsafe { record.roots() }.iter().for_each(|&word| tracer.word(word));
        }
        self.language.roots(&mut tracer);
        tracer
    }

    /// Decides how much the threads may allocate until the next collection, and releases memory beyond that, after a
    /// collection that was requested at the time `asked` and found `live` bytes alive.
    fn set_pace(&self, keep: &mut Keep, asked: Instant, live: usize) {
        let ran = asked.saturating_duration_since(keep.resumed);
        let bytes = keep.pace.budget().saturating_sub(keep.budget);
        keep.pace.observe(ran, bytes, asked.elapsed());
        keep.budget = keep.pace.set_budget(live);
        let used = keep.used_blocks * BLOCK;
        let needed = used + keep.budget;
        self.blocks.leave_holes(needed <= keep.limit() && keep.pace.affords_holes(used, live));
        let retained = keep.pace.retain(needed);
        keep.spans.purge(retained);
    }

    /// Marks every object that the tracer reaches, then those reachable from finalizable objects only. Returns whether
    /// there are objects to finalize.
    fn mark(&self, mut tracer: Tracer<'_, L>, finalizers: &mut Finalizers) -> bool {
        finalizers.ready.iter().for_each(|&object| tracer.object(object_at(object)));
        // Weak slots first: a thread that runs a finalizer must not share the object with others.
        self.clear_weak(&tracer.drain(&self.pool));
        let blocks = &self.blocks;
        let is_marked = |address: &usize| blocks.offset(*address).is_some_and(|at| blocks.is_marked(at));
        let (alive, gone): (Vec<usize>, Vec<usize>) =
            finalizers.registered.iter().partition(|it| is_marked(it));
        gone.iter().for_each(|&object| tracer.object(object_at(object)));
        self.clear_weak(&tracer.drain(&self.pool));
        finalizers.registered = alive;
        finalizers.ready.extend(gone);
        !finalizers.ready.is_empty()
    }

    fn clear_weak(&self, objects: &[usize]) {
        for &address in objects {
            let Some(offset) = self.blocks.offset(address) else { continue };
            for index in 0..self.blocks.at_offset(offset).words() {
                // SAFETY: a slot of a live object, while the world is stopped.
                let slot = unsafe { object_at(address).cast::<Word>().add(index) };
                // SAFETY: as above.
                let target = L::reference(unsafe { slot.read() });
                let at = target.and_then(|target| self.blocks.offset(target.as_ptr().addr()));
                if at.is_some_and(|at| !self.blocks.is_marked(at)) {
                    // SAFETY: as above.
                    unsafe { slot.write(L::CLEARED) };
                }
            }
        }
    }
}
