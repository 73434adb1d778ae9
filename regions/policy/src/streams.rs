//! What will be touched next: sequences of faults with a constant distance.
//!
//! Numerical programs walk through arrays with strides, through several at once. A fault that stands
//! where a known stream would go next lets the stream fetch some sets ahead; three faults at equal
//! distance, among the last ones, start a stream, or four where walks go side by side.
//!
//! There are two kinds, which want sets of their own ([`Access`]):
//!
//! ```text
//!   a walk, from set to set     |####|####|####|####|     all of a set is used: large ones
//!   rows, at a distance         |#...|.#..|...#|....|     nobody touches what is between: small ones
//! ```
//!
//! Who walks was at the page beside before, so that it is here, and so is the set up to it. Walks side by side, each a step in
//! turn, are rows in the order of their faults and walks in the use of their sets.

mod strided;

use core::ops::Range;
use strided::Rows;

/// Faults that are remembered.
const RECENT: usize = 16;
/// Streams that are followed at once.
const STREAMS: usize = 8;
/// Sets ahead at most, of one stream.
const MOST_AHEAD: usize = 32;
/// Steps over which a stride is averaged: off by little even where it is foreseen far ahead.
const LONG: f64 = 256.0;
/// Pages from one row to the next, at least.
const LEAST_STRIDE: f64 = 2.0;

/// How the pages around one that is touched are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// With it, or nobody knows.
    #[default]
    Dense = 0,
    /// Not at all: who touched it steps over them.
    Strided = 1,
}

impl Access {
    /// Each of them.
    pub const ALL: [Access; 2] = [Access::Dense, Access::Strided];
}

/// A page that was touched and is not here.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Its number.
    pub page: usize,
    /// The page before it is here, and the one behind it.
    pub beside: [bool; 2],
    /// So is all of its dense set up to there: who goes on from there walked here, from a page to the next.
    pub walked: [bool; 2],
    /// Pages that move together there, by [`Access`].
    pub sets: [usize; 2],
}

impl Fault {
    /// At a page within a segment, where sets of so many pages move and some are `here`.
    pub fn new(page: usize, sets: [usize; 2], within: &Range<usize>, here: impl Fn(usize) -> bool) -> Fault {
        let set = sets[Access::Dense as usize];
        let first = page / set * set;
        let beside = [within.start < page && here(page - 1), page + 1 < within.end && here(page + 1)];
        let walked = [
            beside[0] && (first.max(within.start)..page).all(&here),
            beside[1] && (page + 1..(first + set).min(within.end)).all(&here),
        ];
        Fault { page, beside, walked, sets }
    }

    /// Who goes in this direction walked here.
    fn is_walked(&self, forward: bool) -> bool {
        self.walked[usize::from(!forward)]
    }

    /// Who goes in either direction did.
    fn is_of_a_walk(&self) -> bool {
        self.walked != [false; 2]
    }
}

/// Where a stream goes.
#[derive(Clone, Copy, Debug)]
enum Course {
    /// From set to set, last to that of a page.
    Walk { page: usize, forward: bool },
    /// Along rows.
    Rows(Rows),
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    course: Course,
    /// Sets beyond the last fault that were asked for, so that no fault is expected there.
    foreseen: usize,
    /// Sets to foresee the next time.
    depth: usize,
    /// When it was last followed.
    used: u64,
}

impl Stream {
    fn access(&self) -> Access {
        match self.course {
            Course::Walk { .. } => Access::Dense,
            Course::Rows(rows) => rows.access,
        }
    }

    /// Pages from one set to the next.
    fn stride(&self, set: usize) -> f64 {
        match self.course {
            Course::Walk { .. } => set as f64,
            Course::Rows(rows) => rows.stride.abs(),
        }
    }

    /// How many steps lead to a fault, if the stream does.
    fn steps_to(&self, fault: &Fault) -> Option<f64> {
        match self.course {
            Course::Walk { page, forward } => {
                let set = fault.sets[Access::Dense as usize];
                let [from, to] = [page, fault.page].map(|page| page / set);
                let steps = if forward { to.checked_sub(from) } else { from.checked_sub(to) };
                // A larger set, of a trial, may have brought one step more.
                let meets = |&steps: &usize| fault.is_walked(forward) && steps <= self.foreseen + 2;
                steps.filter(meets).map(|steps| steps as f64)
            }
            Course::Rows(rows) => rows.steps_to(fault, self.foreseen),
        }
    }

    /// A fault is so many steps on.
    fn follow(&mut self, fault: &Fault, steps: f64) {
        match &mut self.course {
            Course::Walk { page, .. } => *page = fault.page,
            Course::Rows(rows) => rows.follow(fault, steps),
        }
    }

    /// What will be touched so many steps on.
    fn pages(&self, steps: usize, set: usize) -> Option<Range<usize>> {
        match self.course {
            Course::Walk { page, forward } => {
                let from = page / set;
                let to = if forward { Some(from + steps) } else { from.checked_sub(steps) };
                to.map(|to| to * set..(to + 1) * set)
            }
            Course::Rows(rows) => rows.pages(steps),
        }
    }
}

