//! Tests programs whose pages are in the memory of other ranks of an `mpirun`, with each installed MPI library.

use largesse_tests::{
    Exit, Ran, Run, Stage, anonymous_kib, built_library, skipped, users, wait_for, wait_until,
};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time within which every awaited event must happen.
const DEADLINE: Duration = Duration::from_secs(60);

/// Values of the report's counter `mechanism`: the program has mapped the server's memory and copies it, or it reaches
/// it by MPI requests.
const COPIES: u64 = 0;
const MPI_REQUESTS: u64 = 4;

/// An MPI launcher (`words`), its plug-in for Largesse, and the options that make the launcher's library use the
/// network even on one machine (`wire`).
struct Launcher {
    plugin: &'static str,
    words: &'static [&'static str],
    wire: &'static [&'static str],
}

const LAUNCHERS: [Launcher; 2] = [
    Launcher {
        plugin: "liblargesse-openmpi.so",
        words: &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"],
        wire: &["--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "osc", "pt2pt"],
    },
    Launcher {
        plugin: "liblargesse-mpich.so",
        words: &["mpiexec.hydra", "-n", "3"],
        wire: &["-genv", "MPIR_CVAR_NOLOCAL", "1"],
    },
];

/// Returns the installed launchers whose plug-in is built, and copies the plug-ins to the stage.
fn launchers(stage: &Stage) -> Vec<&'static Launcher> {
    let folder = built_library().parent().map(Path::to_path_buf).unwrap_or_default();
    let there = |launcher: &&Launcher| {
        let launches = Command::new(launcher.words[0]).arg("--version").output().is_ok();
        let built = std::fs::copy(folder.join(launcher.plugin), stage.path(launcher.plugin)).is_ok();
        if !launches || !built {
            skipped(&format!("no {}, or no plug-in for it (make plugins)", launcher.words[0]));
        }
        launches && built
    };
    LAUNCHERS.iter().filter(there).collect()
}

/// Returns the words of the command line `mpirun … largesse run OPTIONS -- PROGRAM`.
fn words(stage: &Stage, launch: &[&[&str]], options: &[&str], program: &[&str]) -> Vec<OsString> {
    let command = stage.command();
    let ours = [command.to_str().unwrap_or_default(), "run", "--local=16M"];
    let parts = [&launch.concat()[..], &ours, options, &["--"], program];
    parts.concat().into_iter().map(OsString::from).collect()
}

fn ran(stage: &Stage, launch: &[&[&str]], options: &[&str], program: &[&str]) -> Ran {
    Run::new(stage, &words(stage, launch, options, program)).finish()
}

fn said(ran: &Ran) -> String {
    format!("{}{}", ran.hints, ran.stderr)
}

/// `largesse lisp` keeps its far memory at the other ranks without `largesse run`.
#[test]
fn lisp_heap_is_at_other_ranks() {
    let stage = Stage::with_companion("largesse-lisp");
    let (command, program) = (stage.command(), stage.program("rows.l"));
    let near = Run::new(&stage, &[&command, Path::new("lisp"), &program]).finish().succeeded();
    for launcher in launchers(&stage) {
        let mut words: Vec<OsString> = launcher.words.iter().map(OsString::from).collect();
        words.push(command.clone().into());
        words.extend(["lisp", "--local=4M", "--far=mpi:256M", "--stats"].map(OsString::from));
        words.push(program.clone().into());
        let far = Run::new(&stage, &words).finish().succeeded();
        assert_eq!(far.stdout, near.stdout, "{far:#?}");
        assert!(far.stderr.contains("Far memory in mpi:"), "{far:#?}");
    }
}

