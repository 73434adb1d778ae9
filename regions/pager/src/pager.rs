//! The pager: states of pages, and the two ways between here and the store.
//!
//! # Picture
//! ```text
//!        fault, zero                    fault, from the store
//!   Zero ─────────► Filling ──► Clean ◄───────────── Filling ◄── Away
//!     ▲                │          │ write                          ▲
//!     │                └──────► Dirty                              │
//!     └── all zero, or idle ─────┴──► Leaving ── written, or same ─┘
//! ```
//! One lock guards the states; transfers run outside of it, on pages that are in flight and belong
//! to the thread that put them there. Whoever meets a page in flight leaves a mark (`waited`) and is
//! woken at the end of the flight.
//!
//! # No write is lost
//! A page is protected against writing before it is copied, and forgotten only after. A write in
//! between stops in a fault, finds the page `Leaving`, and is repeated after it has left.

use crate::page::{Page, State, run_around, runs};
use crate::replace::{Part, Queue, Run};
use crate::streams::Streams;
use crate::tune::{Core, Costs, Iteration, Trial};
use crate::{Count, Counters, Kernel, PageNumber, PageStore, StoreError};
use core::ops::Range;
use largesse_pages::Table;
use largesse_pages::fault::FaultError;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pages made writable at once, from the one that is written on: a loop writes the next ones too.
const WRITE_AHEAD: usize = 16;
/// The set a trial starts with.
const FIRST_SET: usize = 16;
/// From here on, letting a set leave takes longer than waking the thread that does it.
const LARGE_SET: usize = 8;
/// Pages that are fetched ahead of need at once.
const MOST_AHEAD: usize = 256;
/// Local memory is never less than this number of pages.
pub const LEAST_LOCAL: usize = 64;

/// Why far memory cannot go on. Nothing wrong was handed to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The store failed.
    Store(StoreError),
    /// A page came back different from what left.
    Damaged {
        /// The page.
        page: PageNumber,
        /// What the store was given, as a checksum.
        sent: u32,
        /// What came back.
        came: u32,
    },
    /// The kernel refused.
    Kernel(FaultError),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Store(error) => write!(f, "the store failed: {error}"),
            Trouble::Damaged { page, sent, came } => write!(
                f,
                "page {page} came back from the store damaged or out of date (checksum {came:08x}, {sent:08x} was sent)"
            ),
            Trouble::Kernel(FaultError(errno)) => {
                write!(f, "userfaultfd: {}", std::io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for Trouble {}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error)
    }
}

impl From<FaultError> for Trouble {
    fn from(error: FaultError) -> Trouble {
        Trouble::Kernel(error)
    }
}

/// How many base pages move together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetSize {
    /// So many, a power of two.
    Fixed(usize),
    /// As many as turn out well.
    Auto,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// The page.
    pub page: PageNumber,
    /// To write to it.
    pub write: bool,
}

/// Memory for one thread that serves faults: pages on their way from the store.
#[derive(Debug)]
pub struct Buffer {
    bytes: largesse_pages::Table<u8>,
    zeros: largesse_pages::Table<u8>,
}

impl Buffer {
    /// Room for a set of `pages` pages.
    #[must_use]
    pub fn new(pages: usize) -> Option<Buffer> {
        let len = pages * largesse_pages::base_page();
        let (mut bytes, mut zeros) = (Table::new(len)?, Table::new(len)?);
        // The way of a fault must not fault into memory that is not there yet.
        bytes.fill(1);
        zeros.fill(0);
        Some(Buffer { bytes, zeros })
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) pages: Table<Page>,
    pub(crate) queue: Queue,
    /// Pages that take local memory.
    pub(crate) resident: usize,
    /// Pages that may.
    local: usize,
    sets: Sets,
    /// Sequences of faults, unless nothing is to be fetched ahead.
    streams: Option<Streams>,
    /// What leaving costs, for the trial.
    leaving: Leaving,
    /// The number of the compute core that runs, and the sets it swapped in.
    core: (u16, usize),
}

/// A page on its way here.
#[derive(Clone, Copy, Debug)]
struct Coming {
    /// Checksum of what must come.
    sum: u32,
    /// It may be written at once.
    dirty: bool,
}

/// Base pages that move together, a power of two.
#[derive(Debug)]
enum Sets {
    /// As somebody said.
    Fixed(usize),
    /// Being tried.
    Auto(Trial),
}

