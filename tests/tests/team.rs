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
    let (Some(program), Some((all, first))) = (program(&stage), processors()) else { return };
    let workers = all - 1;
    let both = format!(
        "bound: {all} threads, {workers} workers, 0 on one processor\n\
         free again: {all} threads, {workers} workers, 0 on one processor\n"
    );
    check(&run(&stage, &program).arg("bound"), &both);
    // The call takes what `largesse pin --cpus` takes.
    let number: u32 = first.parse().unwrap();
    let mask = format!("0x{:x}{}", 1 << (number % 32), ",00000000".repeat(number as usize / 32));
    for cpus in [&first, "N:0", "+0", &format!("{first}-{first}:2"), &mask] {
        let pinned = run(&stage, &program).arg("pinned").arg(cpus);
        check(&pinned, &format!("pinned: {all} threads, {workers} workers, 0 on one processor\n"));
    }
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

/// Returns the list of all processors that this test may use, as `taskset` writes it.
fn all_processors() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
}

#[test]
fn team_follows_the_process() {
    let stage = Stage::new();
    let (Some(program), Some((all, first))) = (program(&stage), processors()) else { return };
    let workers = all - 1;
    let moved = run(&stage, &program).arg("moved").arg(&first).arg(all_processors());
    let text = moved.finish().succeeded().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], format!("before: {all} threads, {workers} workers, 0 on one processor"));
    assert!(lines[1].starts_with("confined: 1 threads"), "{text}");
    // Only the thread that took part has moved; the others wait.
    assert_eq!(lines[2], format!("two threads: 2 threads, {workers} workers, 1 on one processor"));
    assert_eq!(lines[3], format!("by taskset: {all} threads, {workers} workers, 0 on one processor"));
}

#[test]
fn pinned_threads_do_not_confine_the_team() {
    let stage = Stage::new();
    let (Some(program), Some((all, _))) = (program(&stage), processors()) else { return };
    let command = stage.command();
    let pin = ["env", "--unset=OMP_NUM_THREADS", command.to_str().unwrap(), "pin", "--threads"];
    let run = run(&stage, &program).started_by(&[&pin[..], &[&all_processors(), "--"]].concat());
    check(&run, &format!("plain: {all} threads, {} workers, 0 on one processor\n", all - 1));
}

#[test]
fn forked_child_confines_itself() {
    let stage = Stage::new();
    let (Some(program), Some((all, first))) = (program(&stage), processors()) else { return };
    let parent = format!("parent: {all} threads, {} workers, 0 on one processor\n", all - 1);
    let child = "child: 1 threads, 0 workers, 0 on one processor\n";
    check(&run(&stage, &program).arg("forked").arg(&first), &format!("{parent}{child}{parent}"));
}

#[test]
fn own_threads_are_not_bound_with_their_starter() {
    let stage = Stage::new();
    let (Some(program), Some(_)) = (program(&stage), processors()) else { return };
    let store = stage.store();
    for options in [&[][..], &["--local", "4M", "--far", &store]] {
        let run = Run::new(&stage, &[&program]).variable("OMP_PROC_BIND", "true").under(options);
        let text = run.started_by(&["env", "OMP_NUM_THREADS=2"]).finish().succeeded().stdout;
        let found = text.trim_end().strip_suffix(" workers, 0 on one processor");
        let found = found.and_then(|text| text.rsplit(' ').next()?.parse().ok());
        assert!(found.is_some_and(|threads: u32| threads > 1), "{options:?}: {text}");
    }
}

#[test]
fn confined_process_has_no_helper() {
    let stage = Stage::new();
    let (Some(program), Some((_, first))) = (program(&stage), processors()) else { return };
    let run = run(&stage, &program).variable("LARGESSE_AHEAD", "on");
    let run = run.started_by(&["taskset", "--cpu-list", &first, "env", "--unset=OMP_NUM_THREADS"]);
    check(&run, "plain: 1 threads, 0 workers, 0 on one processor\n");
}
