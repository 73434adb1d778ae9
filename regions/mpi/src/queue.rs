//! A queue of transfers to and from other ranks, with many transfers in flight.

use crate::homes::{Homes, parts};
use crate::pace::Vain;
use crate::servers::{PATIENCE, RankServers};
use crate::wire::{RankCopy, Wire};
use core::ffi::c_int;
use core::ops::Range;
use largesse_store::{
    Completion, Mechanism, QueueBytes, SplitTransfers, StoreError, Transfer, TransferQueue,
};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A queue of transfers that are made by one-sided copies, one for each stripe of a transfer.
#[derive(Debug)]
pub(crate) struct RankQueue<W: Wire> {
    servers: Arc<RankServers<W>>,
    homes: Arc<RwLock<Homes>>,
    /// The queue's memory; `None` once it was left to copies that may never end.
    memory: Option<QueueBytes>,
    transfers: SplitTransfers,
    copies: Vec<StripeCopy>,
}

/// A copy in flight, which is a piece of a transfer in one stripe.
#[derive(Debug)]
struct StripeCopy {
    /// Index of the transfer in `transfers`.
    of: usize,
    copy: RankCopy,
    vain: Vain,
}

impl<W: Wire> RankQueue<W> {
    pub(crate) fn new(
        servers: &Arc<RankServers<W>>,
        homes: &Arc<RwLock<Homes>>,
        memory: QueueBytes,
        depth: usize,
    ) -> RankQueue<W> {
        let (servers, homes) = (Arc::clone(servers), Arc::clone(homes));
        let (transfers, copies) = (SplitTransfers::new(depth), Vec::with_capacity(depth));
        RankQueue { servers, homes, memory: Some(memory), transfers, copies }
    }

    fn split(&mut self, of: usize, transfer: &Transfer) -> Result<(), StoreError> {
        let lost = || StoreError::Lost("a rank does not answer".into());
        for part in parts(transfer.at, transfer.memory.len() as u64) {
            let home = self.homes.read().unwrap_or_else(PoisonError::into_inner).home(part.stripe)?;
            let memory = self.memory.as_ref().ok_or_else(lost)?;
            let address = memory.address(transfer.memory.start + part.bytes.start);
            let len = part.bytes.len();
            // SAFETY: the bytes belong to this transfer, which ends after its copies, or never gives them back.
            let started = unsafe { self.servers.start(transfer.direction, home, part.at, address, len) }?;
            if let Some(copy) = started {
                self.transfers.add_piece(of);
                self.copies.push(StripeCopy { of, copy, vain: Vain::default() });
            }
        }
        Ok(())
    }

    /// Tests once whether each copy in flight has ended.
    fn test(&mut self) {
        let mut silent = false;
        for place in (0..self.copies.len()).rev() {
            let StripeCopy { copy, vain, .. } = &mut self.copies[place];
            let ended = match self.servers.test(copy) {
                Ok(true) => Ok(()),
                Ok(false) if vain.again() < PATIENCE => continue,
                Ok(false) => {
                    silent = true;
                    let (rank, seconds) = (copy.rank, PATIENCE.as_secs());
                    Err(StoreError::Lost(format!("rank {rank} has not answered for {seconds} seconds")))
                }
                Err(error) => Err(error),
            };
            let StripeCopy { of, .. } = self.copies.swap_remove(place);
            self.transfers.piece_ended(of, ended);
        }
        if silent {
            // The copy may still be made, so that its memory must stay.
            core::mem::forget(self.memory.take());
        }
    }
}

impl<W: Wire> TransferQueue for RankQueue<W> {
    fn mechanism(&self) -> Mechanism {
        Mechanism::MpiRequests
    }

    fn depth(&self) -> usize {
        self.transfers.depth()
    }

    fn in_flight(&self) -> usize {
        self.transfers.in_flight()
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise.
        self.memory.as_mut().map_or(&mut [], |memory| unsafe { memory.bytes(range) })
    }

    fn start(&mut self, transfer: Transfer) {
        let Some(of) = self.transfers.begin(transfer.clone()) else { return };
        let split = self.split(of, &transfer);
        self.transfers.piece_ended(of, split);
    }

    fn flush(&mut self) {}

    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        let began = Instant::now();
        loop {
            self.test();
            if !self.transfers.none_ended() || self.copies.is_empty() || began.elapsed() >= wait {
                break;
            }
            std::thread::yield_now();
        }
        self.transfers.drain(done);
    }

    fn descriptor(&self) -> Option<c_int> {
        None
    }
}

impl<W: Wire> Drop for RankQueue<W> {
    /// Waits for the transfers in flight, because they use the queue's memory.
    fn drop(&mut self) {
        while self.transfers.unended() > 0 {
            self.reap(Duration::from_millis(100), &mut |_| {});
        }
    }
}
