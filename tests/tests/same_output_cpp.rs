//! A C++ program prints the same with and without the library.

use largesse_tests::{Run, Stage, same_output};

#[test]
fn containers_exceptions_aligned_new_and_threads_agree() {
    let stage = Stage::new();
    if let Some(program) = stage.compiled("containers.cpp", &["-std=c++17", "-pthread"]) {
        same_output(&Run::new(&stage, &[program]), &[], 100);
    }
}