#[test]
fn every_word_reads_back_over_shared_memory_and_network() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread"]) else { return };
    let Some(program) = program.to_str() else { return };
    for launcher in launchers(&stage) {
        for user in users() {
            let ways = [
                (&[][..], "64", "8388608 words, 0 wrong", COPIES),
                (launcher.wire, "24", "3145728 words, 0 wrong", MPI_REQUESTS),
            ];
            for (wire, mib, wrong, mechanism) in ways {
                let report = stage.scratch().join(format!("{user:?}-{mib}-{}", launcher.plugin));
                let options = ["--far=mpi:", "--report", report.to_str().unwrap_or_default()];
                let words = words(&stage, &[launcher.words, wire], &options, &[program, mib, "2", "500"]);
                let ran = Run::new(&stage, &words).as_user(user).finish().succeeded();
                assert_eq!(ran.stdout.trim_end(), wrong, "{user:?} {:?}", launcher.words);
                let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
                let far = &report["far"];
                assert_eq!(far["mechanism"], mechanism, "{:?} {far:#}", launcher.words);
                if mechanism != COPIES {
                    assert!(far["most_reads"].as_u64() >= Some(3), "{far:#}");
                    assert!(far["most_writes"].as_u64() >= Some(2), "{far:#}");
                }
            }
        }
    }
}

#[test]
fn static_arrays_and_forked_children_keep_their_contents() {
    let stage = Stage::new();
    let (Some(statics), Some(forks)) =
        (stage.compiled("statics.c", &[]), stage.compiled("far_fork.c", &["-lpthread", "-O2"]))
    else {
        return;
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (statics, forks) = (text(&statics), text(&forks));
    for launcher in launchers(&stage) {
        for (program, want) in
            [(&[&*statics][..], "0 wrong\n"), (&[&forks, "sides", "32"], "parent: 0 wrong\n")]
        {
            let ran = ran(&stage, &[launcher.words], &["--far=mpi:256M"], program).succeeded();
            assert!(ran.stdout.contains(want), "{ran:#?}");
        }
    }
}

#[test]
fn launcher_forwards_input_and_exit_status() {
    let stage = Stage::new();
    for launcher in launchers(&stage) {
        let script = "read line; echo \"got $line\"; env | grep -cE '^(OMPI_|PMI|HYD)'; exit 7";
        let words = words(&stage, &[launcher.words], &["--far=mpi:"], &["sh", "-c", script]);
        let ran = Run::new(&stage, &words).input("a line\n").finish();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(7), "got a line\n0\n"), "{ran:#?}");
    }
}

#[test]
fn malloc_fails_when_the_servers_are_full() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread"]) else { return };
    let Some(program) = program.to_str() else { return };
    for launcher in launchers(&stage) {
        let ran = ran(&stage, &[launcher.words], &["--far=mpi:16M"], &[program, "64", "1", "10"]);
        assert_eq!(ran.stdout, "no memory\n", "{ran:#?}");
        assert_eq!(ran.exit, Exit::Code(3));
    }
}

/// Launchers end the whole job when a rank is killed, as they do for every MPI program.
#[test]
fn killed_server_ends_the_program_before_it_prints_wrong_data() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread"]) else { return };
    let Some(program) = program.to_str() else { return };
    for launcher in launchers(&stage) {
        let words = words(&stage, &[launcher.words], &["--far=mpi:"], &[program, "64", "2", "1000000000"]);
        let mut child = Run::new(&stage, &words).start();
        let server = server_of(child.id(), stage.command().to_str().unwrap_or_default());
        // SAFETY: the arguments are numbers, and this test started the process.
        unsafe { libc::kill(server, libc::SIGKILL) };
        wait_for("the launcher ends", DEADLINE, || child.try_wait().expect("a child of this test"));
        let ended = child.wait_with_output().expect("a child of ours");
        let stdout = String::from_utf8_lossy(&ended.stdout);
        assert!(!ended.status.success() && !stdout.contains("words"), "{ended:?}");
        wait_until("no process of the program is left", DEADLINE, || processes(program).is_empty());
    }
}

/// Returns the process number of a rank that serves memory, once the program runs. All three ranks below `launcher`
/// run `command`; those that serve are the two that are not the parent of the program.
fn server_of(launcher: u32, command: &str) -> i32 {
    let below = |pid: i32| {
        let parents = std::iter::successors(Some(pid), |&pid| parent(pid).filter(|&pid| pid > 1));
        parents.skip(1).any(|pid| i64::from(pid) == i64::from(launcher))
    };
    wait_for("three ranks run and the program works", DEADLINE, || {
        let ranks: Vec<i32> = processes(command).into_iter().filter(|&pid| below(pid)).collect();
        let works = |pid: &i32| parent(*pid).is_some_and(|rank| ranks.contains(&rank)) && has_filled(*pid);
        let first = processes("paged.bin").into_iter().find(works).and_then(parent)?;
        ranks.iter().copied().find(|&pid| pid != first && ranks.len() == 3)
    })
}

