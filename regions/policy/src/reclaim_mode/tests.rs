use super::*;

/// Lets `turns` turns pass in which a page takes so many microseconds, ahead of need and at need. Returns how
/// many of them were ahead.
fn pass(timing: &mut Timing, clock: &mut Instant, turns: usize, costs: [u64; 2]) -> usize {
    let mut ahead = 0;
    for _ in 0..turns * 200 {
        *clock += Duration::from_micros(costs[usize::from(!timing.ahead())]);
        timing.came(1, *clock);
        ahead += usize::from(timing.ahead());
    }
    ahead / 200
}

#[test]
fn the_better_way_is_found_and_found_again_when_it_changes() {
    let (mut timing, mut clock) = (Timing::new(), Instant::now());
    pass(&mut timing, &mut clock, 100, [20, 10]);
    assert!(pass(&mut timing, &mut clock, 400, [20, 10]) < 40, "at need is better");
    pass(&mut timing, &mut clock, 600, [10, 20]);
    assert!(pass(&mut timing, &mut clock, 400, [10, 20]) > 360, "ahead of need is better");
}

/// Lets a second pass in which a page takes as many microseconds as `cost` says of a way and of the time for which it
/// has been in force. Returns the share of pages that came beside.
fn second(timing: &mut Timing, clock: &mut Instant, cost: impl Fn(Way, Duration) -> u64) -> f64 {
    let (end, mut since, mut before) = (*clock + Duration::from_secs(1), *clock, timing.now);
    let (mut beside, mut all) = (0, 0);
    while *clock < end {
        *clock += Duration::from_micros(cost(timing.now, clock.saturating_duration_since(since)));
        timing.came(1, *clock);
        if timing.now != before {
            (since, before) = (*clock, timing.now);
        }
        (beside, all) = (beside + usize::from(timing.beside()), all + 1);
    }
    beside as f64 / all as f64
}

/// One that may serve beside, and where that is better.
fn beside(clock: &mut Instant) -> Timing {
    let mut timing = Timing::new();
    timing.may_serve_beside(true);
    let cost = |way: Way, _| if way.beside { 10 } else { 20 };
    let _ = second(&mut timing, clock, cost);
    assert!(timing.chosen.beside, "beside is better");
    timing
}

#[test]
fn where_faults_are_served_is_found_and_found_again_beside_the_other_question() {
    let mut clock = Instant::now();
    let mut timing = beside(&mut clock);
    let cost = |way: Way, _| if way.beside { 20 } else { 10 + 10 * u64::from(way.ahead) };
    let shares: Vec<f64> = (0..60).map(|_| second(&mut timing, &mut clock, cost)).collect();
    assert_eq!(timing.chosen, Way { ahead: false, beside: false });
    assert!(shares[30..].iter().sum::<f64>() < 0.1 * 30.0, "{shares:?}");
    assert_eq!(second(&mut Timing::new(), &mut clock, |way, _| 20 - 10 * u64::from(way.beside)), 0.0);
}

#[test]
fn what_a_way_is_like_at_first_says_nothing() {
    let mut clock = Instant::now();
    let mut timing = beside(&mut clock);
    let cost = |way: Way, since: Duration| match way.beside {
        true => 10,
        false if since < Duration::from_millis(25) => 5,
        false => 20,
    };
    let least = (0..30).map(|_| second(&mut timing, &mut clock, cost)).fold(1.0, f64::min);
    assert!(least > 0.6, "{least} of a second beside");
}

#[test]
fn who_is_late_more_than_by_chance_is_not_asked_again_soon() {
    let mut timing = Timing::new();
    timing.choose_beside();
    (0..3).for_each(|_| timing.is_late_beside());
    assert!(timing.chosen.beside, "by chance");
    timing.is_late_beside();
    assert!(!timing.beside() && !timing.chosen.beside);
    assert_eq!((timing.question, timing.rest.1), (Question::Beside, REST[0]));
}

#[test]
fn what_makes_no_difference_changes_nothing_and_is_tried_seldom() {
    let (mut timing, mut clock) = (Timing::new(), Instant::now());
    pass(&mut timing, &mut clock, 400, [10, 10]);
    assert!(pass(&mut timing, &mut clock, 1000, [10, 10]) > 970);
}

#[test]
fn a_pause_of_the_program_says_nothing() {
    let (mut timing, mut clock) = (Timing::new(), Instant::now());
    // Now and then one falls into a comparison.
    let mut ahead = 0;
    for pause in 0..400 {
        ahead += pass(&mut timing, &mut clock, 5 + pause % 7, [10, 20]);
        clock += Duration::from_secs(5);
    }
    assert!(ahead > 2900, "{ahead} turns of 3196");
}
