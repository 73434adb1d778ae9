//! Implements a store in the memory of other ranks.

use crate::homes::{Homes, STRIPE, parts};
use crate::servers::RankServers;
use crate::slot_allocator::StripeSlot;
use crate::wire::Wire;
use largesse_store::{MappedSpan, PageStore, ProvidedStore, StoreError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A store, whose stripes one process uses.
#[derive(Debug)]
pub(crate) struct RankStore<W: Wire> {
    servers: Arc<RankServers<W>>,
    homes: RwLock<Homes>,
    /// Held while stripes are given or lose homes; transfers continue.
    moving: Mutex<()>,
}

impl<W: Wire> RankStore<W> {
    pub(crate) fn new(servers: Arc<RankServers<W>>) -> RankStore<W> {
        RankStore { servers, homes: RwLock::default(), moving: Mutex::new(()) }
    }

    fn home(&self, stripe: u64) -> Result<StripeSlot, StoreError> {
        let homes = self.homes.read().unwrap_or_else(PoisonError::into_inner);
        homes.find(stripe).ok_or_else(|| StoreError::Lost(format!("nothing of stripe {stripe} was reserved")))
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

impl<W: Wire> ProvidedStore for RankStore<W> {
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
