//! How much a rank lends.

use crate::homes::STRIPE;
use crate::plugin::World;

/// Stripes of 2 MiB: what was `asked` for, else this rank's part of four fifths of the `free` bytes of this machine. `None`: not even one.
#[must_use]
pub fn room(asked: Option<u64>, free: u64, world: World) -> Option<u32> {
    let bytes = asked.unwrap_or(free / 5 * 4 / u64::from(world.ranks_here.max(1)));
    let stripes = u32::try_from(bytes / STRIPE).unwrap_or(u32::MAX);
    (stripes > 0).then_some(stripes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(asked: Option<u64>, free: u64, ranks_here: u32, want: Option<u32>) {
        const GIB: u64 = 1 << 30;
        let world = World { rank: 1, ranks: 9, ranks_here, share: 1 };
        assert_eq!(room(asked.map(|it| it * GIB), free * GIB, world), want);
    }

    #[test]
    fn a_rank_offers_its_part_of_four_fifths_or_what_it_is_asked_for() {
        check(None, 100, 1, Some(40960));
        check(None, 100, 2, Some(20480));
        check(None, 0, 2, None);
        check(Some(3), 1, 4, Some(1536));
        check(Some((1 << 34) - 1), 100, 2, Some(u32::MAX));
    }
}
