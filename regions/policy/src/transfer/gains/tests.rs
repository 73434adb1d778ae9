use super::super::blocks::Blocks;
use super::*;

fn gains(laps: f64, half: f64, error: f64) -> Gains {
    Gains {
        laps,
        pages: 10.0,
        waits: 100.0,
        less: [half, -half, -half].map(|less| (less, error * error)),
        apart: [0.0; 3],
        fewer: [0.5, -1.0],
    }
}

#[test]
fn a_gain_counts_when_it_is_large_and_sure() {
    assert_eq!(gains(1.0, 40.0, 10.0).best([0.3; 2], SURE), Some(HALF));
    assert_eq!(gains(1.0, 40.0, 10.0).best([0.5; 2], SURE), None, "less than the half that is asked for");
    assert_eq!(gains(1.0, 40.0, 20.0).best([0.3; 2], SURE), None, "only two errors");
    assert_eq!(gains(1.0, -40.0, 10.0).best([0.3; 2], SURE), Some(DOUBLE));
}

#[test]
fn what_is_seen_longer_counts_more_and_is_surer() {
    let both = gains(3.0, 40.0, 10.0).and(gains(1.0, 0.0, 10.0));
    assert_eq!((both.laps, both.less[HALF].0), (4.0, 30.0));
    let error = both.less[HALF].1.sqrt();
    assert!((7.9..8.0).contains(&error), "{error}"); // 10 times the root of 9/16 + 1/16
    assert_eq!(Gains::default().and(gains(1.0, 40.0, 10.0)).less[HALF].0, 40.0);
}

// Seen to fail where all blocks of one kind are compared with all of the other.
#[test]
fn blocks_are_compared_with_their_neighbours() {
    let mut blocks: [Blocks; 3] = Default::default();
    for number in 0..240 {
        let (kind, share) = [(1, 10), (0, 8), (1, 10), (2, 12)][number % 4];
        // A small array that is used much more often than the rest.
        let ns = if number < 40 { 20_000 } else { 1000 };
        blocks[kind].filled(number, 4, ns * share);
    }
    let free = Price { set: 0.0, page: 0.0, room: 0.0 };
    let seen = Gains::seen(blocks.each_ref().map(Blocks::all), 1.0, [free; 2], 0.0).unwrap();
    assert_eq!(seen.best([0.15; 2], SURE), Some(HALF), "{seen:?}");
    assert_eq!(seen.worse([0.15; 2]), [false, true], "{seen:?}");
}

// Seen to fail with the errors of blocks alone.
#[test]
fn what_laps_disagree_about_is_not_sure() {
    let lap = |half: f64| gains(1.0, half, 1.0);
    let all = |laps: [f64; 6]| laps.into_iter().map(lap).reduce(Gains::and).unwrap();
    assert_eq!(all([60.0, 50.0, 55.0, 45.0, 60.0, 50.0]).best([0.3; 2], SURE), Some(HALF));
    let phases = all([200.0, 150.0, -30.0, -20.0, -10.0, 30.0]);
    assert!(phases.less[HALF].0 > 53.0 && phases.best([0.3; 2], SURE).is_none(), "{phases:?}");
}

#[test]
fn a_way_is_worse_when_that_is_large_and_sure() {
    assert_eq!(gains(1.0, 40.0, 10.0).worse([0.3; 2]), [false, true]);
    assert_eq!(gains(1.0, 40.0, 10.0).worse([0.5; 2]), [false; 2]);
    assert_eq!(gains(1.0, 40.0, 20.0).worse([0.3; 2]), [false; 2]);
}
