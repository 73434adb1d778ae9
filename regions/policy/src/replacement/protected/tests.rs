use super::*;
use crate::random;

const LOCAL: usize = 1000;

impl Kept {
    /// Pages that are away, in all areas.
    pub(crate) fn away(&self) -> f64 {
        self.areas.iter().map(|area| area.absence.away).sum()
    }
}

fn run(first: u32) -> Run {
    Run { first, pages: 1 }
}

/// Runs from `first` on are kept, those that lie beside them leave and come back after `away` pages.
fn passed(kept: &mut Kept, first: u32, now: &mut u32, away: u32) {
    (first..first + 100).for_each(|page| kept.push(run(page)));
    for page in first + 100..first + 200 {
        kept.left(run(page), *now, LOCAL);
        *now += away;
        kept.came_back(run(page), *now, LOCAL);
    }
}

/// Three areas with pages that stay away for so long, the first one kept first.
fn three(absences: [u32; 3]) -> (Kept, u32) {
    let (mut kept, mut now) = (Kept::new(), 0);
    kept.shift = 12;
    for (area, away) in (1..).zip(absences) {
        passed(&mut kept, area << 12, &mut now, away);
    }
    (kept, now)
}

// Seen to fail when ages alone count, and when absences alone do.
#[test]
fn what_stays_away_for_long_gives_way_and_of_all_the_same_the_oldest() {
    let first = |absences| {
        let (mut kept, now) = three(absences);
        kept.least_needed(now, LOCAL).unwrap().first >> 12
    };
    assert_eq!(first([10, 900, 10]), 2, "the one that is passed over seldom");
    assert_eq!(first([300, 310, 320]), 1, "the one that came first");
    assert_eq!(first([10, 10, 2000]), 3, "though it came last");
}

// Seen to fail when its place in the list is taken for it.
#[test]
fn an_area_goes_on_giving_way_when_another_one_appears() {
    let (mut kept, now) = three([10, 900, 10]);
    for _ in 0..3 {
        assert_eq!(kept.least_needed(now, LOCAL).unwrap().first >> 12, 2);
        kept.left(run(0), now, LOCAL);
    }
}

// Seen to fail when an area whose pages are gone is not looked at, and when two that become one are not
// sorted.
#[test]
fn each_run_is_taken_once_and_the_oldest_first() {
    let (mut kept, mut inside, mut seed) = (Kept::new(), VecDeque::new(), 77);
    for step in 0..40_000_u32 {
        random::next(&mut seed);
        let page = u32::try_from(seed >> 40).unwrap() >> (step / 4000);
        match seed % 7 {
            0..4 => {
                kept.push(run(page));
                inside.push_back(run(page));
            }
            4 => kept.left(run(page), step, LOCAL),
            5 => assert_eq!(kept.oldest(), inside.pop_front()),
            _ => {
                let taken = kept.least_needed(step, LOCAL);
                assert_eq!(taken.is_none(), inside.is_empty());
                let at = inside.iter().position(|run| Some(*run) == taken);
                at.map(|at| inside.remove(at));
                assert!(taken.is_none() || at.is_some(), "{taken:?} was not kept");
            }
        }
        if step % 5000 == 0 {
            kept.retain(|run| run.first % 3 != 0);
            inside.retain(|run| run.first % 3 != 0);
        }
        assert_eq!((kept.runs(), kept.pages()), (inside.len(), inside.len()));
        assert!(kept.areas.len() <= MOST && kept.areas.is_sorted_by_key(|area| area.number));
    }
    assert!(kept.shift > 10, "areas became larger");
}

// Seen to fail when the second one is forgotten.
#[test]
fn what_was_seen_of_two_areas_is_seen_of_the_one_that_they_become() {
    let (mut kept, mut now) = (Kept::new(), 0);
    kept.shift = 8;
    passed(&mut kept, 0, &mut now, 200);
    passed(&mut kept, 256, &mut now, 600);
    kept.left(run(300), now, LOCAL);
    let before: Vec<_> = kept.areas.iter().map(|area| area.absence).collect();
    kept.double();
    let [area] = &kept.areas[..] else { panic!("{} areas", kept.areas.len()) };
    assert_eq!((area.runs.len(), area.since), (200, Some(1)));
    let both = |of: fn(&Absence) -> f64| (of(&area.absence), before.iter().map(of).sum::<f64>());
    for (one, two) in [both(|it| it.away), both(|it| it.time), both(|it| it.back)] {
        assert_eq!(one, two);
    }
}
