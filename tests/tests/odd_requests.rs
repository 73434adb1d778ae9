//! Checks that odd alignments, sizes of zero and overflowing products get the same answers as from this machine's C
//! library.

use largesse_tests::{Run, Stage, same_output};

#[track_caller]
fn check(options: &[&str]) {
    let stage = Stage::new();
    // The compiler warns of requests that no memory can satisfy. The program makes them on purpose.
    let Some(program) = stage.compiled("odd_requests.c", &["-w"]) else { return };
    same_output(&Run::new(&stage, &[program]), options, 300);
}

#[test]
fn odd_requests_get_the_c_librarys_answers() {
    check(&[]);
}

#[test]
fn odd_requests_above_the_smallest_limit_get_them_too() {
    check(&["--min-kb", "64"]);
}