impl Sets {
    const fn now(&self) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(trial) => trial.set(),
        }
    }

    fn at(&self, page: PageNumber) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(trial) => trial.set_at(page).0,
        }
    }
}

/// Pages that left lately, what that took, and how many pages came back meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Leaving {
    pages: f64,
    ns: f64,
    back: f64,
}

impl Leaving {
    fn left(&mut self, pages: usize, ns: u64) {
        if self.pages > 65536.0 {
            *self = Leaving { pages: self.pages / 2.0, ns: self.ns / 2.0, back: self.back / 2.0 };
        }
        self.pages += pages as f64;
        self.ns += ns as f64;
    }

    fn costs(self) -> Costs {
        let pages = self.pages.max(1.0);
        Costs { evict_ns: self.ns / pages, come_back: (self.back / pages).min(1.0) }
    }
}

/// Far memory over a store.
#[derive(Debug)]
pub struct Pager<K, S> {
    pub(crate) kernel: K,
    pub(crate) store: S,
    pub(crate) inner: Mutex<Inner>,
    /// Something in flight has landed, or a page has left.
    landed: Condvar,
    /// The evictor has something to do.
    pub(crate) crowded: Condvar,
    pub(crate) bounds: crate::Segments,
    /// Counts.
    pub counters: Counters,
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// A pager for the pages of `bounds`, of which `local` may be here. `None` when the kernel has no
    /// address space for the table.
    pub fn new(
        kernel: K,
        store: S,
        bounds: crate::Segments,
        local: usize,
        size: SetSize,
        prefetch: bool,
    ) -> Option<Pager<K, S>> {
        let inner = Inner {
            pages: Table::new(bounds.pages())?,
            queue: Queue::new(),
            resident: 0,
            local: local.max(LEAST_LOCAL),
            sets: match size {
                SetSize::Fixed(set) => Sets::Fixed(set),
                SetSize::Auto => Sets::Auto(Trial::new(FIRST_SET)),
            },
            streams: prefetch.then(Streams::new),
            leaving: Leaving::default(),
            core: (0, 0),
        };
        Some(Pager {
            kernel,
            store,
            inner: Mutex::new(inner),
            landed: Condvar::new(),
            crowded: Condvar::new(),
            bounds,
            counters: Counters::default(),
        })
    }

    /// The kernel.
    pub const fn kernel(&self) -> &K {
        &self.kernel
    }

