//! How long pages stay away.

/// By the clock of pages that left, those that are away still among them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Absence {
    /// Pages that are away.
    pub(super) away: f64,
    /// Their time away, of all of them.
    pub(super) time: f64,
    /// Those that came back.
    pub(super) back: f64,
    /// So far this goes.
    now: u32,
    /// When the past last faded.
    faded: u32,
}

impl Absence {
    /// So many pages left.
    pub(super) fn leave(&mut self, pages: u32) {
        self.away += f64::from(pages);
    }

    /// Some did not leave after all.
    pub(super) fn stay(&mut self, pages: u32) {
        self.away = (self.away - f64::from(pages)).max(0.0);
    }

    /// So many came back.
    pub(super) fn come_back(&mut self, pages: u32) {
        self.stay(pages);
        self.back += f64::from(pages);
    }

    /// It is `now` by the clock.
    pub(super) fn pass(&mut self, now: u32, local: usize) {
        self.time += self.away * f64::from(now.wrapping_sub(self.now));
        self.now = now;
        if now.wrapping_sub(self.faded) as usize > 2 * local {
            let half = |it: f64| it / 2.0;
            // Some of those that are away never come back: their part fades too.
            (self.time, self.back, self.faded) = (half(self.time), half(self.back), now);
            self.away *= 0.75;
        }
    }

    /// On average; as long as it takes to replace half of memory while little is known.
    pub(super) fn mean(&self, local: usize) -> f64 {
        const LITTLE: f64 = 32.0;
        (self.time + LITTLE * local as f64 / 2.0) / (self.back + LITTLE)
    }

    /// Those of others too.
    pub(super) fn add(&mut self, others: Absence) {
        self.away += others.away;
        self.time += others.time;
        self.back += others.back;
    }
}
