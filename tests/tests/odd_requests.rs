//! Checks that odd alignments, sizes of zero and overflowing products get the same answers as from this machine's C
//! library.

use largesse_tests::{Run, Stage, same_output};

#[track_caller]
fn check(options: &[&str]) {
    let stage = Stage::new();
    // The compiler warns of requests that no memory can satisfy. The program makes them on purpose.
    let Some(program) = stage.compiled("odd_requests.c", &["-w"]) else { return };
    let run = Run::new(&stage, &[program]);
    same_output(&run, options, 300);
    // The requests that are refused exceed every machine's memory. No shortage is the reason.
    let ran = run.under(options).finish().succeeded();
    assert!(!ran.hints.contains("no memory for"), "{}", ran.hints);
}

#[test]
fn odd_requests_get_the_c_librarys_answers() {
    check(&[]);
}

#[test]
fn odd_requests_above_the_smallest_limit_get_them_too() {
    check(&["--min-kb", "64"]);
}

#[test]
fn odd_requests_get_them_with_far_memory() {
    check(&["--local", "64M", "--far", "memory:"]);
}

#[test]
fn odd_requests_get_them_under_a_limit() {
    check(&["--limit", "256M"]);
}
