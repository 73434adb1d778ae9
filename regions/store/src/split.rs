//! Transfers that a queue makes in pieces, such as one piece for each layer or server. A transfer ends with its last
//! piece.

use crate::StoreError;
use crate::transfer::{Completion, Transfer};

/// The transfers of one queue that were started and not reaped, each with the number of its pieces that have not ended.
#[derive(Debug)]
pub struct SplitTransfers {
    transfers: Vec<Option<SplitTransfer>>,
    free: Vec<usize>,
    ended: Vec<Completion>,
}

#[derive(Debug)]
struct SplitTransfer {
    transfer: Transfer,
    pieces: usize,
    result: Result<(), StoreError>,
}

impl SplitTransfers {
    /// Makes an empty list with room for `depth` transfers.
    #[must_use]
    pub fn new(depth: usize) -> SplitTransfers {
        SplitTransfers {
            transfers: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            ended: Vec::with_capacity(depth),
        }
    }

    /// Returns the largest number of transfers that may be in flight.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.transfers.len()
    }

    /// Returns the number of transfers that were begun and whose completions were not drained.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.transfers.len() - self.free.len() + self.ended.len()
    }

    /// Returns the number of transfers of which a piece has not ended.
    #[must_use]
    pub const fn unended(&self) -> usize {
        self.transfers.len() - self.free.len()
    }

    /// Adds a transfer and returns its index. The transfer counts as its own first piece, which the caller ends by
    /// [`piece_ended`](SplitTransfers::piece_ended) after it has added the other pieces. If `depth` transfers are in
    /// flight already, the transfer ends at once with the error `EBUSY`, and `None` is returned.
    pub fn begin(&mut self, transfer: Transfer) -> Option<usize> {
        if self.in_flight() >= self.depth() {
            let result = Err(StoreError::System { call: "starting a transfer", errno: libc::EBUSY });
            self.ended.push(Completion { id: transfer.id, result });
            return None;
        }
        let of = self.free.pop()?;
        self.transfers[of] = Some(SplitTransfer { transfer, pieces: 1, result: Ok(()) });
        Some(of)
    }

    /// Returns the transfer with the index `of`, if it has not ended.
    #[must_use]
    pub fn get(&self, of: usize) -> Option<&Transfer> {
        self.transfers.get(of)?.as_ref().map(|split| &split.transfer)
    }

    /// Adds a piece to the transfer with the index `of`.
    pub fn add_piece(&mut self, of: usize) {
        if let Some(split) = &mut self.transfers[of] {
            split.pieces += 1;
        }
    }

    /// Records the end of a piece of the transfer with the index `of`. Returns the transfer if this was its last piece
    /// and all pieces succeeded.
    pub fn piece_ended(&mut self, of: usize, result: Result<(), StoreError>) -> Option<Transfer> {
        let split = self.transfers[of].as_mut()?;
        split.pieces -= 1;
        if result.is_err() {
            split.result = result;
        }
        if split.pieces > 0 {
            return None;
        }
        let SplitTransfer { transfer, result, .. } = self.transfers[of].take()?;
        self.free.push(of);
        let succeeded = result.is_ok();
        self.ended.push(Completion { id: transfer.id, result });
        succeeded.then_some(transfer)
    }

    /// Returns whether there are no completions to drain.
    #[must_use]
    pub const fn none_ended(&self) -> bool {
        self.ended.is_empty()
    }

    /// Calls `done` for each transfer that has ended since the last call.
    pub fn drain(&mut self, done: &mut dyn FnMut(Completion)) {
        self.ended.drain(..).for_each(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;

    fn transfer(id: usize) -> Transfer {
        Transfer { id, direction: Direction::Read, at: 0, memory: 0..1 }
    }

    fn drained(transfers: &mut SplitTransfers) -> Vec<(usize, bool)> {
        let mut ended = Vec::new();
        transfers.drain(&mut |completion| ended.push((completion.id, completion.result.is_ok())));
        ended
    }

    #[test]
    fn transfers_end_with_their_last_piece() {
        let mut transfers = SplitTransfers::new(2);
        let (one, other) = (transfers.begin(transfer(7)).unwrap(), transfers.begin(transfer(8)).unwrap());
        transfers.add_piece(one);
        assert!(transfers.piece_ended(one, Ok(())).is_none() && drained(&mut transfers).is_empty());
        assert!(transfers.piece_ended(other, Ok(())).is_some_and(|it| it.id == 8));
        assert!(transfers.piece_ended(one, Err(StoreError::OneProcess)).is_none());
        assert_eq!((transfers.in_flight(), transfers.unended()), (2, 0));
        assert_eq!(drained(&mut transfers), [(8, true), (7, false)]);
        assert_eq!(transfers.in_flight(), 0);
    }

    #[test]
    fn transfer_beyond_the_depth_is_refused() {
        let mut transfers = SplitTransfers::new(1);
        let one = transfers.begin(transfer(1)).unwrap();
        assert!(transfers.begin(transfer(2)).is_none());
        assert_eq!(drained(&mut transfers), [(2, false)]);
        transfers.piece_ended(one, Ok(()));
        assert_eq!(drained(&mut transfers), [(1, true)]);
    }
}
