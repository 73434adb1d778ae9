//! Chooses how much memory a rank lends.

use crate::homes::STRIPE;
use crate::plugin::World;

/// Returns the number of stripes of 2 MiB that a rank lends: `asked` bytes if given, otherwise four fifths of the
/// machine's `free` bytes, divided by the number of ranks on this machine. Returns `None` if that is less than one
/// stripe.
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
    fn room_is_a_share_or_as_asked() {
        check(None, 100, 1, Some(40960));
        check(None, 100, 2, Some(20480));
        check(None, 0, 2, None);
        check(Some(3), 1, 4, Some(1536));
        check(Some((1 << 34) - 1), 100, 2, Some(u32::MAX));
    }
}
