//! When pages leave: ahead of need, or when a fault needs their place.
//!
//! Ahead of need, a fault finds room, and what must be sent is sent while the program runs: the better way where
//! sending takes long (a disk), or where processors are free. But pages that are unmapped while the program runs interrupt
//! its processor, and in a virtual machine that can cost more than the fault. While it waits, nobody is interrupted.
//! Which of the two counts is a matter of the machine, the store and the program, so that both are timed, in turns:
//!
//! ```text
//!   chosen  | … | other | chosen | other | chosen | other | chosen | … the better one by medians …
//! ```

use std::time::{Duration, Instant};

/// A turn is so many transfers and so long, at least.
const TURN: (u32, Duration) = (64, Duration::from_millis(4));
/// Transfers before a turn counts: the room that the way before has left.
const SETTLE: u32 = 32;
/// Turns of each way in a comparison.
const TURNS: usize = 3;
/// The other way must gain so much.
const GAIN: f64 = 0.05;
/// Turns from a comparison to the next: at first, and at most.
const REST: [u32; 2] = [16, 256];

/// One of two ways for pages to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Ahead = 0,
    AtNeed = 1,
}

impl Way {
    const fn other(self) -> Way {
        match self {
            Way::Ahead => Way::AtNeed,
            Way::AtNeed => Way::Ahead,
        }
    }
}

/// What a turn has seen so far.
#[derive(Debug, Default)]
struct Turn {
    transfers: u32,
    pages: usize,
    /// The first transfer that counts.
    began: Option<Instant>,
}

/// The way in force, and how it was chosen.
#[derive(Debug)]
pub(crate) struct Timing {
    chosen: Way,
    now: Way,
    turn: Turn,
    /// Nanoseconds a page in the turns of the comparison that runs.
    costs: [Vec<f64>; 2],
    /// Turns until the next comparison, and after that one.
    rest: (u32, u32),
}

impl Timing {
    pub(crate) fn new() -> Timing {
        Timing {
            chosen: Way::Ahead,
            now: Way::Ahead,
            turn: Turn::default(),
            costs: Default::default(),
            rest: (1, REST[0]),
        }
    }

    /// Pages leave ahead of need.
    pub(crate) fn ahead(&self) -> bool {
        self.now == Way::Ahead
    }

    /// So many pages came, for which others must leave.
    pub(crate) fn came(&mut self, pages: usize, now: Instant) {
        let turn = &mut self.turn;
        turn.transfers += 1;
        let Some(began) = turn.began else {
            turn.began = (turn.transfers >= SETTLE).then_some(now);
            return;
        };
        turn.pages += pages;
        let took = now.saturating_duration_since(began);
        if turn.transfers < SETTLE + TURN.0 || took < TURN.1 {
            return;
        }
        let cost = took.as_nanos() as f64 / turn.pages.max(1) as f64;
        // A turn that follows one of the same way goes on where that ended.
        let before = self.now;
        self.turn_ends(cost);
        self.turn = Turn::default();
        if self.now == before {
            (self.turn.transfers, self.turn.began) = (SETTLE, Some(now));
        }
    }

    fn turn_ends(&mut self, cost: f64) {
        if self.rest.0 > 0 {
            self.rest.0 -= 1;
        } else {
            self.costs[self.now as usize].push(cost);
            if self.costs.iter().all(|costs| costs.len() >= TURNS) {
                self.compare();
                return;
            }
        }
        if self.rest.0 == 0 {
            let other_is_next = self.costs[0].len() == self.costs[1].len();
            self.now = if other_is_next { self.chosen.other() } else { self.chosen };
        }
    }

    fn compare(&mut self) {
        let [ahead, at_need] = self.costs.each_mut().map(|costs| median(costs));
        let (mine, others) = match self.chosen {
            Way::Ahead => (ahead, at_need),
            Way::AtNeed => (at_need, ahead),
        };
        let change = others < mine * (1.0 - GAIN);
        self.rest = if change { (REST[0], REST[0]) } else { (self.rest.1, REST[1].min(self.rest.1 * 2)) };
        if change {
            self.chosen = self.chosen.other();
        }
        self.now = self.chosen;
        self.costs.iter_mut().for_each(Vec::clear);
    }
}

fn median(costs: &mut [f64]) -> f64 {
    costs.sort_unstable_by(f64::total_cmp);
    costs[costs.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `turns` turns pass in which a page takes so many microseconds, ahead of need and at need. Returns how
    /// many of them were ahead.
    fn pass(timing: &mut Timing, clock: &mut Instant, turns: usize, costs: [u64; 2]) -> usize {
        let mut ahead = 0;
        for _ in 0..turns * 200 {
            *clock += Duration::from_micros(costs[usize::from(!timing.ahead())]);
            timing.came(1, *clock);
            ahead += usize::from(timing.ahead());
        }
        ahead / 200
    }

    #[test]
    fn the_better_way_is_found_and_found_again_when_it_changes() {
        let (mut timing, mut clock) = (Timing::new(), Instant::now());
        pass(&mut timing, &mut clock, 100, [20, 10]);
        assert!(pass(&mut timing, &mut clock, 400, [20, 10]) < 40, "at need is better");
        pass(&mut timing, &mut clock, 600, [10, 20]);
        assert!(pass(&mut timing, &mut clock, 400, [10, 20]) > 360, "ahead of need is better");
    }

    #[test]
    fn what_makes_no_difference_changes_nothing_and_is_tried_seldom() {
        let (mut timing, mut clock) = (Timing::new(), Instant::now());
        pass(&mut timing, &mut clock, 400, [10, 10]);
        assert!(pass(&mut timing, &mut clock, 1000, [10, 10]) > 970);
    }

    #[test]
    fn a_pause_of_the_program_says_nothing() {
        let (mut timing, mut clock) = (Timing::new(), Instant::now());
        // Now and then one falls into a comparison.
        let mut ahead = 0;
        for pause in 0..400 {
            ahead += pass(&mut timing, &mut clock, 5 + pause % 7, [10, 20]);
            clock += Duration::from_secs(5);
        }
        assert!(ahead > 2900, "{ahead} turns of 3196");
    }
}
