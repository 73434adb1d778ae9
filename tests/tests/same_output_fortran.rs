//! A Fortran program prints the same with and without the library.

use largesse_tests::{Run, Stage, same_output};

#[test]
fn arrays_come_grow_and_go() {
    let stage = Stage::new();
    if let Some(program) = stage.compiled("arrays.f90", &[]) {
        same_output(&Run::new(&stage, &[program]), &[], 20);
    }
}
