//! Compares compiled Lisp programs, made by the fuzzer's choices, with the evaluator while the heap collects often.
#![no_main]

#[path = "../../fronts/lisp/tests/programs/mod.rs"]
mod programs;

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use libfuzzer_sys::fuzz_target;
use programs::{CALLS, PRELUDE, Programs};
use std::cell::RefCell;

thread_local! {
    static LISPS: RefCell<[Interpreter; 2]> = RefCell::new([start(0), start(1009)]);
}

fn start(stress: u64) -> Interpreter {
    let range = Reserved::new(256 * SPAN, SPAN).expect("address space");
    let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
    let settings = GcSettings { limit: 256 << 20, gc_threads: 1, stress, poison: true, ..GcSettings::default() };
    let mut lisp = Interpreter::start(settings, memory, 4 << 20, Vec::new()).expect("a Lisp");
    lisp.evaluate(PRELUDE).expect("the prelude");
    lisp
}

/// Evaluates `form`. Returns the value, or the class and message of the error, without addresses.
fn answer(lisp: &mut Interpreter, form: &str) -> String {
    let text = match lisp.evaluate(form) {
        Ok(text) => text.unwrap_or_default(),
        Err(Ended::Error(report)) => report.lines().next().unwrap_or_default().to_owned(),
        Err(other) => panic!("{other:?}"),
    };
    let text = text.replace("#<closure", "#<compiled-code");
    text.split("#X").map(|part| part.trim_start_matches(|c: char| c.is_ascii_hexdigit())).collect()
}

fuzz_target!(|choices: &[u8]| {
    LISPS.with_borrow_mut(|lisps| {
        let definitions = Programs::new(choices.iter().copied()).program();
        for lisp in lisps.iter_mut() {
            for definition in &definitions {
                lisp.evaluate(definition).expect("a definition");
            }
        }
        for compile in ["(compile 'program)", "(compile box)"] {
            assert_ne!(answer(&mut lisps[1], compile), "nil", "{definitions:?}");
        }
        for call in CALLS {
            let [theirs, ours] = lisps.each_mut().map(|lisp| {
                answer(lisp, "(setq *log* nil *s* 1 *u* 'u *kept* nil)");
                answer(lisp, call)
            });
            assert_eq!(ours, theirs, "{call} {definitions:?}");
        }
    });
});
