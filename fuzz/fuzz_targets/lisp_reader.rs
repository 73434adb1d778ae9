//! Reads any bytes as Lisp source, UTF-8 or not, while the heap collects often. The bytes `#.` are left out, because
//! they evaluate.
#![no_main]

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::Interpreter;
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

thread_local! {
    static LISP: RefCell<Interpreter> = RefCell::new(start());
}

fn start() -> Interpreter {
    let range = Reserved::new(256 * SPAN, SPAN).expect("address space");
    let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
    let settings = GcSettings { limit: 256 << 20, gc_threads: 1, stress: 1000, ..GcSettings::default() };
    Interpreter::start(settings, memory, 4 << 20, Vec::new()).expect("a Lisp")
}

fuzz_target!(|text: &[u8]| {
    if text.windows(2).any(|pair| pair == b"#.") {
        return;
    }
    LISP.with_borrow_mut(|lisp| {
        let _ = lisp.is_incomplete(text);
    });
});
