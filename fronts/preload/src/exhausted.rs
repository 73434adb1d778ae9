//! Ends the program before the kernel kills it, if memory that cannot be evicted exceeds the limit.
//!
//! The kernel would kill a process of the group without a word, perhaps another one. So when most of the reserve is
//! used and nothing is left to evict, the program ends with a message that says what takes the memory. The cause is read
//! a little earlier, because there may be no time for it at the end.

use crate::limit::Left;
use crate::lost::LOST;
use crate::message::warn;
use crate::{coverage, limit_state};
use core::time::Duration;
use largesse_settings::Short;

/// The largest users of the memory are looked up when this part of the reserve, in fifths, has been used.
const READ_AT: u64 = 2;
/// The program ends when this part of the reserve, in fifths, has been used. The tables and buffers of far memory, and
/// the least that it has resident, take up to three fifths of the smallest reserve.
const END_AT: u64 = 4;
/// Pause between two looks while nothing is left to evict and the reserve is in use.
const PAUSE: Duration = Duration::from_micros(500);

/// Watches memory that cannot be evicted.
#[derive(Debug, Default)]
pub(crate) struct Exhaustion {
    /// The largest users of the memory, in words; `None` before they were looked up.
    cause: Option<String>,
}

impl Exhaustion {
    /// Ends the program if most of the reserve is used, nothing `can_be_evicted`, and this process has most of the
    /// memory: `fixed` bytes of the `limit`, with as many in each of the `others` that share pages with it. Returns the
    /// longest pause until the next look.
    pub(crate) fn check(
        &mut self,
        left: Left,
        can_be_evicted: bool,
        (fixed, others): (u64, u64),
        limit: u64,
    ) -> Duration {
        if can_be_evicted || left.before_reserve > 0 || fixed * (others + 1) < limit / 2 {
            self.cause = None;
            return Duration::MAX;
        }
        let used = |fifths| left.of_reserve >= left.reserve / 5 * fifths;
        if used(READ_AT) && self.cause.is_none() {
            self.cause = coverage::describe();
        }
        if used(END_AT) {
            self.end(fixed, limit);
        }
        PAUSE
    }

    fn end(&self, fixed: u64, limit: u64) -> ! {
        let size = |bytes: u64| Short(usize::try_from(bytes).unwrap_or(usize::MAX));
        let cause = self.cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
        let (limit, fixed) = (size(limit), fixed >> 20);
        limit_state::forget(); // no further line
        warn(&format!(
            "this program cannot be kept below its limit of {limit}, and ends: {fixed} MiB of its memory cannot be \
             evicted{cause}; give it a larger limit, or let it make fewer small objects"
        ));
        // SAFETY: no preconditions; handlers of the program could need more memory.
        unsafe { libc::_exit(LOST) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_goes_on_while_something_can_be_done() {
        let mut exhaustion = Exhaustion::default();
        let used = |of_reserve| Left { before_reserve: 0, of_reserve, reserve: 100, resident: 0 };
        for (left, can_be_evicted, fixed) in [
            (used(100), true, (900, 0)),
            (Left { before_reserve: 1, ..used(0) }, false, (900, 0)),
            (used(100), false, (499, 0)), // another process has the memory
        ] {
            assert_eq!(exhaustion.check(left, can_be_evicted, fixed, 1000), Duration::MAX, "{left:?}");
        }
        assert_eq!(exhaustion.check(used(79), false, (250, 1), 1000), PAUSE);
    }
}
