//! Makes far memory step by step, because the library does work of its own between the steps.

use crate::config::{FarConfig, Store};
use crate::error::Error;
use crate::store::{self, AnyStore, StoreInfo};
use core::ops::Range;
use largesse_pager::{FarMemory, FarRange, Fatal, Linux, Local, MappedParts, Pager, Segments};
use largesse_pages::fault::{OPEN_METHODS, OpenMethod, Userfault};
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::transfer::TransferSize;
use largesse_policy::{PageNumber, Policies};
use largesse_settings::{Amount, FaultEngine};
use largesse_store::{Broker, Ranges, bytes, offsets};
use std::sync::Arc;

/// A pager of Linux over a store of any kind.
pub type FarPager = Pager<Linux, AnyStore>;
/// Far memory over a store of any kind.
pub type Far = FarMemory<AnyStore>;

/// Starts the thread that owns the descriptors of far memory.
///
/// # Errors
/// Returns an error if the thread was not started.
pub fn start_broker() -> Result<Arc<Broker>, Error> {
    Broker::start().map_err(Error::Threads)
}

/// A userfaultfd that is closed in the descriptor table in which it is open. In another one, its number may be that of a
/// file of the program.
#[derive(Debug)]
struct OpenFaults {
    broker: Arc<Broker>,
    /// Present until it is taken.
    faults: Option<Userfault>,
}

impl Drop for OpenFaults {
    fn drop(&mut self) {
        match self.faults.take() {
            Some(faults) if !faults.by_signal() => self.broker.call(|| drop(faults)),
            faults => drop(faults),
        }
    }
}

/// Collects the ranges that will be far memory, until their pager is made.
#[derive(Debug)]
pub struct FarBuilder {
    broker: Arc<Broker>,
    faults: OpenFaults,
    by_signal: bool,
    method: OpenMethod,
    moves_pages: bool,
    segments: Segments,
    /// Addresses in segments at which the program mapped something else.
    outside: Ranges,
}

impl FarBuilder {
    /// Opens the userfaultfd that `engine` needs: in the descriptor table of `broker`, or, for faults by SIGBUS, in
    /// that of the calling thread, which must then be the first thread of the process.
    ///
    /// # Errors
    /// Returns an error if this process may not open it.
    pub fn open(broker: Arc<Broker>, engine: FaultEngine) -> Result<FarBuilder, Error> {
        let methods = match engine {
            FaultEngine::Auto | FaultEngine::Thread => &OPEN_METHODS[..],
            FaultEngine::Events => &[OpenMethod::Device, OpenMethod::Call],
            FaultEngine::UserMode => &[OpenMethod::UserModeOnly],
        };
        let faults = match engine {
            FaultEngine::Thread => Userfault::open_by_signal(methods),
            _ => broker.call(|| Userfault::open(methods)),
        };
        let faults = faults.map_err(Error::Userfaultfd)?;
        Ok(FarBuilder {
            by_signal: faults.by_signal(),
            method: faults.method(),
            moves_pages: faults.can_move(),
            faults: OpenFaults { broker: Arc::clone(&broker), faults: Some(faults) },
            broker,
            segments: Segments::new(),
            outside: Ranges::new(),
        })
    }

    /// Returns whether system calls fail on pages that are not resident, so that a filter of system calls must make the
    /// pages resident first.
    #[must_use]
    pub fn needs_filter(&self) -> bool {
        self.by_signal || self.method == OpenMethod::UserModeOnly
    }

    /// Returns whether the kernel can move a page from one address to another (`UFFDIO_MOVE`, Linux 6.8). The pager
    /// then evicts pages by moving them, which the kernel refuses for pages to which a device writes: these stay
    /// resident.
    #[must_use]
    pub fn moves_pages(&self) -> bool {
        self.moves_pages
    }

