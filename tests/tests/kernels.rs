//! Tests the kernels, called from a C program that links `liblargesse.so`. Results have the bits that docs/kernels.md
//! defines, with any instruction set and number of threads, and in a forked child.

use largesse_tests::{Exit, Run, Stage, users};

/// Returns the program of this test, linked with the library of the stage.
fn program(stage: &Stage) -> Option<std::path::PathBuf> {
    let library = stage.library();
    let folder = library.parent().unwrap_or(&library).display().to_string();
    let linked = ["-Wall".into(), "-lm".into(), format!("-L{folder}"), format!("-Wl,-rpath,{folder}")];
    let mut options: Vec<&str> = linked.iter().map(String::as_str).collect();
    options.extend(["-ffp-contract=off", "-l:liblargesse.so"]);
    stage.compiled("kernels.c", &options)
}

#[test]
fn c_program_gets_the_defined_bits() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    for user in users() {
        for threads in ["1", "2", "5"] {
            let run = Run::new(&stage, &[&program]).as_user(user).variable("OMP_NUM_THREADS", threads);
            assert_eq!(run.finish().succeeded().stdout, "all bits agree\n", "{user:?}, {threads} threads");
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    for isa in ["avx512", "avx2", "sse2", "neon", "portable"] {
        let run = Run::new(&stage, &[&program])
            .variable("LARGESSE_ISA", isa)
            .variable("LD_PRELOAD", stage.library());
        let ran = run.finish();
        // An instruction set that the CPU lacks is refused by name. No CPU lacks the portable one.
        let refused = ran.hints.contains("LARGESSE_ISA") && isa != "portable";
        assert!(
            ran.stdout == "all bits agree\n" || refused && ran.exit == Exit::Code(125),
            "{isa}: {ran:#?}"
        );
    }
}

#[test]
fn kernels_work_under_the_launcher_and_on_far_memory() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let ran = Run::new(&stage, &[&program]).under(&[]).finish().succeeded();
    assert_eq!(ran.stdout, "all bits agree\n");
    for engine in ["auto", "thread"] {
        let options = ["--local=24M", "--far=memory:", "--fault-engine", engine];
        let run = Run::new(&stage, &[&program]).variable("OMP_NUM_THREADS", "3");
        assert_eq!(run.under(&options).finish().succeeded().stdout, "all bits agree\n", "{engine}");
    }
}
