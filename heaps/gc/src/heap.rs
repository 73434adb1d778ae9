//! A heap, and what its threads share.

use crate::blocks::{BLOCK, Blocks};
use crate::classes::LANES;
use crate::worker_pool::Crew;
use crate::heap_spans::Ground;
use crate::keep::Ledger;
use crate::pace::Pace;
use crate::record::Record;
use crate::statistics::Collections;
use crate::sync::{Mutex, lock};
use crate::world::{Member, World};
use crate::{Cells, Delegated, Lane, Language, Seat, Settings, StartError, Statistics, Sync};
use largesse_arena::Backing;
use std::sync::{Arc, RwLock};
use std::time::Instant;

/// A garbage-collected heap. Clones are the same heap.
#[derive(Debug)]
pub struct Heap<L: Language>(pub(crate) Arc<Shared<L>>);

impl<L: Language> Clone for Heap<L> {
    fn clone(&self) -> Heap<L> {
        Heap(self.0.clone())
    }
}

/// What the threads of a heap share.
#[derive(Debug)]
pub(crate) struct Shared<L> {
    pub(crate) language: L,
    pub(crate) settings: Settings,
    pub(crate) blocks: Blocks,
    pub(crate) world: World<Record>,
    pub(crate) crew: Crew,
    pub(crate) ledger: Mutex<Ledger>,
    /// For [`Sync::Rwlock`].
    pub(crate) allocating: RwLock<()>,
    pub(crate) finalizers: Mutex<Finalizers>,
    pub(crate) totals: Mutex<Totals>,
    started: Instant,
}

/// Addresses of objects whose end the language wants to know.
#[derive(Debug, Default)]
pub(crate) struct Finalizers {
    pub(crate) registered: Vec<usize>,
    pub(crate) ready: Vec<usize>,
}

/// Sums over the life of a heap.
#[derive(Debug)]
pub(crate) struct Totals {
    pub(crate) collections: Collections,
    pub(crate) live_objects: u64,
    pub(crate) live_bytes: usize,
    /// Cells handed out to threads that are gone.
    pub(crate) cells: [u64; LANES],
    pub(crate) enrolled: u64,
}

impl<L: Language> Heap<L> {
    /// An empty heap on a backing of its own. Objects lie at addresses of `backing`, and never move.
    pub fn new(
        language: L,
        settings: Settings,
        backing: impl Backing + Send + 'static,
    ) -> Result<Heap<L>, StartError> {
        let ground = Ground::new(Box::new(backing));
        let blocks = Blocks::new(ground.start(), ground.blocks())?;
        let pace = Pace::new(settings.floor, settings.gc_share);
        let ledger = Ledger::new(ground, settings.limit, settings.floor, pace)?;
        Ok(Heap(Arc::new(Shared {
            language,
            blocks,
            world: World::new(),
            crew: Crew::new(settings.gc_threads),
            ledger: Mutex::new(ledger),
            allocating: RwLock::new(()),
            finalizers: Mutex::default(),
            totals: Mutex::new(Totals {
                collections: Collections::default(),
                live_objects: 0,
                live_bytes: 0,
                cells: [0; LANES],
                enrolled: 0,
            }),
            started: Instant::now(),
            settings,
        })))
    }

    /// The language.
    #[must_use]
    pub fn language(&self) -> &L {
        &self.0.language
    }

    /// What was chosen.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Announce a thread. The parent calls this, and hands the seat to the thread, so that
    /// collections know the thread before it can allocate.
    pub fn enrol(&self) -> Seat<L> {
        let number = {
            let mut totals = lock(&self.0.totals);
            totals.enrolled += 1;
            totals.enrolled
        };
        let record = Arc::new(Record::new(number, self.0.settings.root_words));
        lock(&self.0.ledger).threads += 1;
        self.0.world.enrol(record.clone());
        Seat::new(self.clone(), record)
    }

    /// Collect now (or wait for the collection that is under way). Objects that only this thread knows and that
    /// are no roots are gone afterwards.
    pub fn collect(&self) {
        self.0.collect(self.0.me().as_deref());
    }

    /// Ask every thread to look up at its next poll, which then answers `true`.
    pub fn call_attention(&self) {
        self.0.world.call_attention();
    }

    /// What the heap can say about itself. All threads stand still for a moment.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
}

impl<L: Language> Shared<L> {
    /// The thread that asks, if it is one of the heap's and not in a wait.
    pub(crate) fn me(&self) -> Option<Arc<Record>> {
        self.world
            .members()
            .into_iter()
            .find(|record| record.is_of_this_thread() && record.signal().is_running())
    }

    /// Whether machine code must find its bumps empty.
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
        let guard = lock(&self.ledger);
        let ledger = &*guard;
        let totals = lock(&self.totals);
        let mut sums = totals.cells;
        let mut delegated = Vec::new();
        for record in &stopped.members {
            // SAFETY: the world stands still, and this thread is in no other use of its own record.
            let (delegation, bumps) = unsafe { record.delegation(self.hides_bumps()) };
            for lane in Lane::all() {
                sums[lane.index()] += delegation.cells(lane, &bumps[lane.index()]);
            }
            let cells = cells(|lane| delegation.free_cells(lane, &bumps[lane.index()], &self.blocks));
            delegated.push(Delegated { thread: record.number(), cells });
        }
        for lane in Lane::all() {
            sums[lane.index()] += ledger.undelegated.cells(lane, &ledger.undelegated_bumps[lane.index()]);
        }
        let statistics = Statistics {
            requests: cells(|lane| sums[lane.index()]),
            large_requests: ledger.large_requests,
            large_words: ledger.large_words,
            ledger_visits: ledger.visits,
            delegated,
            collections: totals.collections.clone(),
            age: self.started.elapsed(),
            live_objects: totals.live_objects,
            live_bytes: totals.live_bytes,
            budget_bytes: ledger.pace.budget(),
            used_bytes: ledger.used_blocks * BLOCK,
            warm_bytes: ledger.ground.warm_bytes(),
            limit_bytes: ledger.limit(),
            gc_threads: self.crew.workers(),
        };
        drop((guard, totals));
        drop(stopped);
        statistics
    }
}

/// Lanes of which there are any.
fn cells(count: impl Fn(Lane) -> u64) -> Vec<Cells> {
    let all =
        Lane::all().map(|lane| Cells { layout: lane.layout(), words: lane.words(), cells: count(lane) });
    all.filter(|it| it.cells > 0).collect()
}
