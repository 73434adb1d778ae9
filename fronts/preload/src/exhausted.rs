//! Ends the program before the kernel kills it, if memory that cannot be evicted exceeds the limit.
//!
//! The kernel would kill a process of the group without a word, perhaps another one. So when most of the reserve is
//! used and nothing is left to evict, the program ends with a message that says what takes the memory. Another thread
//! looks that up as soon as the reserve is in use, because both the use of the reserve and the reading of the kernel's
//! list of mappings can take some milliseconds. If the end comes first, the message has only the usual causes.

use crate::limit::Left;
use crate::lost::LOST;
use crate::message::warn;
use crate::{coverage, limit_state, service_thread};
use core::time::Duration;
use largesse_settings::Short;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// From this part of the reserve on, in fifths, the program ends if it would use up the rest within [`LATE`].
const END_FAST_AT: u64 = 2;
/// The longest time by which a look may be late, as other threads have the processors.
const LATE: Duration = Duration::from_millis(10);
/// The program ends when this part of the reserve, in fifths, has been used. The tables and buffers of far memory, and
/// the least that it has resident, take up to three fifths of the smallest reserve.
const END_AT: u64 = 4;
/// Pause between two looks while nothing is left to evict and the reserve is in use.
const PAUSE: Duration = Duration::from_micros(500);

/// Watches memory that cannot be evicted.
#[derive(Debug, Default)]
pub(crate) struct Exhaustion {
    /// The largest users of the memory, in words, once they were looked up; `None` before a thread was started for it.
    cause: Option<Arc<OnceLock<String>>>,
    /// How much of the reserve was used at the last look, and when that was; `None` if it was not in use.
    last: Option<(u64, Instant)>,
}

impl Exhaustion {
    /// Ends the program if most of the reserve is used, or soon will be, nothing `can_be_evicted`, and this process has
    /// most of the memory: `fixed` bytes of the `limit`, with as many in each of the `others` that share pages with it.
    /// Returns the longest pause until the next look.
    pub(crate) fn check(
        &mut self,
        left: Left,
        can_be_evicted: bool,
        (fixed, others): (u64, u64),
        limit: u64,
    ) -> Duration {
        if can_be_evicted || left.before_reserve > 0 || fixed * (others + 1) < limit / 2 {
            *self = Exhaustion::default();
            return Duration::MAX;
        }
        let now = Instant::now();
        let last = self.last.replace((left.of_reserve, now));
        let rest = last.map(|(used, at)| rest_lasts(left, used, now.saturating_duration_since(at)));
        let cause = self.cause.as_ref().and_then(|cause| cause.get());
        if is_used_up(left, rest, cause.is_some()) {
            self.end(fixed, limit);
        }
        if self.cause.is_none() {
            let cause = Arc::default();
            self.cause = Some(Arc::clone(&cause));
            service_thread::start(move || _ = coverage::describe().map(|text| cause.set(text)));
        }
        PAUSE
    }

    fn end(&self, fixed: u64, limit: u64) -> ! {
        let size = |bytes: u64| Short(usize::try_from(bytes).unwrap_or(usize::MAX));
        let usual = "probably mappings that cannot become far, such as stacks, or shared ones";
        let cause = self.cause.as_ref().and_then(|cause| cause.get()).map_or(usual, String::as_str);
        let (limit, fixed) = (size(limit), fixed >> 20);
        limit_state::forget(); // no further line
        warn(&format!(
            "this program cannot be kept below its limit of {limit}, and ends: {fixed} MiB of its memory cannot be \
             evicted: {cause}; give it a larger limit, or let it make fewer small objects"
        ));
        // SAFETY: no preconditions; handlers of the program could need more memory.
        unsafe { libc::_exit(LOST) }
    }
}

/// Returns how long the rest of the reserve lasts if it is used as since the last look, at which `used` bytes of it were
/// used, and which was `ago`.
fn rest_lasts(left: Left, used: u64, ago: Duration) -> Duration {
    let grown = left.of_reserve.saturating_sub(used);
    let rest = left.reserve.saturating_sub(left.of_reserve);
    match grown {
        0 => Duration::MAX,
        _ => Duration::from_secs_f64(ago.as_secs_f64() * rest as f64 / grown as f64),
    }
}

/// Returns whether most of the reserve is used, or would be before a late look; `rest` is how long the rest of it lasts.
/// If the cause is not known yet, that may be in the next milliseconds.
fn is_used_up(left: Left, rest: Option<Duration>, is_known: bool) -> bool {
    let used = |fifths| left.of_reserve >= left.reserve / 5 * fifths;
    let late = if is_known { LATE } else { LATE / 3 };
    used(END_AT) || used(END_FAST_AT) && rest.is_some_and(|rest| rest < late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_growth_ends_earlier() {
        let left = |of_reserve| Left { before_reserve: 0, of_reserve, reserve: 100, resident: 0 };
        for (of_reserve, grown, want) in [
            (80, None, true),
            (79, None, false),
            (79, Some((77, 1)), false), // the other 21 last more than 10 ms
            (79, Some((76, 1)), true),
            (40, Some((34, 1)), false),
            (40, Some((33, 1)), true),
            (39, Some((0, 1)), false),
            (50, Some((50, 0)), false),
        ] {
            let lasts = |(used, ago)| rest_lasts(left(of_reserve), used, Duration::from_millis(ago));
            assert_eq!(is_used_up(left(of_reserve), grown.map(lasts), true), want, "{of_reserve} {grown:?}");
        }
        let soon = Some(Duration::from_millis(5));
        assert!(is_used_up(left(50), soon, true) && !is_used_up(left(50), soon, false));
    }

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