    /// Pages that are here, and pages that may be.
    pub fn resident(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.resident, inner.local)
    }

    /// Base pages that move together.
    pub fn set(&self) -> usize {
        self.lock().sets.now()
    }

    /// From now on so many base pages move together (a power of two). Pages that came in other
    /// sets stay as they are.
    pub fn set_set(&self, pages: usize) {
        debug_assert!(pages.is_power_of_two());
        self.lock().sets = Sets::Fixed(pages);
    }

    /// A compute core begins: what is swapped in from now on is its working set.
    pub fn core_begins(&self) {
        let mut inner = self.lock();
        inner.core = (inner.core.0.wrapping_add(1).max(1), 0);
    }

    /// It ends, after `took`; `core` decides the size of sets from here on.
    pub fn core_ends(&self, core: &mut Core, took: Duration) -> Iteration {
        let mut inner = self.lock();
        let now = Iteration { set: inner.sets.now(), working_set: inner.core.1, local: inner.local, took };
        inner.sets = Sets::Fixed(core.end(now));
        inner.core.1 = 0;
        self.tell(&inner);
        now
    }

    /// From now on at most so many pages are here.
    pub fn set_local(&self, pages: usize) {
        self.lock().local = pages.max(LEAST_LOCAL);
        self.crowded.notify_one();
    }

    /// Serves one fault. When it returns, the thread that waited runs again, or will when a page in
    /// flight lands. `ahead` gets what should be fetched next.
    pub fn serve(
        &self,
        touch: Touch,
        buffer: &mut Buffer,
        ahead: &mut VecDeque<Touch>,
    ) -> Result<(), Trouble> {
        let began = Instant::now();
        self.counters.add(Count::Faults, 1);
        let mut inner = self.lock();
        if !inner.pages[touch.page].state.is_resident() {
            inner.look_ahead(touch, &self.bounds.around(touch.page), ahead);
        }
        self.bring(inner, touch, buffer)?;
        self.counters.add(Count::WaitNs, nanoseconds(began));
        Ok(())
    }

    /// Fetches the set of a page that nobody waits for yet.
    pub fn prefetch(&self, touch: Touch, buffer: &mut Buffer) -> Result<(), Trouble> {
        let inner = self.lock();
        if inner.pages[touch.page].state != State::Away {
            return Ok(()); // it came, or there is nothing to fetch
        }
        let set = inner.set_around(touch.page, &self.bounds.around(touch.page)).len();
        if inner.resident + set > inner.local {
            return Ok(()); // nothing leaves for what is only foreseen
        }
        let before = self.counters.get(Count::Fills);
        self.bring(inner, touch, buffer)?;
        self.counters.add(Count::Prefetched, self.counters.get(Count::Fills) - before);
        Ok(())
    }

    /// Brings the set of a page.
    fn bring<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        touch: Touch,
        buffer: &mut Buffer,
    ) -> Result<(), Trouble> {
        let (range, from) = loop {
            let page = &mut inner.pages[touch.page];
            match page.state {
                State::Filling | State::Leaving => {
                    page.waited = true;
                    return Ok(());
                }
                State::Dirty => {
                    drop(inner);
                    self.kernel.wake(touch.page..touch.page + 1);
                    return Ok(());
                }
                State::Clean => return self.touch_clean(inner, touch),
                State::Zero | State::Away => {}
            }
            let range = inner.set_around(touch.page, &self.bounds.around(touch.page));
            if inner.resident + range.len() <= inner.local {
                break (range, inner.pages[touch.page].state);
            }
            let waited = Instant::now();
            let roomy;
            (inner, roomy) = self.make_room(inner, range.len())?;
            self.counters.add(Count::RoomNs, nanoseconds(waited));
            if !roomy {
                // Everything is in flight or pinned: one page over the limit, and counted.
                self.counters.add(Count::OverLimit, 1);
                let from = inner.pages[touch.page].state;
                if !from.is_resident() {
                    break (touch.page..touch.page + 1, from);
                }
            }
        };
        let back = inner.back(touch.page);
        let coming: Vec<_> = range.clone().map(|page| inner.coming(page, touch)).collect();
        if from == State::Away {
            inner.leaving.back += range.len() as f64;
            inner.swapped_in(touch.page);
        }
        for page in range.clone() {
            inner.pages[page].state = State::Filling;
        }
        inner.resident += range.len();
        let behind = inner.resident + inner.evictor_starts() > inner.local;
        drop(inner);
        if behind {
            self.crowded.notify_one();
        }
        let served = Instant::now();

        match from {
            State::Zero => self.fill_zero(&range, touch.write, buffer)?,
            _ => self.fill(&range, &coming, buffer)?,
        }

        let mut inner = self.lock();
        let mut waited = false;
        for number in range.clone() {
            let page = &mut inner.pages[number];
            let dirty = if from == State::Zero { touch.write } else { coming[number - range.start].dirty };
            page.state = if dirty { State::Dirty } else { State::Clean };
            waited |= core::mem::take(&mut page.waited);
        }
        let local = inner.local;
        inner.queue.arrive(Run { first: number(range.start), pages: number(range.len()) }, local, back);
        inner.tidy();
        let costs = inner.leaving.costs();
        if let Sets::Auto(trial) = &mut inner.sets {
            trial.filled(touch.page, range.len(), nanoseconds(served), costs);
        }
        self.tell(&inner);
        drop(inner);
        self.landed.notify_all();
        if waited {
            self.kernel.wake(range);
        }
        Ok(())
    }

    /// The page is here: a write makes it and its next neighbours dirty, a read only came too late.
    fn touch_clean(&self, mut inner: MutexGuard<'_, Inner>, touch: Touch) -> Result<(), Trouble> {
        if !touch.write {
            drop(inner);
            self.kernel.wake(touch.page..touch.page + 1);
            return Ok(());
        }
        self.counters.add(Count::WriteFaults, 1);
        let bounds = self.bounds.around(touch.page);
        let set = inner.sets.at(touch.page);
        let first = (touch.page / set * set).max(bounds.start);
        let end = (first + set).min(bounds.end);
        let near = touch.page..touch.page + WRITE_AHEAD;
        let written = runs(first..end, |number| {
            let page = &inner.pages[number];
            (page.state == State::Clean && (near.contains(&number) || page.changes)).then_some(())
        });
        for (range, ()) in written {
            // Under the lock: nobody may take the pages for clean ones in between.
            for page in range.clone() {
                inner.pages[page].state = State::Dirty;
            }
            self.kernel.protect(range, false)?;
        }
        Ok(())
    }

    /// Makes new pages. `dirty`: who writes to one new page writes to its neighbours, so that all of
    /// them may be written, without a second fault for each.
    fn fill_zero(&self, range: &Range<PageNumber>, dirty: bool, buffer: &Buffer) -> Result<(), Trouble> {
        let len = range.len() * self.kernel.page();
        self.kernel.fill(range.start, &buffer.zeros[..len], !dirty)?;
        self.counters.add(Count::ZeroFills, range.len() as u64);
        Ok(())
    }

    /// Brings pages from the store, those of `coming` that are dirty at once writable.
    fn fill(&self, range: &Range<PageNumber>, coming: &[Coming], buffer: &mut Buffer) -> Result<(), Trouble> {
        let page = self.kernel.page();
        let len = range.len() * page;
        let bytes = &mut buffer.bytes[..len];
        self.store.read((range.start * page) as u64, bytes)?;
        self.counters.add(Count::Fills, range.len() as u64);
        self.counters.add(Count::BytesIn, len as u64);
        for ((number, coming), bytes) in range.clone().zip(coming).zip(bytes.chunks_exact(page)) {
            let came = crc32fast::hash(bytes);
            if came != coming.sum {
                return Err(Trouble::Damaged { page: number, sent: coming.sum, came });
            }
        }
        for (part, dirty) in runs(range.clone(), |number| Some(coming[number - range.start].dirty)) {
            let at = (part.start - range.start) * page;
            self.kernel.fill(part.start, &bytes[at..at + part.len() * page], !dirty)?;
        }
        Ok(())
    }

    /// Lets pages leave until `wanted` more fit. `false`: nothing can leave.
    fn make_room<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        wanted: usize,
    ) -> Result<(MutexGuard<'a, Inner>, bool), Trouble> {
        let mut patience = 200;
        while inner.resident + wanted > inner.local {
            let leaving;
            (inner, leaving) = self.evict_one(inner)?;
            if leaving {
                continue;
            }
            // Others are carrying pages out; if none are, nothing will ever change.
            if patience == 0 {
                return Ok((inner, false));
            }
            patience -= 1;
            inner = self
                .landed
                .wait_timeout(inner, Duration::from_millis(1))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok((inner, true))
    }

    /// Lets one run of pages leave. `false`: there is none that could.
    fn evict_one<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> Result<(MutexGuard<'a, Inner>, bool), Trouble> {
        loop {
            let local = inner.local;
            let Some((run, part)) = inner.queue.leave(local) else { return Ok((inner, false)) };
            let range = run.first as usize..(run.first + run.pages) as usize;
            let going = runs(range, |page| {
                let page = inner.pages[page];
                matches!(page.state, State::Clean | State::Dirty).then_some(page.state)
            });
            if going.is_empty() {
                continue; // they left another way
            }
            for (range, state) in &going {
                for page in range.clone() {
                    let page = &mut inner.pages[page];
                    page.changes &= *state == State::Dirty;
                    page.state = State::Leaving;
                }
            }
            drop(inner);
            let began = Instant::now();
            let outcome = self.carry_out(&going);
            let mut inner = self.lock();
            let gone = going.iter().map(|(range, _)| range.len()).sum();
            inner.leaving.left(gone, nanoseconds(began));
            let mut waited = Vec::new();
            let clock = inner.queue.clock();
            for (range, _) in &going {
                for number in range.clone() {
                    let page = &mut inner.pages[number];
                    if outcome.is_err() {
                        page.state = State::Dirty;
                    } else {
                        page.state = if page.stored && !page.idle { State::Away } else { State::Zero };
                        page.left = clock;
                        page.from_kept = part == Part::Kept;
                    }
                    if core::mem::take(&mut page.waited) {
                        waited.push(number);
                    }
                }
                if outcome.is_ok() {
                    inner.resident -= range.len();
                    self.counters.add(Count::Evictions, range.len() as u64);
                }
            }
            outcome?;
            self.tell(&inner);
            self.landed.notify_all();
            for page in waited {
                self.kernel.wake(page..page + 1);
            }
            return Ok((inner, true));
        }
    }

    /// Writes what must be written of pages that are leaving, and forgets them here.
    fn carry_out(&self, going: &[(Range<PageNumber>, State)]) -> Result<(), Trouble> {
        for (range, state) in going {
            if *state == State::Dirty {
                self.kernel.protect(range.clone(), true)?;
                self.write_back(range)?;
            }
            self.kernel.forget(range.clone())?;
        }
        Ok(())
    }

    /// Sends protected, resident pages to the store: none that is zero, none that nobody wants.
    fn write_back(&self, range: &Range<PageNumber>) -> Result<(), Trouble> {
        let size = self.kernel.page();
        // SAFETY: the pages are `Leaving`: resident, protected, and nobody else's until they land.
        let bytes = unsafe { self.kernel.contents(range.clone()) };
        let wanted: Vec<_> = {
            let inner = self.lock();
            range.clone().map(|page| !inner.pages[page].idle).collect()
        };
        let sums: Vec<Option<u32>> = bytes
            .chunks_exact(size)
            .zip(&wanted)
            .map(|(bytes, &wanted)| (wanted && !is_zero(bytes)).then(|| crc32fast::hash(bytes)))
            .collect();
        for (run, ()) in runs(range.clone(), |page| sums[page - range.start].map(|_| ())) {
            let bytes = &bytes[(run.start - range.start) * size..(run.end - range.start) * size];
            self.store.write((run.start * size) as u64, bytes)?;
            self.counters.add(Count::WriteBacks, run.len() as u64);
            self.counters.add(Count::BytesOut, bytes.len() as u64);
        }
        let mut inner = self.lock();
        for (number, sum) in range.clone().zip(sums) {
            let page = &mut inner.pages[number];
            // A guess for the next time only: what looks the same is written all the same.
            page.changes = sum.is_some_and(|sum| !page.stored || sum != page.sum);
            page.stored = sum.is_some();
            page.sum = sum.unwrap_or(0);
        }
        Ok(())
    }

    /// Lets one run of pages leave if there is little room. `false`: there was nothing to do.
    pub fn relieve(&self) -> Result<bool, Trouble> {
        let inner = self.lock();
        if inner.sets.now() >= LARGE_SET || inner.resident + inner.ahead() <= inner.local {
            return Ok(false);
        }
        Ok(self.evict_one(inner)?.1)
    }

    /// Keeps a little room ahead of need, until `stop` says so. For a thread of its own.
    pub fn evict_ahead(&self, stop: impl Fn() -> bool) -> Result<(), Trouble> {
        let mut inner = self.lock();
        while !stop() {
            if inner.resident + inner.evictor_starts() <= inner.local {
                inner = self
                    .crowded
                    .wait_timeout(inner, Duration::from_millis(500))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            }
            let left;
            (inner, left) = self.evict_one(inner)?;
            if !left {
                inner = self
                    .landed
                    .wait_timeout(inner, Duration::from_millis(1))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        }
        Ok(())
    }

    /// The pages are to be used: from now on their contents matter, and the store has room for them.
    pub fn enter(&self, range: Range<PageNumber>) -> Result<(), StoreError> {
        let size = self.kernel.page();
        self.store.reserve((range.start * size) as u64, (range.len() * size) as u64)?;
        let mut inner = self.lock();
        for page in range {
            inner.pages[page].idle = false;
        }
        Ok(())
    }

    /// Takes over pages that the program used before: those in `here` are here, the rest is zero.
    /// They may be more than fit; the next evictions see to that.
    pub fn adopt(&self, here: impl Iterator<Item = PageNumber>) {
        let mut inner = self.lock();
        let local = inner.local;
        for page in here {
            inner.pages[page].state = State::Dirty;
            inner.resident += 1;
            inner.queue.arrive(Run { first: number(page), pages: 1 }, local, None);
        }
        self.tell(&inner);
        drop(inner);
        self.crowded.notify_one();
    }

    /// Nobody wants what the pages hold any more, or somebody does from now on. Unwanted pages leave
    /// without being written, and may come back as zeros.
    pub fn set_wanted(&self, range: Range<PageNumber>, wanted: bool) {
        let mut inner = self.lock();
        for page in range {
            let page = &mut inner.pages[page];
            page.idle = !wanted;
            if !wanted && page.state == State::Away {
                *page = Page { idle: true, ..Page::default() };
            }
        }
    }

    /// Nobody wants what the pages hold: they read as zero, here and in the store there is room again.
    pub fn drop_contents(&self, range: Range<PageNumber>) -> Result<(), Trouble> {
        let size = self.kernel.page();
        let mut inner = self.lock();
        loop {
            for page in range.clone() {
                inner.pages[page].idle = true; // whoever carries them does not write them
            }
            if !range.clone().any(|page| inner.pages[page].state.in_flight()) {
                break;
            }
            inner = self.landed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let here = runs(range.clone(), |page| inner.pages[page].state.is_resident().then_some(()));
        for (run, ()) in &here {
            // Under the lock: nobody fills them again in between.
            self.kernel.forget(run.clone())?;
            inner.resident -= run.len();
            self.counters.add(Count::Dropped, run.len() as u64);
        }
        for page in range.clone() {
            inner.pages[page] = Page::default();
        }
        self.tell(&inner);
        drop(inner);
        self.store.discard((range.start * size) as u64, (range.len() * size) as u64);
        self.landed.notify_all();
        Ok(())
    }

    /// Says how many bytes may be anywhere.
    pub(crate) fn tell_mapped(&self, bytes: usize) {
        self.counters.set(Count::MappedBytes, bytes as u64);
    }

    /// Brings the words for "now" up to date.
    fn tell(&self, inner: &Inner) {
        let bytes = |pages: usize| (pages * self.kernel.page()) as u64;
        self.counters.set(Count::ResidentBytes, bytes(inner.resident));
        self.counters.set(Count::LocalBytes, bytes(inner.local));
        self.counters.set(Count::SetBytes, bytes(inner.sets.now()));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The pages that come with `page`: those of its set that are in the same place.
    fn set_around(&self, page: PageNumber, bounds: &Range<PageNumber>) -> Range<PageNumber> {
        let most = (self.local / 8).max(1);
        let set = self.sets.at(page).min(1 << most.ilog2());
        let first = page / set * set;
        let within = first.max(bounds.start)..(first + set).min(bounds.end);
        let state = self.pages[page].state;
        run_around(page, within, |other| self.pages[other].state == state)
    }

    /// What a fault says about the next ones.
    fn look_ahead(&mut self, touch: Touch, bounds: &Range<PageNumber>, ahead: &mut VecDeque<Touch>) {
        let set = self.sets.at(touch.page).min(1 << (self.local / 8).max(1).ilog2());
        let most = (self.local / 16).min(MOST_AHEAD);
        let Some(streams) = &mut self.streams else { return };
        streams.fault(touch.page, set, most, |page| {
            if bounds.contains(&page) {
                ahead.push_back(Touch { page, write: false });
            }
        });
    }

    /// How a page comes when a thread wants to write to its set: those next to the written one, and
    /// those that were changed the last time they were here, may be written at once. A loop changes
    /// what it changed before, and is spared the second fault. Who only reads leaves pages clean.
    fn coming(&self, number: PageNumber, touch: Touch) -> Coming {
        let page = self.pages[number];
        let near = (touch.page..touch.page + WRITE_AHEAD).contains(&number);
        Coming { sum: page.sum, dirty: touch.write && (near || page.changes) }
    }

    /// How a page left, if it did.
    fn back(&self, page: PageNumber) -> Option<(Part, u32)> {
        let page = self.pages[page];
        let part = if page.from_kept { Part::Kept } else { Part::Passing };
        (page.left != 0).then_some((part, page.left))
    }

    /// Pages that are kept free, so that a fault need not wait for room: two sets, and little
    /// enough that the budget is used.
    fn ahead(&self) -> usize {
        (self.sets.now() * 2).clamp(16, 512).min(self.local / 16)
    }

    /// Free pages below which the evictor works. Waking another thread costs as much as a few pages:
    /// with small sets, who serves faults lets pages leave between them, and the evictor only
    /// helps when that is not enough.
    fn evictor_starts(&self) -> usize {
        if self.sets.now() >= LARGE_SET { self.ahead() } else { self.ahead() / 4 }
    }

    /// The set of a page belongs to the working set of the compute core that runs.
    fn swapped_in(&mut self, page: PageNumber) {
        let set = self.sets.now();
        let (core, count) = &mut self.core;
        let first = &mut self.pages[page / set * set];
        if *core != 0 && first.core != *core {
            first.core = *core;
            *count += 1;
        }
    }

    /// Forgets runs whose pages left another way, when there are too many of them.
    fn tidy(&mut self) {
        if self.queue.runs() > 2 * self.resident + 1024 {
            let pages = &self.pages;
            self.queue.retain(|run| pages[run.first as usize].state.is_resident());
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // SAFETY: any eight bytes are a number; the middle part is aligned.
    let (head, words, tail) = unsafe { bytes.align_to::<u64>() };
    head.iter().chain(tail).all(|&byte| byte == 0) && words.iter().all(|&word| word == 0)
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn number(page: usize) -> u32 {
    u32::try_from(page).unwrap_or(u32::MAX)
}
