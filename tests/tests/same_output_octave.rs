//! GNU Octave prints the same with and without the library.

use largesse_tests::{Run, Stage, has_program, same_output};

#[test]
fn growing_and_solved_matrices_agree() {
    if has_program("octave-cli", &["--version"]) {
        let stage = Stage::new();
        let script = stage.program("session.m");
        same_output(&Run::new(&stage, &["octave-cli", "--norc", "--no-history"]).arg(script), &[], 10);
    }
}
