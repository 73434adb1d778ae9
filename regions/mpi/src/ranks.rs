//! Provides stores in the memory of other ranks.

use crate::plugin::World;
use crate::servers::RankServers;
use crate::store::RankStore;
use crate::wire::{Wire, WireError};
use core::ffi::c_int;
use largesse_store::{ProvidedStore, StoreError, StoreProvider};
use std::sync::Arc;

/// Provides stores in the memory of other ranks. Clones use the same memory.
#[derive(Debug)]
pub struct Ranks<W>(Arc<RankServers<W>>);

impl<W> Clone for Ranks<W> {
    fn clone(&self) -> Ranks<W> {
        Ranks(Arc::clone(&self.0))
    }
}

impl<W: Wire + 'static> Ranks<W> {
    /// Waits until all other ranks of the `world` have announced the memory that they lend.
    pub fn meet(wire: Arc<W>, world: World) -> Result<Ranks<W>, WireError> {
        Ok(Ranks(Arc::new(RankServers::meet(wire, world)?)))
    }

    /// Returns the number of bytes that all servers lend together.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.0.room()
    }

    /// Returns the number of servers whose memory this process cannot map, so that it is copied through MPI.
    #[must_use]
    pub fn far(&self) -> usize {
        self.0.far()
    }

    /// Stops the servers, after they have handled all earlier messages.
    pub fn stop(&self) -> Result<(), WireError> {
        self.0.stop()
    }
}

impl<W: Wire + 'static> StoreProvider for Ranks<W> {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        Ok(Box::new(RankStore::new(Arc::clone(&self.0))))
    }

    fn windows(&self) -> Vec<c_int> {
        self.0.near().map(|(_, lent)| lent.descriptor()).collect()
    }
}
