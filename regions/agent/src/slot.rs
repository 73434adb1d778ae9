//! A slot: one request at a time, from a thread of the program to a thread of the agent and back.
//!
//! | turn | whose are request, answer and data | who passes it on |
//! |---|---|---|
//! | `PROGRAM` | the thread of the program that has the slot | it, when the request is written |
//! | `AGENT` | the agent's thread of this slot | it, when the answer is written |
//! | `CLOSED` | nobody's: the program has gone | – |
//!
//! `SLEEPS` beside the turn: who waits for it sleeps, and whoever passes it on wakes them.

use crate::message::{Answer, Request};
use crate::sync::{Ordering, UnsafeCell, Word};
use std::time::{Duration, Instant};

const PROGRAM: u32 = 0;
const AGENT: u32 = 1;
const CLOSED: u32 = 2;
const SLEEPS: u32 = 4;

/// How long to look for the turn before sleeping: waking somebody costs more than most answers take,
/// and on two processors whoever looks is in the way.
const SPIN: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 20 });
/// Who sleeps looks after the other side so often, in milliseconds.
const LOOK: u32 = 50;

/// In memory of both processes; zero bytes are a slot of which it is the program's turn.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Slot {
    turn: Word,
    request: UnsafeCell<Request>,
    answer: UnsafeCell<Answer>,
}

// SAFETY: request and answer are reached by the side whose turn it is.
unsafe impl Sync for Slot {}
// SAFETY: plain numbers.
unsafe impl Send for Slot {}

impl Slot {
    /// In the program, by the one thread that has the slot. `None`: the other side is not `alive`.
    pub(crate) fn ask(&self, request: Request, alive: impl Fn() -> bool) -> Option<Answer> {
        // SAFETY: it is our turn.
        self.request.with_mut(|at| unsafe { *at = request });
        self.pass(AGENT);
        self.await_turn(AGENT, Some(&alive))?;
        // SAFETY: it is our turn again.
        Some(self.answer.with(|at| unsafe { *at }))
    }

    /// In the agent: serves one request. `None`: the slot is closed.
    pub(crate) fn serve(&self, serve: impl FnOnce(Request) -> Answer) -> Option<()> {
        if self.await_turn(PROGRAM, None)? == CLOSED {
            return None;
        }
        // SAFETY: it is our turn. The request is copied, so that it stays as it was checked.
        let request = self.request.with(|at| unsafe { *at });
        let answer = serve(request);
        // SAFETY: as above.
        self.answer.with_mut(|at| unsafe { *at = answer });
        // Closed meanwhile, it stays so: nobody else looks at it any more.
        (self.pass(PROGRAM) != CLOSED).then_some(())
    }

    /// In the agent, when the program has gone: whoever serves ends.
    pub(crate) fn close(&self) {
        self.pass(CLOSED);
    }

    /// Returns whose turn it was.
    fn pass(&self, to: u32) -> u32 {
        // Release: pairs with the Acquire in `await_turn`, so that the other side sees what was written.
        let before = self.turn.swap(to, Ordering::Release);
        if before & SLEEPS != 0 {
            self.turn.wake();
        }
        before & !SLEEPS
    }

    /// Waits while the turn is `other`'s; returns whose it is then.
    fn await_turn(&self, other: u32, alive: Option<&dyn Fn() -> bool>) -> Option<u32> {
        let since = Instant::now();
        loop {
            // Acquire: pairs with the Release in `pass`.
            let turn = self.turn.load(Ordering::Acquire);
            if turn & !SLEEPS != other {
                return Some(turn & !SLEEPS);
            }
            if since.elapsed() < SPIN {
                core::hint::spin_loop();
                continue;
            }
            if alive.is_some_and(|alive| !alive()) {
                return None;
            }
            let asleep = other | SLEEPS;
            // Relaxed: only whether it was still theirs matters; the load above sees the rest.
            let marked = self.turn.compare_exchange(turn, asleep, Ordering::Relaxed, Ordering::Relaxed);
            if marked.is_ok() {
                self.turn.wait(asleep, alive.is_some().then_some(LOOK));
            }
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use largesse_store::StoreError;
    use loom::sync::Arc;

    // Seen to fail with `Relaxed` in `pass` ("Causality violation"), with `Relaxed` in the load of
    // `await_turn` (the same), and without the `wake` (deadlock).
    #[test]
    fn each_request_gets_its_own_answer_and_nobody_sleeps_on() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let slot = Arc::new(Slot::default());
            let agent = {
                let slot = slot.clone();
                loom::thread::spawn(move || {
                    let double = |it: Request| Answer::to(Err(StoreError::Full { wanted: it.at * 2 }));
                    while slot.serve(double).is_some() {}
                })
            };
            for at in [3, 5] {
                let answer = slot.ask(Request { at, ..Request::default() }, || true).unwrap();
                assert_eq!(answer.result(), Err(StoreError::Full { wanted: at * 2 }));
            }
            slot.close();
            agent.join().unwrap();
        });
    }

    // Seen to fail (deadlock) when `serve` does not look whether the slot was closed meanwhile.
    #[test]
    fn who_serves_a_program_that_is_killed_ends() {
        loom::model(|| {
            let slot = Arc::new(Slot::default());
            slot.pass(AGENT); // a request, and nobody who waits for its answer
            let agent = {
                let slot = slot.clone();
                loom::thread::spawn(move || while slot.serve(|_| Answer::default()).is_some() {})
            };
            slot.close();
            agent.join().unwrap();
        });
    }
}
