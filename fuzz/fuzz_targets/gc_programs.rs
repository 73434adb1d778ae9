//! Runs programs of several threads on one garbage-collected heap and checks each against its own model.
#![no_main]

#[path = "../../heaps/gc/tests/common/mod.rs"]
mod common;

use common::model::{ModelMachine, ProgramStep};
use common::{MODES, heap};
use largesse_gc::GcSettings;

libfuzzer_sys::fuzz_target!(|input: (u8, u8, Vec<Vec<[u8; 6]>>)| {
    let (mode, stress, mut programs) = input;
    programs.truncate(4);
    let sync = MODES[usize::from(mode) % MODES.len()];
    let heap = heap(GcSettings { sync, stress: stress.into(), gc_threads: 2, ..GcSettings::default() });
    let alone = programs.len() == 1;
    std::thread::scope(|scope| {
        for program in programs {
            let handle = heap.register_thread();
            scope.spawn(move || {
                let steps: Vec<ProgramStep> = program.into_iter().map(ProgramStep::decode).collect();
                ModelMachine::new(&mut handle.enter(), alone).run(&steps);
            });
        }
    });
});
