//! How much a rank lends.

use crate::homes::STRIPE;
use crate::plugin::World;

/// Room for so many stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// 2 MiB each.
    pub stripes: u32,
    /// Whether there is room for them in what processes of this machine have in common.
    pub share: bool,
}

/// What this machine could give away at the moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Memory, within the limits of this process's control group.
    pub memory: u64,
    /// Of it, what can be shared (`/dev/shm`).
    pub shared: u64,
}

impl Room {
    /// What was `asked` for; else this rank's part of four fifths of what is free. `None`: not even a stripe.
    #[must_use]
    pub fn of(asked: Option<u64>, free: Free, world: World) -> Option<Room> {
        let ranks = u64::from(world.ranks_here.max(1));
        // Each lends a stripe more than it has room for (`Memory::lend`).
        let shared = free.shared.saturating_sub(ranks * STRIPE);
        let most = free.memory / 5 * 4;
        // Sharing is faster, but not worth it where little can be shared, as in many containers.
        let most = if ranks > 1 && shared >= most / 2 { most.min(shared) } else { most };
        let bytes = asked.unwrap_or(most / ranks);
        let stripes = u32::try_from(bytes / STRIPE).unwrap_or(u32::MAX);
        let share = ranks > 1 && bytes.saturating_mul(ranks) <= shared;
        (stripes > 0).then_some(Room { stripes, share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: Option<u64>, memory: u64, shared: u64, ranks_here: u32, want: Option<(u32, bool)>) {
        const GIB: u64 = 1 << 30;
        let free = Free { memory: memory * GIB, shared: shared * GIB };
        let room = Room::of(asked.map(|it| it * GIB), free, World { rank: 1, ranks: 9, ranks_here });
        assert_eq!(room.map(|room| (room.stripes, room.share)), want);
    }

    #[test]
    fn a_rank_offers_its_part_of_four_fifths() {
        check(None, 100, 50, 1, Some((40960, false)));
        check(None, 100, 90, 2, Some((20480, true)));
        check(None, 100, 50, 2, Some((12799, true)));
        check(None, 100, 1, 2, Some((20480, false)));
        check(None, 0, 0, 2, None);
    }

    #[test]
    fn or_what_it_is_asked_for() {
        check(Some(3), 100, 50, 4, Some((1536, true)));
        check(Some(30), 100, 50, 4, Some((15360, false)));
        check(Some(3), 1, 0, 1, Some((1536, false)));
        check(Some(25), 100, 50, 2, Some((12800, false))); // what is shared has a lead
        check(Some((1 << 34) - 1), 100, 50, 2, Some((u32::MAX, false)));
    }
}
