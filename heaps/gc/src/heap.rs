//! Defines the heap, and the state its threads share.

use crate::blocks::{BLOCK, Blocks};
use crate::classes::CLASSES;
use crate::heap_spans::HeapSpans;
use crate::keep::Keep;
use crate::pace::Pace;
use crate::partial::Scope;
use crate::record::Record;
use crate::statistics::Collections;
use crate::sync::{Mutex, lock};
use crate::worker_pool::WorkerPool;
use crate::world::{Member, ThreadRegistry};
use crate::{AllocationClass, Cells, Delegated, GcSettings, Language, StartError, Statistics, Sync};
use largesse_arena::Backing;
use std::sync::{Arc, RwLock};
use std::time::Instant;

/// A garbage-collected heap. A clone refers to the same heap.
#[derive(Debug)]
pub struct Heap<L: Language>(pub(crate) Arc<HeapShared<L>>);

impl<L: Language> Clone for Heap<L> {
    fn clone(&self) -> Heap<L> {
        Heap(self.0.clone())
    }
}

/// The state that all threads of a heap share.
#[derive(Debug)]
pub(crate) struct HeapShared<L> {
    pub(crate) language: L,
    pub(crate) settings: GcSettings,
    pub(crate) blocks: Blocks,
    pub(crate) world: ThreadRegistry<Record>,
    pub(crate) pool: WorkerPool,
    pub(crate) keep: Mutex<Keep>,
    /// The lock of [`Sync::Rwlock`], which allocating threads share and a collection holds alone.
    pub(crate) allocating: RwLock<()>,
    pub(crate) finalizers: Mutex<Finalizers>,
    pub(crate) totals: Mutex<HeapTotals>,
    started: Instant,
}

/// The addresses of objects that were registered for finalization.
#[derive(Debug, Default)]
pub(crate) struct Finalizers {
    pub(crate) registered: Vec<usize>,
    pub(crate) ready: Vec<usize>,
}

/// Counts of events over the life of a heap.
#[derive(Debug)]
pub(crate) struct HeapTotals {
    pub(crate) collections: Collections,
    pub(crate) live_objects: u64,
    pub(crate) live_bytes: usize,
    /// Number of cells handed out to threads that have ended.
    pub(crate) cells: [u64; CLASSES],
    pub(crate) registered: u64,
}

impl<L: Language> Heap<L> {
    /// Creates an empty heap in `backing`, which it owns. Objects never move.
    pub fn new(
        language: L,
        settings: GcSettings,
        backing: impl Backing + Send + 'static,
    ) -> Result<Heap<L>, StartError> {
        let spans = HeapSpans::new(Box::new(backing));
        let blocks = Blocks::new(spans.start(), spans.blocks())?;
        let pace = Pace::new(settings.floor, settings.gc_share);
        let keep = Keep::new(spans, settings.limit, settings.floor, pace)?;
        Ok(Heap(Arc::new(HeapShared {
            language,
            blocks,
            world: ThreadRegistry::new(),
            pool: WorkerPool::new(settings.gc_threads),
            keep: Mutex::new(keep),
            allocating: RwLock::new(()),
            finalizers: Mutex::default(),
            totals: Mutex::new(HeapTotals {
                collections: Collections::default(),
                live_objects: 0,
                live_bytes: 0,
                cells: [0; CLASSES],
                registered: 0,
            }),
            started: Instant::now(),
            settings,
        })))
    }

    /// Returns the language.
    #[must_use]
    pub fn language(&self) -> &L {
        &self.0.language
    }

    /// Returns the settings the heap was created with.
    #[must_use]
    pub fn settings(&self) -> &GcSettings {
        &self.0.settings
    }

    /// Collects now, or waits for the collection that is under way. Frees objects that no root leads to, even when
    /// this thread still holds their addresses.
    pub fn collect(&self) {
        self.0.collect(self.0.me().as_deref(), Scope::Full);
    }

    /// Makes the next poll of every thread return `true`.
    pub fn call_attention(&self) {
        self.0.world.call_attention();
    }

    /// Returns the heap's statistics. Stops all threads for a moment.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

impl<L: Language> HeapShared<L> {
    /// Returns the record of the calling thread, if it is registered and running.
    pub(crate) fn me(&self) -> Option<Arc<Record>> {
        self.world
            .members()
            .into_iter()
            .find(|record| record.is_of_this_thread() && record.signal().is_running())
    }

    /// Returns whether machine code must not allocate inline, so that the bumps it sees must stay empty.
    pub(crate) fn hides_bumps(&self) -> bool {
        self.settings.sync != Sync::Safepoint || self.settings.stress > 0
    }

    fn statistics(&self) -> Statistics {
        let me = self.me();
        let me = me.as_deref();
        let stopped = loop {
            if let Some(stopped) = self.world.stop(me.map(Record::signal)) {
                break stopped;
            }
        };
        let guard = lock(&self.keep);
        let keep = &*guard;
        let totals = lock(&self.totals);
        let mut sums = totals.cells;
        let mut delegated = Vec::new();
        for record in &stopped.members {
            // SAFETY: the world is stopped, and this thread borrows nothing else from its own record.
            let (delegation, bumps) = unsafe { record.delegation(self.hides_bumps()) };
            for class in AllocationClass::all() {
                sums[class.index()] += delegation.cells(class, &bumps[class.index()]);
            }
            let cells = cells(|class| delegation.free_cells(class, &bumps[class.index()], &self.blocks));
            delegated.push(Delegated { thread: record.number(), cells });
        }
        for class in AllocationClass::all() {
            sums[class.index()] += keep.undelegated.cells(class, &keep.undelegated_bumps[class.index()]);
        }
        let statistics = Statistics {
            requests: cells(|class| sums[class.index()]),
            large_requests: keep.large_requests,
            large_words: keep.large_words,
            keep_visits: keep.visits,
            delegated,
            collections: totals.collections.clone(),
            age: self.started.elapsed(),
            live_objects: totals.live_objects,
            live_bytes: totals.live_bytes,
            budget_bytes: keep.pace.budget(),
            used_bytes: keep.used_blocks * BLOCK,
            warm_bytes: keep.spans.warm_bytes(),
            limit_bytes: keep.limit(),
            gc_threads: self.pool.workers(),
        };
        drop((guard, totals));
        drop(stopped);
        statistics
    }
}

/// Returns the cell counts of all allocation classes whose `count` is not 0.
fn cells(count: impl Fn(AllocationClass) -> u64) -> Vec<Cells> {
    let all = AllocationClass::all().map(|class| Cells {
        layout: class.layout(),
        words: class.words(),
        cells: count(class),
    });
    all.filter(|it| it.cells > 0).collect()
}
