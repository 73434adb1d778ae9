//! Receives signals for which the program has functions.
//!
//! A thread waits for them and notes them in a queue, so that the functions run at a safepoint, where they may allocate.

use crate::threads::lock;
use signal_hook::iterator::{Handle, Signals};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Signals that arrived and were not handled yet.
#[derive(Debug, Default)]
pub(crate) struct PendingSignals {
    queue: Arc<Mutex<VecDeque<i32>>>,
    /// Adds signals to those that the waiting thread receives, once that thread was started.
    waiting: Mutex<Option<Handle>>,
}

impl PendingSignals {
    /// Has a signal noted from now on, and `noted` called for each. The first call starts the thread that waits.
    pub(crate) fn receive(&self, number: i32, noted: impl Fn() + Send + 'static) -> std::io::Result<()> {
        let mut waiting = lock(&self.waiting);
        if let Some(waiting) = &*waiting {
            return waiting.add_signal(number);
        }
        let mut signals = Signals::new([number])?;
        *waiting = Some(signals.handle());
        let queue = Arc::clone(&self.queue);
        let wait = move || {
            for number in signals.forever() {
                lock(&queue).push_back(number);
                noted();
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(|_| ())
    }

    /// Returns the signal that arrived first, and forgets it.
    pub(crate) fn next(&self) -> Option<i32> {
        lock(&self.queue).pop_front()
    }
}
