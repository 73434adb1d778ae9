//! Receives signals for which the program has functions.
//!
//! A thread waits for them and notes them in a queue, so that the functions run at a safepoint, where they may allocate.

use crate::threads::lock;
use signal_hook::iterator::{Handle, Signals};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Longest time for which a thread waits until a signal that it sent to its own process is noted.
const DELIVERY: Duration = Duration::from_secs(30);

/// The signals that the waiting thread has noted.
#[derive(Debug, Default)]
struct Noted {
    /// Signals that were not handled yet, the oldest first.
    queue: VecDeque<i32>,
    /// Numbers of the signals that the waiting thread receives, and how often each was announced to the threads of Lisp.
    announced: BTreeMap<i32, u64>,
}

/// Signals that arrived and were not handled yet.
#[derive(Debug, Default)]
pub(crate) struct PendingSignals {
    /// The noted signals, and the condition that one was added.
    noted: Arc<(Mutex<Noted>, Condvar)>,
    /// Adds signals to those that the waiting thread receives, once that thread was started.
    waiting: Mutex<Option<Handle>>,
}

impl PendingSignals {
    /// Has a signal noted from now on, and `noted` called for each. The first call starts the thread that waits.
    pub(crate) fn receive(&self, number: i32, noted: impl Fn() + Send + 'static) -> std::io::Result<()> {
        let mut waiting = lock(&self.waiting);
        if let Some(waiting) = &*waiting {
            waiting.add_signal(number)?;
            lock(&self.noted.0).announced.entry(number).or_default();
            return Ok(());
        }
        let mut signals = Signals::new([number])?;
        *waiting = Some(signals.handle());
        let shared = Arc::clone(&self.noted);
        let wait = move || {
            for number in signals.forever() {
                lock(&shared.0).queue.push_back(number);
                noted();
                *lock(&shared.0).announced.entry(number).or_default() += 1;
                shared.1.notify_all();
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
        lock(&self.noted.0).announced.entry(number).or_default();
        Ok(())
    }

    /// Sends a signal to this process by calling `send`. If the program has a function for the signal, waits until the
    /// signal is noted, as the kernel delivers a signal to its sender before the call returns.
    pub(crate) fn deliver<T>(&self, number: i32, send: impl FnOnce() -> T) -> T {
        let announced = |state: &Noted| state.announced.get(&number).copied();
        let before = announced(&lock(&self.noted.0));
        let sent = send();
        if before.is_some() {
            let state = lock(&self.noted.0);
            let wait = self.noted.1.wait_timeout_while(state, DELIVERY, |state| announced(state) == before);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
        }
        sent
    }

    /// Returns the signal that arrived first, and forgets it.
    pub(crate) fn next(&self) -> Option<i32> {
        lock(&self.noted.0).queue.pop_front()
    }
}
