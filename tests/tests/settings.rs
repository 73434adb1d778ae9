//! What users write in options and variables means the same everywhere.

use largesse_tests::{Exit, Ran, Run, Stage};

/// Sizes of far memory that are accepted, with the bytes that they mean.
const SIZES: [(&str, u64); 8] = [
    ("64M", 64 << 20),
    ("64MB", 64 << 20),
    ("64mib", 64 << 20),
    ("64 MB", 64 << 20),
    ("67108864", 64 << 20),
    ("0.0625G", 64 << 20),
    ("65536k", 64 << 20),
    ("1.5M", 3 << 19),
];

/// The limit of local memory that the library had, from the report.
#[track_caller]
fn local_bytes(ran: Ran) -> u64 {
    ran.succeeded().report["far"]["local_bytes"].as_u64().unwrap_or(0)
}

#[test]
fn sizes_mean_the_same_everywhere() {
    let stage = Stage::new();
    let store = stage.store();
    for (size, bytes) in SIZES {
        let ran = Run::new(&stage, &["/bin/true"]).under(&["--local", size, "--far", &store]).finish();
        assert_eq!(local_bytes(ran), bytes, "--local {size}");
        let run = Run::new(&stage, &["/bin/true"]).under(&["--far", &store]);
        assert_eq!(
            local_bytes(run.variable("LARGESSE_LOCAL", size).finish()),
            bytes,
            "LARGESSE_LOCAL={size}"
        );
    }
}

#[test]
fn small_sizes_are_refused_everywhere() {
    let stage = Stage::new();
    let store = stage.store();
    let words = "4 bytes without a unit, and the least is 1M; did you mean 4G or 4M?";
    let option = Run::new(&stage, &["/bin/true"]).under(&["--local", "4"]).finish();
    let variable = Run::new(&stage, &["/bin/true"]).under(&[]).variable("LARGESSE_LOCAL", "4").finish();
    let preloaded = Run::new(&stage, &["/bin/true"]).variable("LD_PRELOAD", stage.library());
    let preloaded = preloaded.variable("LARGESSE_LOCAL", "4").variable("LARGESSE_FAR", store).finish();
    for (ran, code) in [(option, 2), (variable, 2), (preloaded, 125)] {
        assert_eq!(ran.exit, Exit::Code(code), "{ran:#?}");
        assert!(ran.hints.contains(words), "{ran:#?}");
    }
}
