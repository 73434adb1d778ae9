//! Decides by timing when pages are evicted, and on which CPU faults are handled.
//!
//! *Eviction in the background, or when a fault needs room.* With eviction in the background, a fault finds free room,
//! and dirty pages are written while the program runs, which is better if writes are slow (a disk) or CPUs are idle.
//! But unmapping pages while the program runs interrupts its CPU, and in a virtual machine this can cost more than the
//! fault. A waiting thread is not interrupted.
//!
//! *Handling of faults on another CPU, or on that of the faulting thread.* On another CPU, prefetched pages are filled
//! while the program runs. On the CPU of the faulting thread, no thread needs to be woken on another CPU.
//!
//! The better mode depends on the machine, the store and the program. So the chosen mode and another one are timed in
//! alternating turns. They differ in one of the two choices, or in both:
//!
//! ```text
//!   chosen  | … | other | chosen | other | chosen | other | chosen | … the better one by medians …
//! ```

use std::time::{Duration, Instant};

/// Smallest number of transfers in a turn, for which one mode is measured before the other has its turn.
const TURN_TRANSFERS: u32 = 64;
/// Number of transfers before a turn that are not timed, because they use free memory that the previous mode has left.
const SETTLE: u32 = 32;
/// Number of turns of each mode in a comparison.
const TURNS: usize = 3;
/// Share of the cost per page that another mode must save in a comparison to be chosen.
const GAIN: f64 = 0.05;
/// Number of turns between two comparisons: its initial value, and its upper bound.
const PAUSE: [u32; 2] = [16, 256];
/// Largest number of delayed faults in a turn with which handling on the faulting CPU continues. A fault is delayed if
/// another program occupies that CPU.
const MAX_LATE: u32 = 3;

/// When pages are evicted, and on which CPU faults are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    /// Whether pages are evicted in the background.
    in_background: bool,
    /// Whether faults are handled on the faulting thread's CPU.
    on_cpu: bool,
}

/// In which choice the two modes of a comparison differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Background,
    OnCpu,
    /// Both choices are changed at once, because changing one of them alone may make it worse.
    Both,
}

impl Question {
    /// Returns for how long transfers are not timed before a turn, and the shortest duration of a turn. After a change
    /// of the thread that handles faults, the scheduler moves threads for some tens of milliseconds.
    const fn turn(self) -> (Duration, Duration) {
        match self {
            Question::Background => (Duration::ZERO, Duration::from_millis(4)),
            Question::OnCpu | Question::Both => (Duration::from_millis(32), Duration::from_millis(32)),
        }
    }
}

impl Mode {
    const fn other(self, question: Question) -> Mode {
        match question {
            Question::Background => Mode { in_background: !self.in_background, ..self },
            Question::OnCpu => Mode { on_cpu: !self.on_cpu, ..self },
            Question::Both => Mode { in_background: !self.in_background, on_cpu: !self.on_cpu },
        }
    }
}

/// The transfers of the current turn, and when it began.
#[derive(Debug, Default)]
struct Turn {
    transfers: u32,
    pages: usize,
    /// Time of the first transfer, from which on the mode settles.
    first: Option<Instant>,
    /// Time from which transfers are timed; `None` while the mode settles.
    began: Option<Instant>,
    /// Number of faults that were not handled on the faulting CPU in time.
    late: u32,
}

/// The mode in force, and the state of the comparison by which the next one is chosen.
#[derive(Debug)]
pub struct ReclaimMode {
    chosen: Mode,
    now: Mode,
    question: Question,
    /// Whether faults can be handled on the faulting CPU, so that there is a choice of the CPU at all.
    on_cpu_allowed: bool,
    turn: Turn,
    /// Nanoseconds per page in the turns of the current comparison: in the chosen mode, and in the other one.
    costs: [Vec<f64>; 2],
    /// Number of turns until the next comparison, and number of turns from that comparison to the one after it.
    pause: (u32, u32),
}

impl Default for ReclaimMode {
    /// Starts with eviction in the background, and with faults that are handled on another CPU.
    fn default() -> ReclaimMode {
        let way = Mode { in_background: true, on_cpu: false };
        ReclaimMode {
            chosen: way,
            now: way,
            question: Question::Background,
            on_cpu_allowed: false,
            turn: Turn::default(),
            costs: Default::default(),
            // The first comparisons follow each other immediately.
            pause: (1, 1),
        }
    }
}

impl ReclaimMode {
    /// Sets whether faults can be handled on the CPU of the faulting thread.
    pub fn allow_on_cpu(&mut self, may: bool) {
        self.on_cpu_allowed = may;
        self.chosen.on_cpu &= may;
        self.start_over();
    }

    /// Chooses handling on the CPU of the faulting thread, as a comparison would. It is for tests of the handlers.
    pub fn choose_on_cpu(&mut self) {
        (self.on_cpu_allowed, self.chosen.on_cpu) = (true, true);
        self.start_over();
    }

    /// Returns whether pages are evicted in the background.
    pub fn in_background(&self) -> bool {
        self.now.in_background
    }

    /// Returns whether faults are handled on the CPU of the faulting thread.
    pub fn on_cpu(&self) -> bool {
        self.now.on_cpu
    }

    /// Records a fill of `pages` pages at the time `now` that needed evictions.
    pub fn filled(&mut self, pages: usize, now: Instant) {
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
        if turn.transfers < TURN_TRANSFERS || took < lasts {
            return;
        }
        let cost = took.as_nanos() as f64 / turn.pages.max(1) as f64;
        // A turn that follows one of the same mode starts where that one ended.
        let before = self.now;
        self.turn_ends(cost);
        self.turn = Turn::default();
        if self.now == before {
            (self.turn.first, self.turn.began) = (Some(now), Some(now));
        }
    }

    /// Records a fault that was not handled on the faulting CPU in time. If there are more than `MAX_LATE` in a turn,
    /// faults are handled on another CPU at once, because a comparison would take too long.
    pub fn note_late_on_cpu(&mut self) {
        self.turn.late += 1;
        if self.now.on_cpu && self.turn.late > MAX_LATE {
            self.chosen.on_cpu = false;
            self.pause_after(false);
            self.start_over();
        }
    }

    fn turn_ends(&mut self, cost: f64) {
        if self.pause.0 > 0 {
            self.pause.0 -= 1;
        } else {
            self.costs[usize::from(self.now != self.chosen)].push(cost);
            if self.costs.iter().all(|costs| costs.len() >= TURNS) {
                self.compare();
                return;
            }
        }
        if self.pause.0 == 0 {
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
        self.pause_after(change);
        self.start_over();
    }

    fn pause_after(&mut self, change: bool) {
        let next = (self.pause.1 * 2).clamp(PAUSE[0], PAUSE[1]);
        self.pause = if change { (PAUSE[0], PAUSE[0]) } else { (self.pause.1, next) };
        self.next_question();
    }

    fn next_question(&mut self) {
        self.question = match self.question {
            Question::Background if self.on_cpu_allowed => Question::OnCpu,
            Question::OnCpu if self.on_cpu_allowed => Question::Both,
            _ => Question::Background,
        };
    }

    /// Returns to the chosen mode, and drops all observations of the comparison.
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
