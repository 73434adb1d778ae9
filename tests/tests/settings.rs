//! Checks that the launcher and the library give options and variables the same meaning.

use largesse_tests::{Exit, Ran, Run, Stage};
use std::ffi::OsString;

/// Accepted notations of a size, with the number of bytes that they mean.
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

/// Returns the limit of local memory in bytes, which the report has.
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

/// Returns the number of lines with `word` among the messages of the launcher and the library.
fn lines(ran: &Ran, word: &str) -> usize {
    ran.hints.lines().filter(|line| line.contains(word)).count()
}

#[test]
fn unknown_variables_are_named_once() {
    let stage = Stage::new();
    let children = ["/bin/sh", "-c", "/bin/true; /bin/true"];
    let wrong =
        [("LARGESSE_LOCKED", "1"), ("LARGESSE_FOO", "1"), ("OMP_NUM_THREADS", "abc"), ("LARGESSE_BAR", "")];
    let launched = Run::new(&stage, &children).under(&[]);
    let preloaded = Run::new(&stage, &children).variable("LD_PRELOAD", stage.library());
    for run in [launched, preloaded] {
        let run = wrong.into_iter().fold(run, |run, (name, value)| run.variable(name, value));
        let ran = run.finish().succeeded();
        assert_eq!(lines(&ran, "did you mean LARGESSE_LOCK?"), 1, "{ran:#?}");
        assert_eq!(lines(&ran, "LARGESSE_FOO is not a variable of Largesse"), 1, "{ran:#?}");
        assert_eq!(lines(&ran, "OMP_NUM_THREADS=abc is not understood"), 1, "{ran:#?}");
        assert_eq!(lines(&ran, "LARGESSE_BAR"), 0, "{ran:#?}");
    }
}

#[test]
fn empty_variables_count_as_unset() {
    let stage = Stage::new();
    let names = [
        "PAGES",
        "LOCK",
        "MIN_KB",
        "MAX_KB",
        "HEADER",
        "ALIGN",
        "NODE",
        "CHILDREN",
        "REPORT",
        "LOCAL",
        "FAR",
        "PAGE_SIZE",
        "PREFETCH",
        "FAULT_ENGINE",
        "STATIC_DATA",
        "SMALL_BLOCKS",
        "ISA",
        "AHEAD",
        "LIBRARY",
    ];
    let launched = Run::new(&stage, &["/bin/true"]).under(&[]);
    let preloaded = Run::new(&stage, &["/bin/true"]).variable("LD_PRELOAD", stage.library());
    for run in [launched, preloaded] {
        let all = names.iter().map(|name| format!("LARGESSE_{name}")).chain(["OMP_NUM_THREADS".to_owned()]);
        let ran = all.fold(run, |run, name| run.variable(&name, "")).finish();
        assert_eq!(ran.exit, Exit::Code(0), "{ran:#?}");
        assert_eq!(ran.hints, "", "{ran:#?}");
    }
}

/// Settings with a value that has no effect without others, and whether `largesse run`, a program that preloads the
/// library, and `largesse lisp` accept them in silence.
const ALONE: [(&str, &str, [bool; 3]); 19] = [
    ("AHEAD", "off", [true, true, false]),
    ("ALIGN", "native", [true, true, false]),
    ("CHILDREN", "off", [true, false, false]),
    ("FAR", "file:x", [false; 3]),
    ("FAULT_ENGINE", "auto", [false; 3]),
    ("HEADER", "48", [true, true, false]),
    ("ISA", "portable", [true, true, false]),
    ("LIBRARY", "", [true; 3]),
    ("LOCK", "0", [true, true, false]),
    ("MAX_KB", "1G", [true, true, false]),
    ("MIN_KB", "1M", [true, true, false]),
    ("NODE", "first-touch", [true, true, false]),
    ("PAGES", "4k", [true, true, false]),
    ("PAGE_SIZE", "64K", [false; 3]),
    ("PREFETCH", "off", [false; 3]),
    ("REPORT", "-", [true, false, false]),
    ("SMALL_BLOCKS", "off", [false; 3]),
    ("STATIC_DATA", "off", [false; 3]),
    ("THREAD_CPUS", "0", [false, false, true]),
];

#[test]
fn settings_have_an_effect_or_are_named() {
    let stage = Stage::with_companion("largesse-lisp");
    let far = [("LOCAL", "64M"), ("LIMIT", "8G")].map(|(name, value)| (name, value, [true, true, false]));
    for (name, value, silent) in ALONE.into_iter().chain(far) {
        let name = format!("LARGESSE_{name}");
        let launched: [OsString; 4] = [stage.command().into(), "run".into(), "--".into(), "/bin/true".into()];
        let preloaded = [OsString::from("/bin/true")];
        let lisp: [OsString; 4] = [stage.command().into(), "lisp".into(), "--eval".into(), "1".into()];
        let starts = [
            Run::new(&stage, &launched),
            Run::new(&stage, &preloaded).variable("LD_PRELOAD", stage.library()),
            Run::new(&stage, &lisp),
        ];
        for ((run, silent), refusal) in starts.into_iter().zip(silent).zip([2, 125, 0]) {
            // The store of far memory is named, because a program without the launcher has no default.
            let far = ["LARGESSE_LOCAL", "LARGESSE_LIMIT"].contains(&name.as_str());
            let run = if far { run.variable("LARGESSE_FAR", stage.store()) } else { run };
            let run = if value.is_empty() { run } else { run.variable(&name, value) };
            let ran = run.finish();
            let named = ran.hints.lines().filter(|line| line.contains(&name)).count();
            assert_eq!(named, usize::from(!silent), "{run:#?} {ran:#?}");
            let refused =
                !silent && ["it accepts", "without far memory"].iter().any(|part| ran.hints.contains(part));
            assert_eq!(ran.exit, Exit::Code(if refused { refusal } else { 0 }), "{run:#?} {ran:#?}");
        }
    }
}

#[test]
fn every_command_names_unknown_variables() {
    let stage = Stage::with_companion("largesse-lisp");
    stage.add_companion("largesse-bench");
    let command = stage.command();
    let command = command.to_str().unwrap();
    for words in [
        &[command, "lisp", "--eval", "1"][..],
        &[command, "bench", "--list"],
        &[command, "machine"],
        &[command, "doctor"],
        &[command, "status"],
        &[command, "report", "/nowhere"],
        &[command, "pin", "--localalloc", "--", "/bin/true"],
        &[command, "pin", "--localalloc", "--", command, "run", "--", "/bin/true"],
    ] {
        let ran = Run::new(&stage, words).variable("LARGESSE_LOCKED", "1").finish();
        assert_eq!(lines(&ran, "did you mean LARGESSE_LOCK?"), 1, "{words:?} {ran:#?}");
    }
}
