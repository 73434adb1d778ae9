use super::super::blocks::BlockCosts;
use super::*;

fn gains(epochs: f64, half: f64, error: f64) -> Gains {
    Gains {
        epochs,
        pages: 10.0,
        waits: 100.0,
        less: [half, -half, -half].map(|less| (less, error * error)),
        spread: [0.0; 3],
        fewer: [0.5, -1.0],
    }
}

#[test]
fn gain_must_be_large_and_significant() {
    assert_eq!(gains(1.0, 40.0, 10.0).best([0.3; 2], SIGNIFICANT), Some(SMALLER));
    assert_eq!(
        gains(1.0, 40.0, 10.0).best([0.5; 2], SIGNIFICANT),
        None,
        "less than the half that is asked for"
    );
    assert_eq!(gains(1.0, 40.0, 20.0).best([0.3; 2], SIGNIFICANT), None, "only two errors");
    assert_eq!(gains(1.0, -40.0, 10.0).best([0.3; 2], SIGNIFICANT), Some(DOUBLE));
}

#[test]
fn longer_observation_has_more_weight() {
    let both = gains(3.0, 40.0, 10.0).and(gains(1.0, 0.0, 10.0));
    assert_eq!((both.epochs, both.less[SMALLER].0), (4.0, 30.0));
    let error = both.less[SMALLER].1.sqrt();
    assert!((7.9..8.0).contains(&error), "{error}"); // 10 times the root of 9/16 + 1/16
    assert_eq!(Gains::default().and(gains(1.0, 40.0, 10.0)).less[SMALLER].0, 40.0);
}

// Seen to fail where all blocks of one class are compared with all of another.
#[test]
fn blocks_are_compared_with_their_neighbours() {
    let mut blocks: [BlockCosts; 3] = Default::default();
    for number in 0..240 {
        let (kind, share) = [(1, 10), (0, 8), (1, 10), (2, 12)][number % 4];
        // A small array is used much more often than the rest.
        let ns = if number < 40 { 20_000 } else { 1000 };
        blocks[kind].filled(number, 4, ns * share);
    }
    let free = EvictionPrice { unit: 0.0, page: 0.0, room: 0.0 };
    let seen = Gains::seen(blocks.each_ref().map(BlockCosts::all), 1.0, [free; 2], 0.0).unwrap();
    assert_eq!(seen.best([0.15; 2], SIGNIFICANT), Some(SMALLER), "{seen:?}");
    assert_eq!(seen.worse([0.15; 2]), [false, true], "{seen:?}");
}

// Seen to fail with the errors of blocks alone.
#[test]
fn disagreeing_epochs_are_not_significant() {
    let epoch = |half: f64| gains(1.0, half, 1.0);
    let all = |epochs: [f64; 6]| epochs.into_iter().map(epoch).reduce(Gains::and).unwrap();
    assert_eq!(all([60.0, 50.0, 55.0, 45.0, 60.0, 50.0]).best([0.3; 2], SIGNIFICANT), Some(SMALLER));
    let phases = all([200.0, 150.0, -30.0, -20.0, -10.0, 30.0]);
    assert!(phases.less[SMALLER].0 > 53.0 && phases.best([0.3; 2], SIGNIFICANT).is_none(), "{phases:?}");
}

#[test]
fn loss_must_be_large_and_significant() {
    assert_eq!(gains(1.0, 40.0, 10.0).worse([0.3; 2]), [false, true]);
    assert_eq!(gains(1.0, 40.0, 10.0).worse([0.5; 2]), [false; 2]);
    assert_eq!(gains(1.0, 40.0, 20.0).worse([0.3; 2]), [false; 2]);
}
