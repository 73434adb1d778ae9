//! How much a rank lends.

use crate::homes::STRIPE;
use crate::plugin::World;
use std::fs;
use std::path::Path;

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
        let most = free.memory / 5 * 4;
        // Sharing is faster, but not worth it where little can be shared, as in many containers.
        let most = if ranks > 1 && free.shared >= most / 2 { most.min(free.shared) } else { most };
        let bytes = asked.unwrap_or(most / ranks);
        let stripes = u32::try_from(bytes / STRIPE).unwrap_or(u32::MAX);
        let share = ranks > 1 && (bytes + STRIPE).saturating_mul(ranks) <= free.shared + ranks * STRIPE;
        (stripes > 0).then_some(Room { stripes, share })
    }
}

impl Free {
    /// As the kernel says.
    #[must_use]
    pub fn now() -> Free {
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let memory = available(&text(Path::new("/proc/meminfo")));
        let groups = text(Path::new("/proc/self/cgroup"));
        let limits = group(&groups).into_iter().flat_map(|group| group.ancestors()).filter_map(|group| {
            let folder = Path::new("/sys/fs/cgroup").join(group);
            let number = |name: &str| text(&folder.join(name)).trim().parse::<u64>().ok();
            Some(number("memory.max")?.saturating_sub(number("memory.current")?))
        });
        Free { memory: limits.fold(memory, u64::min), shared: shared() }
    }
}

/// `MemAvailable` of `/proc/meminfo`.
fn available(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

/// The control group (version 2) of `/proc/self/cgroup`, relative to the root of groups.
fn group(text: &str) -> Option<&Path> {
    text.lines().find_map(|line| line.strip_prefix("0::/")).map(Path::new)
}

fn shared() -> u64 {
    let mut found = core::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and `found` is there to be written to.
    if unsafe { libc::statvfs(c"/dev/shm".as_ptr(), found.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: written by the call, which succeeded.
    let found = unsafe { found.assume_init() };
    found.f_bavail.saturating_mul(found.f_frsize)
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
        check(None, 100, 50, 2, Some((12800, true)));
        check(None, 100, 1, 2, Some((20480, false)));
        check(None, 0, 0, 2, None);
    }

    #[test]
    fn or_what_it_is_asked_for() {
        check(Some(3), 100, 50, 4, Some((1536, true)));
        check(Some(30), 100, 50, 4, Some((15360, false)));
        check(Some(3), 1, 0, 1, Some((1536, false)));
    }

    #[test]
    fn the_kernels_texts_are_understood() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), 2 << 20);
        assert_eq!(available(""), 0);
        assert_eq!(group("1:cpu:/a\n0::/user.slice/job\n"), Some(Path::new("user.slice/job")));
        assert!(Free::now().memory > 0);
    }
}
