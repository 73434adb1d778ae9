//! Random programs do on the heap what they do on a naive model: in every mode, under stress, alone and beside others.

mod common;

use common::model::{Machine, Step};
use common::{MODES, heap};
use largesse_gc::Settings;
use proptest::prelude::*;

fn step() -> impl Strategy<Value = Step> {
    any::<[u8; 6]>().prop_map(Step::decode)
}

fn program() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_alone(steps in program(), mode in 0..3_usize, stress in 0..4_u64, gc_threads in 1..3_usize) {
        let heap = heap(Settings { sync: MODES[mode], stress: stress * stress, gc_threads, ..Settings::default() });
        let mut thread = heap.enrol().enter();
        Machine::new(&mut thread, true).run(&steps);
    }

    #[test]
    fn programs_beside_each_other(
        programs in proptest::collection::vec(program(), 2..5),
        mode in 0..3_usize,
        stress in 1..20_u64,
    ) {
        let heap = heap(Settings { sync: MODES[mode], stress, gc_threads: 2, ..Settings::default() });
        std::thread::scope(|scope| {
            for steps in &programs {
                let seat = heap.enrol();
                scope.spawn(move || Machine::new(&mut seat.enter(), false).run(steps));
            }
        });
    }
}
