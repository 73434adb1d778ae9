//! Checks that large blocks obey the rules of the malloc family as small ones do, also when memory is exhausted.

use largesse_tests::{Run, Stage, has_program, users};

const GIB: u64 = 1 << 30;

#[track_caller]
fn family(options: &[&str]) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("family.c", &["-Wall"]) else { return };
    for user in users() {
        let ran = Run::new(&stage, &[&program]).as_user(user).under(options).finish().succeeded();
        assert_eq!(ran.stdout, "all as it should be\n", "{user:?}");
        assert!(ran.counter("allocations") > 300, "{user:?} {ran:#?}");
    }
}

#[test]
fn c_library_passes_the_same_checks() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("family.c", &["-Wall"]) else { return };
    let ran = Run::new(&stage, &[program]).finish();
    assert_eq!(ran.stdout, "all as it should be\n");
}

#[test]
fn rules_hold_by_default() {
    family(&[]);
}

#[test]
fn rules_hold_with_a_header_and_the_smallest_limit() {
    family(&["--header", "48", "--min-kb", "64"]);
}

#[test]
fn rules_hold_at_the_c_librarys_offsets_and_within_limits() {
    family(&["--align", "native", "--min-kb", "1024", "--max-kb", "4096"]);
}

#[test]
fn rules_hold_on_ordinary_pages() {
    family(&["--pages", "4k"]);
}

#[test]
fn rules_hold_when_hugetlb_pages_are_missing() {
    family(&["--pages", "hugetlb"]);
}

#[test]
fn program_continues_after_malloc_fails() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("exhaustion.c", &[]) else { return };
    for user in users() {
        for limit in [GIB / 2, GIB, 3 * GIB] {
            let run = Run::new(&stage, &[&program]).as_user(user).address_space(limit);
            assert_eq!(run.finish().succeeded().stdout, "went on\n", "without the library");
            let ran = run.under(&[]).finish().succeeded();
            assert_eq!(ran.stdout, "went on\n", "{user:?} {limit}");
            assert!(ran.counter("allocations") > 0, "{user:?} {limit}: {ran:#?}");
        }
    }
}

#[test]
fn r_reports_its_own_error_and_continues() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = stage.program("exhaustion.R");
    for user in users() {
        let run = Run::new(&stage, &["Rscript", "--vanilla"]).arg(&script).as_user(user).address_space(GIB);
        let ran = run.under(&[]).finish().succeeded();
        assert_eq!(ran.stdout, "3 refusals, and R goes on\n", "{user:?}");
        assert!(ran.counter("allocations") > 10, "{user:?} {ran:#?}");
    }
}
