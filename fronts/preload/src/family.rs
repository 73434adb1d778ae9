//! Lets forked children begin one after the other, when a limit has no room for all of them at once.
//!
//! Far memory of a child is evicted as in its parent. But the kernel copies other pages for each child that writes to
//! them (a collector marks all small objects), and these copies cannot be evicted. So a child begins when there is room
//! for its copies and for those that other children may still make; until then its thread waits in `fork`.
//!
//! ```text
//!   child: joins, waits ─┬─ there is room for its copies, besides those of the others ─► begins
//!                        ├─ no other child is left: waiting would change nothing ──────► begins
//!                        └─ PATIENCE is over: another child may wait for this one ─────► begins
//! ```
//! The children of all processes that share pages are members of one family, in a page of memory that they share. A
//! member whose helper thread is not heard of any more has ended, or become another program.

use crate::limit_state;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use largesse_pages::{now_seconds, raw_mmap, wait_while_for, wake_one};
use std::sync::OnceLock;
use std::time::Instant;

/// Largest number of members. Further children do not wait.
const MOST: usize = 200;
/// Bytes that a child needs for the buffers and tables of its far memory, besides copies.
const BUFFERS: u64 = 8 << 20;
/// Longest time for which a child waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks of a child that waits.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);
/// Seconds after which a member that was not heard of is taken to have ended.
const SILENCE: u32 = 3;

/// The place of this process in the family, plus 1; 0 if it is no member.
static PLACE: AtomicU32 = AtomicU32::new(0);
/// 1 while this process waits.
static WAITS: AtomicU32 = AtomicU32::new(0);
/// The memory that the processes share, which is never unmapped.
static FAMILY: OnceLock<&'static ForkFamily> = OnceLock::new();

// Relaxed throughout: the words are estimates, and no memory is reached through them. `lock` orders decisions.

/// A child. Zero words are a free place.
#[derive(Debug, Default)]
struct Member {
    process: AtomicU32,
    /// The second in which its helper thread last looked.
    heard_of: AtomicU32,
    /// How many children began before it, plus 1; 0 while it waits.
    turn: AtomicU32,
    /// Bytes of which the kernel may still make copies for it.
    copies: AtomicU64,
}

#[derive(Debug)]
struct ForkFamily {
    /// The process that decides whether it may begin; 0: none.
    lock: AtomicU32,
    turns: AtomicU32,
    members: [Member; MOST],
}

impl Member {
    fn was_heard_of(&self, now: u32) -> bool {
        now.saturating_sub(self.heard_of.load(Ordering::Relaxed)) <= SILENCE
    }

    fn hear(&self, now: u32, copies: u64) {
        self.copies.store(copies, Ordering::Relaxed);
        self.heard_of.store(now, Ordering::Relaxed);
    }
}

impl ForkFamily {
    /// Takes a place for the process `me`, and returns its index; `None` if all are taken.
    fn join(&self, me: u32, now: u32) -> Option<usize> {
        self.members.iter().position(|member| {
            let before = member.process.load(Ordering::Relaxed);
            let is_free = before == 0 || !member.was_heard_of(now);
            let order = (Ordering::Relaxed, Ordering::Relaxed);
            let taken = is_free && member.process.compare_exchange(before, me, order.0, order.1).is_ok();
            if taken {
                member.turn.store(0, Ordering::Relaxed);
                member.hear(now, 0);
            }
            taken
        })
    }

