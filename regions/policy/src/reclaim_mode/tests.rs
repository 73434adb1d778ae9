use super::*;

/// Runs `turns` turns in which a page costs the first of `costs` in microseconds in the background, and the second on
/// demand. Returns the number of turns in the background.
fn pass(mode: &mut ReclaimMode, clock: &mut Instant, turns: usize, costs: [u64; 2]) -> usize {
    let mut in_background = 0;
    for _ in 0..turns * 200 {
        *clock += Duration::from_micros(costs[usize::from(!mode.in_background())]);
        mode.filled(1, *clock);
        in_background += usize::from(mode.in_background());
    }
    in_background / 200
}

#[test]
fn better_mode_is_found_again_after_changes() {
    let (mut mode, mut clock) = (ReclaimMode::default(), Instant::now());
    pass(&mut mode, &mut clock, 100, [20, 10]);
    assert!(pass(&mut mode, &mut clock, 400, [20, 10]) < 40, "at need is better");
    pass(&mut mode, &mut clock, 600, [10, 20]);
    assert!(pass(&mut mode, &mut clock, 400, [10, 20]) > 360, "in the background is better");
}

/// Runs for one second, in which a page takes the microseconds that `cost` returns for a mode and for how long it has
/// been in force. Returns the share of pages that were filled on the faulting CPU.
fn second(mode: &mut ReclaimMode, clock: &mut Instant, cost: impl Fn(Mode, Duration) -> u64) -> f64 {
    let (end, mut since, mut before) = (*clock + Duration::from_secs(1), *clock, mode.now);
    let (mut on_cpu, mut all) = (0, 0);
    while *clock < end {
        *clock += Duration::from_micros(cost(mode.now, clock.saturating_duration_since(since)));
        mode.filled(1, *clock);
        if mode.now != before {
            (since, before) = (*clock, mode.now);
        }
        (on_cpu, all) = (on_cpu + usize::from(mode.on_cpu()), all + 1);
    }
    on_cpu as f64 / all as f64
}

/// Returns a mode for which handling on the faulting CPU is allowed and better.
fn on_cpu(clock: &mut Instant) -> ReclaimMode {
    let mut mode = ReclaimMode::default();
    mode.allow_on_cpu(true);
    let cost = |way: Mode, _| if way.on_cpu { 10 } else { 20 };
    let _ = second(&mut mode, clock, cost);
    assert!(mode.chosen.on_cpu, "on the faulting CPU is better");
    mode
}

#[test]
fn both_questions_are_settled_independently() {
    let mut clock = Instant::now();
    let mut mode = on_cpu(&mut clock);
    let cost = |way: Mode, _| if way.on_cpu { 20 } else { 10 + 10 * u64::from(way.in_background) };
    let shares: Vec<f64> = (0..60).map(|_| second(&mut mode, &mut clock, cost)).collect();
    assert_eq!(mode.chosen, Mode { in_background: false, on_cpu: false });
    assert!(shares[30..].iter().sum::<f64>() < 0.1 * 30.0, "{shares:?}");
    assert_eq!(
        second(&mut ReclaimMode::default(), &mut clock, |way, _| 20 - 10 * u64::from(way.on_cpu)),
        0.0
    );
}

#[test]
fn start_of_a_mode_is_not_timed() {
    let mut clock = Instant::now();
    let mut mode = on_cpu(&mut clock);
    let cost = |way: Mode, since: Duration| match way.on_cpu {
        true => 10,
        false if since < Duration::from_millis(25) => 5,
        false => 20,
    };
    let least = (0..30).map(|_| second(&mut mode, &mut clock, cost)).fold(1.0, f64::min);
    assert!(least > 0.6, "{least} of a second on the faulting CPU");
}

#[test]
fn late_faults_end_the_mode_for_long() {
    let mut mode = ReclaimMode::default();
    mode.choose_on_cpu();
    (0..3).for_each(|_| mode.note_late_on_cpu());
    assert!(mode.chosen.on_cpu, "by chance");
    mode.note_late_on_cpu();
    assert!(!mode.on_cpu() && !mode.chosen.on_cpu);
    assert_eq!((mode.question, mode.pause.1), (Question::OnCpu, PAUSE[0]));
}

#[test]
fn equal_modes_are_compared_rarely() {
    let (mut mode, mut clock) = (ReclaimMode::default(), Instant::now());
    pass(&mut mode, &mut clock, 400, [10, 10]);
    assert!(pass(&mut mode, &mut clock, 1000, [10, 10]) > 970);
}

#[test]
fn pause_of_the_program_is_ignored() {
    let (mut mode, mut clock) = (ReclaimMode::default(), Instant::now());
    // Now and then a turn falls into a comparison.
    let mut in_background = 0;
    for pause in 0..400 {
        in_background += pass(&mut mode, &mut clock, 5 + pause % 7, [10, 20]);
        clock += Duration::from_secs(5);
    }
    assert!(in_background > 2900, "{in_background} turns of 3196");
}
