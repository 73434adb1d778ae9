//! Shows on a terminal how far a comparison is and when it will end.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A progress bar on standard error.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Starts a bar of `steps` steps, which is hidden if standard error is not a terminal.
    pub fn over(steps: u64) -> Progress {
        let shown = std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left: {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        if shown {
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Progress(bar)
    }

    /// Shows `what` as the name of the current step.
    pub fn at(&self, what: String) {
        self.0.set_message(what);
    }

    /// Counts a step as done.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// Hides the bar while `print` runs, and returns its result.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