    /// Returns the other members that have begun and not ended, as `is_alive` says of a process.
    fn others(
        &self,
        place: usize,
        now: u32,
        is_alive: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = &Member> {
        self.members.iter().enumerate().filter_map(move |(at, member)| {
            let process = member.process.load(Ordering::Relaxed);
            let begun = at != place && process != 0 && member.turn.load(Ordering::Relaxed) != 0;
            (begun && member.was_heard_of(now) && is_alive(process)).then_some(member)
        })
    }

    /// Has the member at `place` begin, which needs `copies` bytes of the `free` ones, if it may.
    fn begin(
        &self,
        place: usize,
        (free, copies): (u64, u64),
        now: u32,
        is_alive: impl Fn(u32) -> bool,
    ) -> bool {
        let (mut count, mut wanted) = (0, copies + BUFFERS);
        for other in self.others(place, now, is_alive) {
            count += 1;
            wanted += other.copies.load(Ordering::Relaxed);
        }
        let may = count == 0 || wanted <= free;
        if may {
            self.begin_now(place, copies);
        }
        may
    }

    fn begin_now(&self, place: usize, copies: u64) {
        let turn = self.turns.fetch_add(1, Ordering::Relaxed) + 1;
        self.members[place].copies.store(copies, Ordering::Relaxed);
        self.members[place].turn.store(turn, Ordering::Relaxed);
    }

    /// Calls `decide` while no other process decides. Takes the lock of a process that has ended.
    fn locked<R>(&self, me: u32, decide: impl FnOnce() -> R) -> Option<R> {
        let holder = self.lock.load(Ordering::Relaxed);
        let free = holder == 0 || !is_alive(holder);
        let taken =
            free && self.lock.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then(|| {
            let decided = decide();
            // Release: pairs with the Acquire of the next process that decides, which sees this one's turn.
            self.lock.store(0, Ordering::Release);
            decided
        })
    }
}

/// Makes the family's memory, in a process that is kept below a limit and is about to fork.
pub(crate) fn before_fork() {
    if !limit_state::is_watched() || FAMILY.get().is_some() {
        return;
    }
    let len = size_of::<ForkFamily>().next_multiple_of(largesse_pages::base_page());
    let (read_write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: this makes a new mapping at an address that the kernel chooses.
    let at = unsafe { raw_mmap(core::ptr::null_mut(), len, read_write, shared, -1, 0) };
    if at > 0 {
        let at = core::ptr::with_exposed_provenance::<ForkFamily>(at.cast_unsigned());
        // SAFETY: the mapping is at least as large as a `ForkFamily`, whose zero bytes are valid words, and stays for good.
        let _ = FAMILY.set(unsafe { &*at });
    }
}

/// Joins the family, in a forked child that has one thread. Its helper thread will let it begin.
pub(crate) fn in_child() {
    let place = FAMILY.get().and_then(|family| family.join(std::process::id(), now_seconds()));
    let number = place.map_or(0, |place| u32::try_from(place + 1).unwrap_or(0));
    PLACE.store(number, Ordering::Relaxed);
    WAITS.store(u32::from(number != 0), Ordering::Relaxed);
}

/// Waits until this child may begin. The caller is its first thread, before the program continues.
pub(crate) fn wait() {
    let began = Instant::now();
    while WAITS.load(Ordering::Relaxed) == 1 && limit_state::is_watched() {
        if began.elapsed() > PATIENCE {
            if let Some((family, place)) = here() {
                family.begin_now(place, 0);
            }
            break;
        }
        wait_while_for(&WAITS, 1, PAUSE);
    }
    WAITS.store(0, Ordering::Relaxed);
}

/// Returns whether this process is a child that waits.
pub(crate) fn is_waiting() -> bool {
    WAITS.load(Ordering::Relaxed) == 1
}

/// Lets the others hear of this process, in its helper thread, if it is a member: the kernel may still make `copies`
/// bytes of copies for it. Lets it begin if it waits and the bytes that `free` returns suffice.
pub(crate) fn step(free: impl Fn() -> u64, copies: u64) {
    let Some((family, place)) = here() else { return };
    let now = now_seconds();
    family.members[place].hear(now, copies);
    let begin = || family.begin(place, (free(), copies), now, is_alive);
    if is_waiting() && family.locked(std::process::id(), begin) == Some(true) {
        WAITS.store(0, Ordering::Relaxed);
        wake_one(&WAITS);
    }
}

/// Returns whether this process is the child that began last of all that have not ended, and the number of these.
pub(crate) fn is_last() -> Option<(bool, usize)> {
    let (family, place) = here()?;
    let mine = family.members[place].turn.load(Ordering::Relaxed);
    let turns: Vec<_> = family
        .others(place, now_seconds(), is_alive)
        .map(|other| other.turn.load(Ordering::Relaxed))
        .collect();
    Some((turns.iter().all(|&turn| turn < mine), turns.len() + 1))
}

fn here() -> Option<(&'static ForkFamily, usize)> {
    let place = (PLACE.load(Ordering::Relaxed) as usize).checked_sub(1)?;
    FAMILY.get().map(|family| (*family, place))
}

/// Returns whether a process runs. One that has ended, and whose parent has not asked for its status yet, does not.
fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    // The state follows the name in parentheses, which may contain any character.
    let state = |text: String| text.rsplit(')').next()?.trim_start().chars().next();
    stat.ok().and_then(state).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn family() -> ForkFamily {
        ForkFamily {
            lock: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            members: core::array::from_fn(|_| Member::default()),
        }
    }

    #[test]
    fn children_begin_while_there_is_room() {
        let family = family();
        let places: Vec<_> = (1..=4).map(|child| family.join(child, 10).unwrap()).collect();
        assert_eq!(places, [0, 1, 2, 3]);
        let begins = |place, free| family.begin(place, (free, 30 * MIB), 10, |_| true);
        assert!(begins(0, 0), "waiting would change nothing");
        assert!(!begins(1, 67 * MIB), "the first one may still need 30 MiB");
        assert!(begins(1, 68 * MIB));
        family.members[0].hear(10, 5 * MIB);
        assert!(begins(2, 73 * MIB));
        assert!(!begins(3, 102 * MIB));
    }

    #[test]
    fn ended_members_need_nothing() {
        let family = family();
        let [first, second] = [1, 2].map(|child| family.join(child, 10).unwrap());
        assert!(family.begin(first, (0, 30 * MIB), 10, |_| true));
        assert!(!family.begin(second, (0, 30 * MIB), 10, |_| true));
        assert!(family.begin(second, (0, 30 * MIB), 10, |process| process != 1));
        let late = 10 + SILENCE + 1;
        assert_eq!(family.join(3, late), Some(first));
        assert!(family.begin(first, (0, 30 * MIB), late, |_| true), "the second one is silent");
    }

    #[test]
    fn own_process_is_alive() {
        assert!(is_alive(std::process::id()) && !is_alive(u32::MAX));
    }
}
