//! Floating-point exceptions of the kernels in whole programs: a kernel raises the flags, and causes the traps, that
//! its result requires, and none that only its intermediate values would cause.

use largesse_tests::{Run, Stage};

/// Returns the options that link a program of this test with the library of the stage.
fn linked(stage: &Stage) -> [String; 4] {
    let library = stage.library();
    let folder = library.parent().unwrap_or(&library).display().to_string();
    ["-lm".into(), format!("-L{folder}"), format!("-Wl,-rpath,{folder}"), "-l:liblargesse.so".into()]
}

#[test]
fn any_number_of_threads_raises_the_same_exceptions() {
    const WANT: &str = "\
5e+300
nrm2 of large numbers: inexact
1
nrm2 of a tiny number: inexact
2e+38
sum of three numbers:
1.34827e+308
long sum:
inf
long dot: overflow inexact
1.34827e+308
long nrm2:
long axpy: overflow inexact
nrm2 of large numbers: none
long sum: none
long dot: trap
long dot again: trap
long nrm2: none
this thread trapped
";
    let stage = Stage::new();
    let options = linked(&stage);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(program) = stage.compiled("exceptions.c", &options) else { return };
    for threads in ["1", "2", "5"] {
        for isa in ["auto", "sse2", "portable"] {
            let run = Run::new(&stage, &[&program]).variable("OMP_NUM_THREADS", threads);
            let ran = run.variable("LARGESSE_ISA", isa).finish().succeeded();
            assert_eq!(ran.stdout, WANT, "{threads} threads, LARGESSE_ISA={isa}");
        }
    }
}

#[test]
fn fortran_norm_does_not_trap() {
    let stage = Stage::new();
    let mut options = linked(&stage).to_vec();
    options.push("-ffpe-trap=invalid,zero,overflow,underflow".into());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(program) = stage.compiled("trapping.f90", &options) else { return };
    let ran = Run::new(&stage, &[&program]).finish().succeeded();
    assert_eq!(ran.stdout.trim(), "5.0+300", "{ran:#?}");
}
