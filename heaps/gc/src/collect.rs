//! One collection.

use crate::blocks::{BLOCK, object_at};
use crate::heap::{Finalizers, Shared};
use crate::record::Record;
use crate::sync::{Ordering, lock};
use crate::world::{ATTENTION, Member};
use crate::{Language, Tracer, Word};
use std::time::Instant;

impl<L: Language> Shared<L> {
    /// Stop the world, mark, sweep, go on; or wait for whoever does.
    pub(crate) fn collect(&self, me: Option<&Record>) {
        let asked = Instant::now();
        let Some(stopped) = self.world.stop(me.map(Record::signal)) else { return };
        let began = Instant::now();
        let writing = self.allocating.write();
        let mut ledger = lock(&self.ledger);
        for record in &stopped.members {
            // SAFETY: the world stands still, and the caller is in no use of its own record.
            let (delegation, bumps) = unsafe { record.delegation(self.hides_bumps()) };
            delegation.retire(bumps);
        }
        ledger.retire();
        self.clear_marks(&ledger.in_use);
        let mut tracer = Tracer::new(&self.language, &self.blocks);
        for record in &stopped.members {
            // SAFETY: as above.
            unsafe { record.roots() }.iter().for_each(|&word| tracer.word(word));
        }
        self.language.roots(&mut tracer);
        let finalize = self.mark(tracer, &mut lock(&self.finalizers));
        let marked = Instant::now();
        if self.settings.poison {
            ledger.in_use.iter().for_each(|&block| self.blocks.poison(block));
        }
        let live = self.sweep(&mut ledger);
        let ran = asked.saturating_duration_since(ledger.resumed);
        let bytes = ledger.pace.budget().saturating_sub(ledger.budget);
        ledger.pace.observe(ran, bytes, asked.elapsed());
        ledger.budget = ledger.pace.set_budget(live.bytes);
        let used = ledger.used_blocks * BLOCK;
        let needed = used + ledger.budget;
        self.blocks.leave_holes(needed <= ledger.limit() && ledger.pace.affords_holes(used, live.bytes));
        let keep = ledger.pace.keep(needed);
        ledger.ground.purge(keep);
        if self.settings.verify {
            self.verify(&stopped.members, &ledger);
        }
        ledger.resumed = Instant::now();
        drop((ledger, writing));
        {
            let mut totals = lock(&self.totals);
            totals.live_objects = live.objects;
            totals.live_bytes = live.bytes;
            let collections = &mut totals.collections;
            collections.stopping += began - asked;
            collections.marking += marked - began;
            collections.sweeping += marked.elapsed();
            collections.objects += live.objects;
            collections.pauses.add(asked.elapsed());
        }
        drop(stopped);
        if let Some(me) = me {
            // Relaxed: it is this thread that looks.
            me.signal().poll.fetch_or(ATTENTION, Ordering::Relaxed);
        }
        if finalize {
            self.world.call_attention();
        }
    }

    /// Mark everything that can be reached; then what only finalizers keep. Returns whether there is something to
    /// finalize.
    fn mark(&self, mut tracer: Tracer<'_, L>, finalizers: &mut Finalizers) -> bool {
        finalizers.ready.iter().for_each(|&object| tracer.object(object_at(object)));
        // Weak slots first: whoever runs a finalizer must not meet others who still use the object.
        self.clear_weak(&tracer.drain(&self.crew));
        let blocks = &self.blocks;
        let is_marked = |address: &usize| blocks.offset(*address).is_some_and(|at| blocks.is_marked(at));
        let (alive, gone): (Vec<usize>, Vec<usize>) =
            finalizers.registered.iter().partition(|it| is_marked(it));
        gone.iter().for_each(|&object| tracer.object(object_at(object)));
        self.clear_weak(&tracer.drain(&self.crew));
        finalizers.registered = alive;
        finalizers.ready.extend(gone);
        !finalizers.ready.is_empty()
    }

    fn clear_weak(&self, objects: &[usize]) {
        for &address in objects {
            let Some(offset) = self.blocks.offset(address) else { continue };
            for index in 0..self.blocks.at_offset(offset).words() {
                // SAFETY: a slot of a live object, in a world that stands still.
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
