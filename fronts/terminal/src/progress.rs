//! Shows on a terminal how far a comparison is and when it will end.

use crate::table::Paper;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use largesse_text::counted;
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
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {steps}{left}: {msg}") {
            let style = if Paper::here().unicode { style } else { style.progress_chars("#-") };
            let style = style.with_key("steps", |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                _ = to.write_str(&counted(state.len().unwrap_or(0), "step"));
            });
            bar.set_style(style.with_key("left", |state: &ProgressState, to: &mut dyn std::fmt::Write| {
                _ = to.write_str(&left(state.pos(), state.eta()));
            }));
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

/// Returns the words on the time that is left; none before the first step is done, when nothing is known about it.
fn left(done: u64, time: Duration) -> String {
    if done == 0 { String::new() } else { format!(", {:#} left", HumanDuration(time)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_left_out_until_it_is_known() {
        assert_eq!(left(0, Duration::ZERO), "");
        assert_eq!(left(1, Duration::from_secs(125)), ", 2m left");
    }
}
