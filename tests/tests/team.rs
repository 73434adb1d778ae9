//! Checks that the kernels use one thread for each processor that the process may use, even if the calling thread is
//! bound to fewer.

use largesse_tests::{Run, Stage, skipped};
use std::path::PathBuf;

fn program(stage: &Stage) -> Option<PathBuf> {
    let library = stage.library();
    let folder = library.parent().unwrap_or(&library).display().to_string();
    let (search, run_path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    // This links OpenMP, although the program calls none of its functions.
    stage.compiled("team.c", &["-fopenmp", "-Wl,--no-as-needed", &search, &run_path, "-l:liblargesse.so"])
}

/// Returns the number of processors that this test may use and the first of them, or `None` if there is only one.
fn processors() -> Option<(usize, String)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let number = std::thread::available_parallelism().unwrap().get();
    if number < 2 {
        skipped("one processor only");
        return None;
    }
    Some((number, list.split([',', '-']).next().unwrap().to_owned()))
}

/// Returns a run of the program without a variable that sets the number of threads, and without the library's helper
/// thread, which would be counted as a worker.
fn run<'a>(stage: &'a Stage, program: &PathBuf) -> Run<'a> {
    let run = Run::new(stage, &[program]).variable("LARGESSE_AHEAD", "off");
    run.started_by(&["env", "--unset=OMP_NUM_THREADS"])
}

#[track_caller]
fn check(run: &Run<'_>, want: &str) {
    assert_eq!(run.finish().succeeded().stdout, want);
}

#[test]
fn bound_caller_does_not_confine_the_team() {
    let stage = Stage::new();
    let (Some(program), Some((all, _))) = (program(&stage), processors()) else { return };
    let workers = all - 1;
    let both = format!(
        "bound: {all} threads, {workers} workers, 0 on one processor\n\
         free again: {all} threads, {workers} workers, 0 on one processor\n"
    );
    check(&run(&stage, &program).arg("bound"), &both);
    // OpenMP binds the main thread before any constructor of the library.
    for (variable, value) in [("OMP_PROC_BIND", "true"), ("OMP_PLACES", "cores")] {
        let run = run(&stage, &program).variable(variable, value);
        check(&run, &format!("plain: {all} threads, {workers} workers, 0 on one processor\n"));
        let run = run.started_by(&["env", "OMP_NUM_THREADS=2"]);
        check(&run, "plain: 2 threads, 1 workers, 0 on one processor\n");
        check(&run.under(&[]), "plain: 2 threads, 1 workers, 0 on one processor\n");
    }
}

#[test]
fn confined_process_has_a_smaller_team() {
    let stage = Stage::new();
    let (Some(program), Some((_, first))) = (program(&stage), processors()) else { return };
    let alone = "1 threads, 0 workers, 0 on one processor\n";
    check(&run(&stage, &program).arg("confined").arg(&first), &format!("confined: {alone}"));
    let run = run(&stage, &program).started_by(&[
        "taskset",
        "--cpu-list",
        &first,
        "env",
        "--unset=OMP_NUM_THREADS",
    ]);
    check(&run, &format!("plain: {alone}"));
}

#[test]
fn number_of_threads_can_be_set() {
    let stage = Stage::new();
    let Some(program) = program(&stage) else { return };
    let run = run(&stage, &program).arg("set").started_by(&["env", "OMP_NUM_THREADS=2"]);
    let lines = [(1, 0), (3, 2), (2, 2), (5, 4)];
    let mut want = String::new();
    for (threads, workers) in lines {
        want += &format!("{threads}: {threads} threads, {workers} workers, 0 on one processor\n");
    }
    want += "0: 2 threads, 4 workers, 0 on one processor\n1000: 256 threads\n";
    if processors().is_some() {
        check(&run, &want);
    }
}