/// The streams of a program.
#[derive(Debug, Default)]
pub struct Streams {
    recent: [Option<usize>; RECENT],
    at: usize,
    streams: Vec<Stream>,
    clock: u64,
}

impl Streams {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Streams {
        Streams { streams: Vec::with_capacity(STREAMS), ..Streams::default() }
    }

    /// A fault; `ahead` gets what to fetch of each set, all of it or a row, of at most `most` pages in all, and `passed` what it
    /// got before that was gone past since. Returns how the pages around the fault are used.
    pub fn fault(
        &mut self,
        fault: &Fault,
        most: usize,
        mut passed: impl FnMut(Range<usize>, Access),
        mut ahead: impl FnMut(Range<usize>, Access),
    ) -> Access {
        self.clock += 1;
        let now = self.clock;
        for stream in &mut self.streams {
            if let Course::Rows(rows) = &mut stream.course {
                rows.notice(fault);
            }
        }
        let mut access = Access::Dense;
        if let Some((stream, steps)) = self.followed(fault) {
            access = stream.access();
            let set = fault.sets[access as usize];
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few, at least 0")]
            let between = 1..steps as usize;
            between.filter_map(|step| stream.pages(step, set)).for_each(|pages| passed(pages, access));
            stream.follow(fault, steps);
            stream.foreseen = stream.depth.min(most / set);
            stream.depth = (stream.depth * 2).min(MOST_AHEAD);
            let next = 1..=stream.foreseen;
            next.filter_map(|step| stream.pages(step, set)).for_each(|pages| ahead(pages, access));
            stream.used = now;
        } else if let Some(course) = self.course_to(fault) {
            let stream = Stream { course, foreseen: 0, depth: 2, used: now };
            access = stream.access();
            if self.streams.len() < STREAMS {
                self.streams.push(stream);
            } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
                *oldest = stream;
            }
        }
        self.recent[self.at] = Some(fault.page);
        self.at = (self.at + 1) % RECENT;
        access
    }

    /// The stream that leads to a fault, and by how many steps. Of several the one with the shortest ones: it has the sets of
    /// those that miss some.
    fn followed(&mut self, fault: &Fault) -> Option<(&mut Stream, f64)> {
        let set = fault.sets[Access::Dense as usize];
        let all = self.streams.iter_mut();
        let leading = all.filter_map(|stream| Some((stream.steps_to(fault)?, stream)));
        let nearest = leading.min_by(|(_, one), (_, other)| one.stride(set).total_cmp(&other.stride(set)));
        nearest.map(|(steps, stream)| (stream, steps))
    }

    /// Where the last faults lead by way of this one, by the shortest steps.
    fn course_to(&self, fault: &Fault) -> Option<Course> {
        let set = fault.sets[Access::Dense as usize] as f64;
        let stride = self.stride_to(fault, set)?;
        let forward = stride > 0.0;
        if stride.abs() < LEAST_STRIDE || stride.abs() < 1.5 * set && fault.is_walked(forward) {
            return Some(Course::Walk { page: fault.page, forward });
        }
        // Who was beside just now is within a row, and not where one starts. Pages that were beside for long may be there by
        // chance; many at one distance are not.
        let starts = match fault.is_of_a_walk() {
            true => !self.was_beside(fault) && self.was_at(fault, 3.0 * stride),
            false => fault.beside == [false; 2],
        };
        starts.then(|| Course::Rows(Rows::new(fault, stride)))
    }

    /// The shortest distance at which two earlier faults lead to this one.
    fn stride_to(&self, fault: &Fault, set: f64) -> Option<f64> {
        let here = fault.page as f64;
        let recent = || self.recent.iter().flatten().map(|&page| page as f64);
        let strides = recent().filter_map(|before| {
            let step = here - before;
            let slack = match fault.is_walked(step > 0.0) {
                _ if step.abs() < strided::NEAR => strided::MIDDLE,
                true => strided::SLACK.max(set - strided::MIDDLE),
                false => strided::SLACK,
            };
            let first = recent().find(|first| (before - step - first).abs() <= slack)?;
            (step != 0.0 && first != before).then_some((here - first) / 2.0)
        });
        strides.min_by(|one, other| one.abs().total_cmp(&other.abs()))
    }

    /// One of the last faults was so far before this one.
    fn was_at(&self, fault: &Fault, distance: f64) -> bool {
        let mut recent = self.recent.iter().flatten();
        recent.any(|&other| (fault.page as f64 - other as f64 - distance).abs() <= strided::SLACK)
    }

    /// One of the last faults was in a set beside this one.
    fn was_beside(&self, fault: &Fault) -> bool {
        let Fault { page, sets: [dense, strided], .. } = *fault;
        let [before, behind] = [page.saturating_sub(1), page + 1].map(|page| page / dense);
        self.recent.iter().flatten().any(|&other| {
            let walked = |set, forward| other / dense == set && fault.is_walked(forward);
            other.abs_diff(page) <= strided || walked(before, true) || walked(behind, false)
        })
    }
}

#[cfg(test)]
mod tests;
