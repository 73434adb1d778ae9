//! Source text that is not UTF-8 causes an error that names the line, and no panic.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::path::Path;

fn lisp() -> Interpreter {
    let range = Reserved::new(256 * SPAN, SPAN).unwrap();
    let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
    let settings = GcSettings { limit: 256 << 20, gc_threads: 1, ..GcSettings::default() };
    Interpreter::start(settings, memory, 1 << 20, Vec::new()).unwrap()
}

/// Loads `source` and checks that its error begins with `error`, or that there is none if `error` is empty.
#[track_caller]
fn check(lisp: &mut Interpreter, source: &[u8], error: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bytes-{}.l", std::process::id()));
    std::fs::write(&path, source).unwrap();
    let loaded = lisp.load(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    let shown = source.escape_ascii();
    match loaded {
        Ok(()) => assert_eq!(error, "", "{shown} was read"),
        Err(Ended::Error(report)) => {
            assert!(!error.is_empty() && report.starts_with(error), "{shown}: {report}");
        }
        Err(other) => panic!("{shown}: {other:?}"),
    }
}

// Seen to fail: the first case and the separate colons ended the process with status 101.
#[test]
fn invalid_utf8_is_an_error() {
    let lisp = &mut lisp();
    check(lisp, b"1\n(print 'a\xff:b)\n", "reader-error: A\\xff:B in line 2 is not UTF-8");
    check(lisp, b"'a\xff", "reader-error: A\\xff in line 1 is not UTF-8");
    check(lisp, b"'|\xc3\n|", "reader-error: \\xc3\\n in line 2 is not UTF-8");
    check(lisp, b"\n\n#:\xfe", "reader-error: \\xfe in line 3 is not UTF-8");
    check(lisp, b"#x\xff", "reader-error: \\xff in line 1 is not UTF-8");
    check(lisp, b"#+\xff 1", "reader-error: \\xff in line 1 is not UTF-8");
    check(lisp, b"(read-from-string \"q\xff:b\")", "reader-error: Q\\xff:B in line 1 is not UTF-8");
    check(lisp, "'a:é:b".as_bytes(), "reader-error: too many colons in A:é:B");
    check(lisp, "'::é:".as_bytes(), "reader-error: too many colons in ::é:");
    // A character is one byte.
    check(lisp, "#\\é".as_bytes(), "reader-error: \\xa9 in line 1 is not UTF-8");
    check(lisp, b"; \xff\n#| \xfe |# (length \"\xff\\\xfe\")", "");
    check(lisp, "(setq é 1) 'user:é".as_bytes(), "");
}

#[test]
fn random_bytes_never_panic() {
    const BYTES: &[u8] = b"()'`,@\"#|\\:;. \nab019+-/*fx\xff\xc3\xa9\xe2\x80\xf0\x00";
    let lisp = &mut lisp();
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..20_000 {
        let mut text = Vec::new();
        for _ in 0..12 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = usize::try_from(random % BYTES.len() as u64).unwrap();
            text.push(BYTES[place]);
        }
        // `#.` evaluates code.
        if !text.windows(2).any(|pair| pair == b"#.") {
            lisp.is_incomplete(&text);
        }
    }
}
