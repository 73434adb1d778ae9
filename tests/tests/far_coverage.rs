//! Memory that `--local` does not bound is named when the program ends.

use largesse_tests::{Exit, Run, Stage, users};

#[test]
fn memory_beyond_the_bound_is_named() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("limits.c", &[]) else { return };
    let store = stage.store();
    for user in users() {
        for (kind, words) in [
            ("reserved", Some("MiB in mappings that were only reserved")),
            ("shared", Some("MiB in shared mappings")),
            ("dense", None),
        ] {
            let run = Run::new(&stage, &[&program]).arg(kind).arg("100").arg("100").as_user(user);
            let ran = run.under(&["--local", "16M", "--far", &store]).finish();
            assert_eq!(
                (ran.exit, ran.stdout.as_str()),
                (Exit::Code(0), "done\n"),
                "{user:?} {kind} {ran:#?}"
            );
            match words {
                Some(words) => assert!(
                    ran.hints.contains("not covered by --local, which is 16 MiB now: 10")
                        && ran.hints.contains(words),
                    "{user:?} {kind} {ran:#?}"
                ),
                None => assert!(!ran.hints.contains("not covered"), "{user:?} {kind} {ran:#?}"),
            }
        }
    }
}
