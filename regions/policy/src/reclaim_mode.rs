//! When pages leave, and where faults are served: two questions that are answered by timing.
//!
//! *Ahead of need, or when a fault needs their place.* Ahead of need, a fault finds room, and what must be sent is sent while
//! the program runs: the better way where sending takes long (a disk), or where processors are free. But pages that are
//! unmapped while the program runs interrupt its processor, and in a virtual machine that can cost more than the fault. While
//! it waits, nobody is interrupted.
//!
//! *Apart, or beside who waits* (`beside.rs`). Apart, foreseen pages come while the program runs; beside, nobody is woken on
//! another processor.
//!
//! Which is better is a matter of the machine, the store and the program, so that ways are timed, in turns, one question after
//! the other, and both at once:
//!
//! ```text
//!   chosen  | … | other | chosen | other | chosen | other | chosen | … the better one by medians …
//! ```

use std::time::{Duration, Instant};

/// A turn is so many transfers at least,
const TURN: u32 = 64;
/// after so many that do not count: the room that the way before has left.
const SETTLE: u32 = 32;
/// Turns of each way in a comparison.
const TURNS: usize = 3;
/// The other way must gain so much.
const GAIN: f64 = 0.05;
/// Turns from a comparison to the next: at first, and at most.
const REST: [u32; 2] = [16, 256];
/// Faults of a turn that may be late beside: now and then somebody else wants the processor.
const LATE: u32 = 3;

/// How faults are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// Pages leave ahead of need.
    ahead: bool,
    /// On the processor of who waits.
    beside: bool,
}

/// What a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Ahead,
    Beside,
    /// Each by itself may be worse.
    Both,
}

impl Question {
    /// How long a turn lasts at least. When another thread serves, the scheduler moves threads for some tens of milliseconds
    /// until it has settled; what a turn begins with does not count then.
    const fn turn(self) -> (Duration, Duration) {
        match self {
            Question::Ahead => (Duration::ZERO, Duration::from_millis(4)),
            Question::Beside | Question::Both => (Duration::from_millis(32), Duration::from_millis(32)),
        }
    }
}

impl Way {
    const fn other(self, question: Question) -> Way {
        match question {
            Question::Ahead => Way { ahead: !self.ahead, ..self },
            Question::Beside => Way { beside: !self.beside, ..self },
            Question::Both => Way { ahead: !self.ahead, beside: !self.beside },
        }
    }
}

/// What a turn has seen so far.
#[derive(Debug, Default)]
struct Turn {
    transfers: u32,
    pages: usize,
    /// The first transfer.
    first: Option<Instant>,
    /// The first one that counts.
    began: Option<Instant>,
    /// Faults that were late.
    late: u32,
}

/// The way in force, and how it was chosen.
#[derive(Debug)]
pub struct Timing {
    chosen: Way,
    now: Way,
    question: Question,
    /// There is more than one question.
    may_be_beside: bool,
    turn: Turn,
    /// Nanoseconds a page in the turns of the comparison that runs: the chosen way, and the other one.
    costs: [Vec<f64>; 2],
    /// Turns until the next comparison, and after that one.
    rest: (u32, u32),
}

impl Timing {
    pub fn new() -> Timing {
        let way = Way { ahead: true, beside: false };
        Timing {
            chosen: way,
            now: way,
            question: Question::Ahead,
            may_be_beside: false,
            turn: Turn::default(),
            costs: Default::default(),
            // The first questions follow each other.
            rest: (1, 1),
        }
    }

    /// Whether faults can be served on the processor of who waits.
    pub fn may_serve_beside(&mut self, may: bool) {
        self.may_be_beside = may;
        self.chosen.beside &= may;
        self.start_over();
    }

    /// As if that had turned out better.
    pub fn choose_beside(&mut self) {
        (self.may_be_beside, self.chosen.beside) = (true, true);
        self.start_over();
    }

    /// Pages leave ahead of need.
    pub fn ahead(&self) -> bool {
        self.now.ahead
    }

    /// Faults are served on the processor of who waits.
    pub fn beside(&self) -> bool {
        self.now.beside
    }

    /// So many pages came, for which others must leave.
    pub fn came(&mut self, pages: usize, now: Instant) {
        let (settles, lasts) = self.question.turn();
        let turn = &mut self.turn;
        turn.transfers += 1;
        let first = *turn.first.get_or_insert(now);
        let Some(began) = turn.began else {
            if turn.transfers >= SETTLE && now.saturating_duration_since(first) >= settles {
                (turn.transfers, turn.began) = (0, Some(now));
            }
            return;
        };
        turn.pages += pages;
        let took = now.saturating_duration_since(began);
        if turn.transfers < TURN || took < lasts {
            return;
        }
        let cost = took.as_nanos() as f64 / turn.pages.max(1) as f64;
        // A turn that follows one of the same way goes on where that ended.
        let before = self.now;
        self.turn_ends(cost);
        self.turn = Turn::default();
        if self.now == before {
            (self.turn.first, self.turn.began) = (Some(now), Some(now));
        }
    }

    /// A fault was not served beside where it should have been: when that is more than chance, it is not the better way,
    /// whatever its turns would say, which would take too long.
    pub fn is_late_beside(&mut self) {
        self.turn.late += 1;
        if self.now.beside && self.turn.late > LATE {
            self.chosen.beside = false;
            self.rest_after(false);
            self.start_over();
        }
    }

    fn turn_ends(&mut self, cost: f64) {
        if self.rest.0 > 0 {
            self.rest.0 -= 1;
        } else {
            self.costs[usize::from(self.now != self.chosen)].push(cost);
            if self.costs.iter().all(|costs| costs.len() >= TURNS) {
                self.compare();
                return;
            }
        }
        if self.rest.0 == 0 {
            let other_is_next = self.costs[0].len() == self.costs[1].len();
            self.now = if other_is_next { self.chosen.other(self.question) } else { self.chosen };
        }
    }

    fn compare(&mut self) {
        let [chosen, other] = self.costs.each_mut().map(|costs| median(costs));
        let change = other < chosen * (1.0 - GAIN);
        if change {
            self.chosen = self.chosen.other(self.question);
        }
        self.rest_after(change);
        self.start_over();
    }

    fn rest_after(&mut self, change: bool) {
        let next = (self.rest.1 * 2).clamp(REST[0], REST[1]);
        self.rest = if change { (REST[0], REST[0]) } else { (self.rest.1, next) };
        self.next_question();
    }

    fn next_question(&mut self) {
        self.question = match self.question {
            Question::Ahead if self.may_be_beside => Question::Beside,
            Question::Beside if self.may_be_beside => Question::Both,
            _ => Question::Ahead,
        };
    }

    /// The chosen way, of which nothing is known yet.
    fn start_over(&mut self) {
        self.now = self.chosen;
        self.turn = Turn::default();
        self.costs.iter_mut().for_each(Vec::clear);
    }
}

fn median(costs: &mut [f64]) -> f64 {
    costs.sort_unstable_by(f64::total_cmp);
    costs[costs.len() / 2]
}

#[cfg(test)]
mod tests;
