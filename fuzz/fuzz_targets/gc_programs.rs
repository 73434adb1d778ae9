//! Programs of several threads on one garbage-collected heap, each against its own model.
#![no_main]

#[path = "../../heaps/gc/tests/common/mod.rs"]
mod common;

use common::model::{Machine, Step};
use common::{MODES, heap};
use largesse_gc::Settings;

libfuzzer_sys::fuzz_target!(|input: (u8, u8, Vec<Vec<[u8; 6]>>)| {
    let (mode, stress, mut programs) = input;
    programs.truncate(4);
    let sync = MODES[usize::from(mode) % MODES.len()];
    let heap = heap(Settings { sync, stress: stress.into(), gc_threads: 2, ..Settings::default() });
    let alone = programs.len() == 1;
    std::thread::scope(|scope| {
        for program in programs {
            let seat = heap.enrol();
            scope.spawn(move || {
                let steps: Vec<Step> = program.into_iter().map(Step::decode).collect();
                Machine::new(&mut seat.enter(), alone).run(&steps);
            });
        }
    });
});