/// Returns whether a process that runs with `--local=16M` has filled most of its local memory.
fn has_filled(pid: i32) -> bool {
    anonymous_kib(pid.cast_unsigned()) > 12 << 10
}

/// Returns the numbers of the processes whose executable has a path that ends with `program`.
fn processes(program: &str) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let runs = |pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|path| path.to_string_lossy().ends_with(program))
    };
    numbers.filter(runs).collect()
}

fn parent(pid: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn missing_launcher_or_second_rank_is_explained() {
    let stage = Stage::new();
    let alone = ran(&stage, &[], &["--far=mpi:"], &["true"]);
    assert_eq!(alone.exit, Exit::Code(125), "{alone:#?}");
    assert!(said(&alone).contains("mpirun -n 4 largesse run --far mpi:"), "{alone:#?}");
    for launcher in launchers(&stage) {
        let single: Vec<&str> =
            launcher.words.iter().map(|&word| if word == "3" { "1" } else { word }).collect();
        let ran = ran(&stage, &[&single], &["--far=mpi:"], &["true"]);
        assert_eq!(ran.exit, Exit::Code(125), "{ran:#?}");
        assert!(said(&ran).contains("two or more"), "{ran:#?}");
    }
}

#[test]
fn missing_plug_in_is_explained() {
    let stage = Stage::new();
    for launcher in launchers(&stage) {
        std::fs::remove_file(stage.path(launcher.plugin)).expect("it was copied there");
        let ran = ran(&stage, &[launcher.words], &["--far=mpi:"], &["true"]);
        assert_eq!(ran.exit, Exit::Code(125), "{ran:#?}");
        assert!(said(&ran).contains(launcher.plugin) && said(&ran).contains("make plugins"), "{ran:#?}");
    }
}

#[test]
fn program_that_uses_mpi_itself_is_refused() {
    let stage = Stage::new();
    let source = stage.path("hello.c");
    std::fs::write(&source, "#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n").expect("a file");
    for launcher in launchers(&stage) {
        let compiler = if launcher.plugin.contains("openmpi") { "mpicc.openmpi" } else { "mpicc.mpich" };
        let program = stage.path(compiler);
        let built = Command::new(compiler).arg("-o").arg(&program).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            skipped(&format!("no {compiler}"));
            continue;
        }
        let program = program.to_str().unwrap_or_default();
        let ran = ran(&stage, &[launcher.words], &["--far=mpi:"], &[program]);
        assert_eq!(ran.exit, Exit::Code(126), "{ran:#?}");
        assert!(said(&ran).contains("uses MPI itself (libmpi"), "{ran:#?}");
    }
}

#[test]
fn neither_the_command_nor_the_library_links_mpi() {
    let stage = Stage::new();
    for file in [stage.command(), stage.library()] {
        let output = Command::new("ldd").arg(&file).output();
        let Ok(output) = output else { return skipped("no ldd") };
        assert!(!String::from_utf8_lossy(&output.stdout).contains("libmpi"), "{}", file.display());
    }
}

#[test]
fn slow_placement_is_reported() {
    let stage = Stage::new();
    for launcher in launchers(&stage) {
        let through =
            ran(&stage, &[launcher.words, launcher.wire], &["--far=mpi:16M"], &["true"]).succeeded();
        // With these options MPICH does not know which ranks share a machine, so that it cannot report it.
        let told = launcher.plugin.contains("mpich") || said(&through).contains("MPI was told so");
        assert!(told, "{through:#?}");
        let near = ran(&stage, &[launcher.words], &["--far=mpi:16M"], &["true"]).succeeded();
        assert!(!said(&near).contains("in common"), "{near:#?}");
        if launcher.words[0] != "mpirun.openmpi"
            || std::thread::available_parallelism().map_or(1, usize::from) < 2
        {
            continue;
        }
        let bound = [&launcher.words[..2], &["--bind-to", "core", "-n", "2"]].concat();
        let bound = ran(&stage, &[&bound], &["--far=mpi:16M"], &["true"]).succeeded();
        assert!(said(&bound).contains("--bind-to none"), "{bound:#?}");
    }
}
