//! A request slot: passes one request at a time from a thread of the program to a thread of the agent, and its answer
//! back.
//!
//! | turn | owner of request, answer and data | changes the turn |
//! |---|---|---|
//! | `PROGRAM` | the thread of the program that took the slot | when the request is written |
//! | `AGENT` | the agent's thread for this slot | when the answer is written |
//! | `CLOSED` | none: the program has ended | – |
//!
//! The bit `SLEEPS` in the turn says that a thread sleeps until the turn changes and must be woken.

use crate::message::{Answer, Request};
use crate::sync::{FutexWord, Ordering, UnsafeCell};
use std::time::{Duration, Instant};

const PROGRAM: u32 = 0;
const AGENT: u32 = 1;
const CLOSED: u32 = 2;
const SLEEPS: u32 = 4;

/// Time for which a thread spins before it sleeps. A wake-up costs more than most answers take, and on two processors a
/// spinning thread delays the other side.
pub(crate) const SPIN: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 20 });
/// Time between two checks of a sleeping thread whether the other side is alive.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A slot in the memory that program and agent share. All-zero bytes are a valid slot whose turn is the program's.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct RequestSlot {
    turn: FutexWord,
    request: UnsafeCell<Request>,
    answer: UnsafeCell<Answer>,
}

// SAFETY: request and answer are accessed only by the side whose turn it is.
unsafe impl Sync for RequestSlot {}
// SAFETY: plain numbers.
unsafe impl Send for RequestSlot {}

impl RequestSlot {
    /// Sends a request from the program and waits for the answer. Only the thread that took the slot may call it.
    /// Returns `None` once `alive` returns false.
    pub(crate) fn ask(&self, request: Request, alive: impl Fn() -> bool) -> Option<Answer> {
        // SAFETY: the turn is the program's.
        self.request.with_mut(|at| unsafe { *at = request });
        self.pass(AGENT);
        self.await_turn(AGENT, Some(&alive))?;
        // SAFETY: the turn is the program's again.
        Some(self.answer.with(|at| unsafe { *at }))
    }

    /// Serves one request in the agent: waits for it, and answers it with what `serve` returns. Returns `None` if the
    /// slot is closed.
    pub(crate) fn serve(&self, serve: impl FnOnce(Request) -> Answer) -> Option<()> {
        if self.await_turn(PROGRAM, None)? == CLOSED {
            return None;
        }
        // SAFETY: the turn is the agent's. The request is copied, so that the program cannot change it after the checks.
        let request = self.request.with(|at| unsafe { *at });
        let answer = serve(request);
        // SAFETY: as above.
        self.answer.with_mut(|at| unsafe { *at = answer });
        // A slot closed while it was served gets the turn PROGRAM here, which is harmless: no thread reads it any more.
        (self.pass(PROGRAM) != CLOSED).then_some(())
    }

    /// Closes the slot in the agent after the program has ended, so that the serving thread ends.
    pub(crate) fn close(&self) {
        self.pass(CLOSED);
    }

    /// Sets the turn to `to`, wakes a sleeping thread, and returns the turn before.
    fn pass(&self, to: u32) -> u32 {
        // Release: pairs with the Acquire in `await_turn`, so that the other side sees what was written.
        let before = self.turn.swap(to, Ordering::Release);
        if before & SLEEPS != 0 {
            self.turn.wake();
        }
        before & !SLEEPS
    }

    /// Waits while the turn is `other`, and returns the new turn. Returns `None` once `alive` returns false.
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
            // Relaxed: it matters only whether the turn is unchanged; the load above orders the rest.
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
    fn each_request_gets_its_answer() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let slot = Arc::new(RequestSlot::default());
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

    // Seen to fail (deadlock) when `serve` does not check whether the slot was closed while it was served.
    #[test]
    fn closing_ends_the_serving_thread() {
        loom::model(|| {
            let slot = Arc::new(RequestSlot::default());
            slot.pass(AGENT); // a request whose answer is never read
            let agent = {
                let slot = slot.clone();
                loom::thread::spawn(move || while slot.serve(|_| Answer::default()).is_some() {})
            };
            slot.close();
            agent.join().unwrap();
        });
    }
}