    /// Forgets, in a forked child, what the parent has opened: its broker and its descriptors do not exist in the child,
    /// except a descriptor for faults by SIGBUS, which is closed.
    pub fn forget_in_child(self) {
        let FarBuilder { broker, mut faults, by_signal, .. } = self;
        if !by_signal {
            core::mem::forget(faults.faults.take());
        }
        core::mem::forget((broker, faults));
    }

    /// Opens a store and closes it again, to find out early whether it can be used.
    ///
    /// # Errors
    /// Returns an error if the store refuses.
    pub fn try_store(&self, choice: &Store) -> Result<(), Error> {
        store::open(choice, 0, &self.broker).map(drop)
    }

    /// Adds the `len` bytes of mapped memory from the address `start` on as a segment. Returns the number of its first
    /// page.
    pub fn add(&mut self, start: usize, len: usize) -> PageNumber {
        let page = base_page();
        self.segments.add(start, len / page, SPAN / page)
    }

    /// Adds a reserved range as a segment. Segments have ascending offsets in the store, in the order in which they are
    /// added.
    pub fn add_range(&mut self, range: Reserved) -> FarRange {
        FarRange::new(range, &mut self.segments)
    }

    /// Excludes the addresses `at` from far memory for good, because the program mapped something else there.
    pub fn leave_out(&mut self, at: &Range<usize>) {
        self.outside.add(bytes(at));
    }

    /// Opens the store and makes the pager of all segments. The program has the parts `mapped` of the range of mappings
    /// already. `lost` is called if the store loses pages.
    ///
    /// # Errors
    /// Returns an error if the store or the kernel refuses, or if there is no address space for tables.
    pub fn build(
        self,
        heap: FarRange,
        (mappings, mapped): (FarRange, MappedParts),
        config: &FarConfig,
        lost: Fatal,
    ) -> Result<Unstarted, Error> {
        let FarBuilder { broker, mut faults, segments, outside, .. } = self;
        let (store, info) = store::open(&config.store, segments.pages() * base_page(), &broker)?;
        let bounds = segments.clone();
        let faults = faults.faults.take().unwrap_or_else(|| unreachable!("nothing has taken it before"));
        let kernel = Linux::new(broker, faults, segments, outside.clone()).map_err(Error::Kernel)?;
        let local = match config.local {
            Amount::Bytes(bytes) => Local::Bytes(bytes),
            Amount::Percent(percent) => Local::Percent(percent),
        };
        let size = TransferSize::from_bytes(config.page_size, base_page());
        let policies = Policies::new(size, config.prefetch);
        let pager = FarPager::new(kernel, store, bounds, local.first_pages(), policies);
        let pager = Arc::new(pager.ok_or(Error::Tables)?);
        for at in outside.iter() {
            let at = offsets(&at);
            if let Some(first) = pager.kernel().page_at(at.start) {
                pager.leave_out(first..first + at.len() / base_page()).map_err(Error::Pager)?;
            }
        }
        let far = FarMemory::new(heap, (mappings, mapped), pager, local, lost);
        Ok(Unstarted { far, store: info, lost })
    }
}

/// Far memory whose threads are not started, so that its faults are not handled yet.
#[derive(Debug)]
#[must_use = "a thread that touches the memory waits for good"]
pub struct Unstarted {
    far: Far,
    store: StoreInfo,
    lost: Fatal,
}

impl Unstarted {
    /// Returns the pager's interface to Linux.
    #[must_use]
    pub fn kernel(&self) -> &Linux {
        self.far.pager().kernel()
    }

    /// Returns the far memory, so that it can take over memory in use before its threads start.
    #[must_use]
    pub fn far(&self) -> &Far {
        &self.far
    }

    /// Starts the threads that handle faults and evict pages; they end with the process.
    ///
    /// # Errors
    /// Returns an error if a thread was not started.
    pub fn start(self) -> Result<(Far, StoreInfo), Error> {
        largesse_pager::start(self.far.pager(), self.lost).map_err(Error::Threads)?;
        Ok((self.far, self.store))
    }
}
