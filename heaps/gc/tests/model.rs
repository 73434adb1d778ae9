//! Random programs agree with a naive model of the heap: in every mode, under stress, alone and with concurrent
//! programs.

mod common;

use common::model::{ModelMachine, ProgramStep};
use common::{MODES, far_heap, heap};
use largesse_gc::GcSettings;
use proptest::prelude::*;

fn step() -> impl Strategy<Value = ProgramStep> {
    any::<[u8; 6]>().prop_map(ProgramStep::decode)
}

fn program() -> impl Strategy<Value = Vec<ProgramStep>> {
    proptest::collection::vec(step(), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn single_program_matches_model(steps in program(), mode in 0..3_usize, stress in 0..4_u64, gc_threads in 1..3_usize) {
        let heap = heap(GcSettings { sync: MODES[mode], stress: stress * stress, gc_threads, ..GcSettings::default() });
        let mut thread = heap.register_thread().enter();
        ModelMachine::new(&mut thread, true).run(&steps);
    }

    #[test]
    fn concurrent_programs_match_model(
        programs in proptest::collection::vec(program(), 2..5),
        mode in 0..3_usize,
        stress in 1..20_u64,
    ) {
        let heap = heap(GcSettings { sync: MODES[mode], stress, gc_threads: 2, ..GcSettings::default() });
        std::thread::scope(|scope| {
            for steps in &programs {
                let handle = heap.register_thread();
                scope.spawn(move || ModelMachine::new(&mut handle.enter(), false).run(steps));
            }
        });
    }

    #[test]
    fn program_in_far_memory_matches_model(steps in program(), mode in 0..3_usize, stress in 1..8_u64, gc_threads in 1..3_usize) {
        let heap = far_heap(GcSettings { sync: MODES[mode], stress, gc_threads, ..GcSettings::default() }, false);
        let mut thread = heap.register_thread().enter();
        ModelMachine::new(&mut thread, true).run(&steps);
    }

    #[test]
    fn concurrent_programs_in_far_memory_match_model(
        programs in proptest::collection::vec(program(), 2..5),
        mode in 0..3_usize,
        stress in 1..20_u64,
    ) {
        let heap = far_heap(GcSettings { sync: MODES[mode], stress, gc_threads: 2, ..GcSettings::default() }, false);
        std::thread::scope(|scope| {
            for steps in &programs {
                let handle = heap.register_thread();
                scope.spawn(move || ModelMachine::new(&mut handle.enter(), false).run(steps));
            }
        });
    }
}
