//! Computes how few bytes any replacement policy could fetch if it knew the future: Belady's MIN (IBM Systems Journal
//! 5, 1966) on a recorded trace of the program's touches.
//!
//! `trace.c` records the touches except those of pages that were among the last to be recorded. A schedule that serves
//! all touches serves this part of them, too. So MIN on the trace is a lower bound of MIN on all touches.

use crate::engine::*;
use std::collections::BinaryHeap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Size in bytes of a page of the trace.
const PAGE: u64 = 4096;
/// `trace.c` leaves some pages open, whose further touches it does not record: this part (one in `OPEN`) of the
/// smallest local memory, within the two bounds below, which are numbers of pages.
const OPEN: u64 = 4;
const FEWEST_OPEN: u64 = 64;
const MOST_OPEN: u64 = 16384;

/// The numbers of the pages that a run touched, in the order of the touches.
#[derive(Debug)]
pub(super) struct Trace(Vec<u32>);

impl Trace {
    /// Runs a program that writes its trace to `file`. The trace is valid for local memories of `smallest` bytes and
    /// more.
    pub(super) fn record(
        mut command: Command,
        recorder: &Path,
        file: &Path,
        smallest: u64,
        cap: Duration,
    ) -> Result<Trace> {
        let open = (smallest / PAGE / OPEN).clamp(FEWEST_OPEN, MOST_OPEN);
        command.env("LD_PRELOAD", recorder).env("TRACE_FILE", file).env("TRACE_PAGES", open.to_string());
        let done = run(command, cap).map_err(|ended| match ended {
            Ended::Stopped => format!("not recorded within {} s: use a smaller --scale", cap.as_secs()),
            ended => ended.to_string(),
        });
        let bytes = done.and_then(|_| std::fs::read(file).map_err(|why| format!("no trace: {why}")));
        let _ = std::fs::remove_file(file);
        let page = |it: &[u8]| u32::from_ne_bytes([it[0], it[1], it[2], it[3]]);
        Ok(Trace(bytes?.chunks_exact(4).map(page).collect()))
    }

    /// Returns the least number of bytes that must be fetched in transfers of `unit` bytes if `memory` bytes may be
    /// resident. The first touch of a unit counts as no fetch.
    pub(super) fn least(&self, unit: u64, memory: u64) -> u64 {
        let pages = u32::try_from(unit / PAGE).unwrap_or(1).max(1);
        let room = usize::try_from(memory / unit.max(PAGE)).unwrap_or(1).max(1);
        let mut touched: Vec<u32> = self.0.iter().map(|page| page / pages).collect();
        touched.dedup();
        let units = touched.iter().max().map_or(0, |most| *most as usize + 1);
        // The place of the next touch of the same unit.
        let (mut next, mut last) = (vec![usize::MAX; touched.len()], vec![usize::MAX; units]);
        for (place, unit) in touched.iter().enumerate().rev() {
            next[place] = std::mem::replace(&mut last[*unit as usize], place);
        }
        // The next touch of each resident unit; a heap entry that differs from it is out of date.
        let (mut resident, mut seen) = (vec![None; units], vec![false; units]);
        let (mut order, mut count, mut fetched) = (BinaryHeap::new(), 0, 0);
        for (unit, next) in touched.into_iter().zip(next) {
            let at = unit as usize;
            if resident[at].is_none() {
                fetched += u64::from(std::mem::replace(&mut seen[at], true));
                count += 1;
                while count > room {
                    let Some((touch, victim)) = order.pop() else { break };
                    if resident[victim as usize] == Some(touch) {
                        resident[victim as usize] = None;
                        count -= 1;
                    }
                }
            }
            resident[at] = Some(next);
            order.push((next, unit));
        }
        fetched * u64::from(pages) * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fewest fetches of all possible schedules, found by trying them.
    fn fewest(touched: &[u32], resident: &[u32], seen: u32, room: usize) -> u64 {
        let Some((page, rest)) = touched.split_first() else { return 0 };
        if resident.contains(page) {
            return fewest(rest, resident, seen, room);
        }
        let fetch = u64::from(seen >> page & 1);
        let with = |without: Option<u32>| {
            let kept = resident.iter().copied().filter(|it| Some(*it) != without).chain([*page]);
            fewest(rest, &kept.collect::<Vec<_>>(), seen | 1 << page, room)
        };
        if resident.len() < room {
            return fetch + with(None);
        }
        fetch + resident.iter().map(|victim| with(Some(*victim))).min().unwrap_or(0)
    }

    #[test]
    fn no_schedule_fetches_less() {
        let mut word = 1_u32;
        for length in 1..14 {
            let draw = |_| {
                word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                word >> 29
            };
            let touched: Vec<u32> = (0..length).map(draw).collect();
            for room in 1..4_usize {
                let least = Trace(touched.clone()).least(PAGE, room as u64 * PAGE) / PAGE;
                assert_eq!(least, fewest(&touched, &[], 0, room), "{touched:?}, room {room}");
            }
        }
    }

    #[test]
    fn larger_units_hold_neighbours() {
        let pages = Trace(vec![0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(pages.least(PAGE, 4 * PAGE), 0);
        assert_eq!(pages.least(2 * PAGE, 2 * PAGE), 2 * 2 * PAGE);
    }
}
