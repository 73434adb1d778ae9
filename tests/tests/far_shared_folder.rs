//! Tests far memory whose store is in a folder that other users write to, as `/var/tmp` is.

use largesse_tests::{Run, Stage, users};

/// A shell script that creates files with all names that an attacker could guess for a store of this process and its
/// children. Then it executes the launcher, which keeps the process number.
const TAKE_NAMES: &str = r#"store=$1; shift
: > "$store"; : > "$store.$$"
for number in $(seq 300); do : > "$store.$$-$$-$number"; done
exec "$@""#;

// This test has been seen to fail (125, "a file of this name exists") when the file's name ends in the process number.
#[test]
fn taken_names_are_no_obstacle() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    let store = stage.store();
    let path = store.trim_start_matches("file:");
    for user in users() {
        let run = Run::new(&stage, &[&program]).arg("32").arg("1").arg("2000").as_user(user);
        let run = run.started_by(&["sh", "-c", TAKE_NAMES, "sh", path]);
        let ran = run.under(&["--local=8M", "--far", &store]).finish().succeeded();
        assert!(ran.report["far"]["fills"].as_u64() > Some(0), "{user:?}: no page came back: {ran:#?}");
        let kept = std::fs::read(path).unwrap_or_else(|why| panic!("{user:?}: {path}: {why}"));
        assert_eq!(kept, b"", "{user:?}: a file that was there has changed");
        std::fs::read_dir(stage.scratch())
            .unwrap()
            .flatten()
            .for_each(|it| drop(std::fs::remove_file(it.path())));
    }
}
