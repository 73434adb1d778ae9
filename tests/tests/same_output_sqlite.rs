//! sqlite3 prints the same with and without the library, errors included.

use largesse_tests::{Run, Stage, has_program, same_output};

#[test]
fn filled_sorted_joined_and_emptied_tables_agree() {
    if has_program("sqlite3", &["--version"]) {
        let stage = Stage::new();
        let script = std::fs::read_to_string(stage.program("table.sql")).unwrap();
        let program = Run::new(&stage, &["sqlite3", "-batch", ":memory:"]).input(&script);
        same_output(&program, &["--min-kb", "64"], 20);
    }
}
