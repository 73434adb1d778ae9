//! Implements a store in the memory of other ranks.

use crate::homes::{Homes, STRIPE, parts};
use crate::queue::RankQueue;
use crate::servers::RankServers;
use crate::slot_allocator::StripeSlot;
use crate::wire::Wire;
use largesse_store::{MappedSpan, PageStore, ProvidedStore, QueueBytes, StoreError, TransferQueue};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A store in the memory of other ranks, for one process. The store is divided into stripes of 2 MiB, each of which has
/// a slot of a server as its home.
#[derive(Debug)]
pub(crate) struct RankStore<W: Wire> {
    servers: Arc<RankServers<W>>,
    homes: Arc<RwLock<Homes>>,
    /// Held while stripes get or lose their homes. Transfers of other stripes continue.
    moving: Mutex<()>,
}

impl<W: Wire> RankStore<W> {
    pub(crate) fn new(servers: Arc<RankServers<W>>) -> RankStore<W> {
        RankStore { servers, homes: Arc::default(), moving: Mutex::new(()) }
    }

    fn home(&self, stripe: u64) -> Result<StripeSlot, StoreError> {
        self.homes.read().unwrap_or_else(PoisonError::into_inner).home(stripe)
    }
}

impl<W: Wire> PageStore for RankStore<W> {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let _one = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let homeless = self.homes.read().unwrap_or_else(PoisonError::into_inner).homeless(at, len);
        let slots = self.servers.take(homeless.len())?.ok_or(StoreError::Full { wanted: len })?;
        let mut homes = self.homes.write().unwrap_or_else(PoisonError::into_inner);
        for (stripe, slot) in homeless.into_iter().zip(slots) {
            homes.settle(stripe, slot);
        }
        homes.want(at, len);
        Ok(())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        for part in parts(at, into.len() as u64) {
            self.servers.read(self.home(part.stripe)?, part.at, &mut into[part.bytes])?;
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        for part in parts(at, from.len() as u64) {
            self.servers.write(self.home(part.stripe)?, part.at, &from[part.bytes])?;
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let _one = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = self.homes.write().unwrap_or_else(PoisonError::into_inner).give_up(at, len);
        // A server that cannot be reached is lost, which the next transfer reports.
        let _ = self.servers.give_back(empty);
    }
}

impl<W: Wire + 'static> ProvidedStore for RankStore<W> {
    /// Returns 1, since only one thread at a time may call MPI. Returns 0 if the program maps the memory of all
    /// servers, so that it copies all pages itself.
    fn queue_threads(&self) -> usize {
        usize::from(self.servers.far() > 0)
    }

    fn open_queue_over(&self, memory: QueueBytes, depth: usize) -> Option<Box<dyn TransferQueue>> {
        Some(Box::new(RankQueue::new(&self.servers, &self.homes, memory, depth)))
    }

    fn mapped_span(&self, at: u64) -> Option<MappedSpan> {
        self.servers.find(self.home(at / STRIPE).ok()?)
    }
}

impl<W: Wire> Drop for RankStore<W> {
    fn drop(&mut self) {
        let all = self.homes.write().unwrap_or_else(PoisonError::into_inner).clear();
        // As above; besides, the store is used no more.
        let _ = self.servers.give_back(all);
    }
}
