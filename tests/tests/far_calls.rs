//! Makes system calls on far memory under every fault engine.

use largesse_tests::{Exit, Run, Stage, fault_engines, has_program, same_output, users};

#[test]
fn every_call_works_on_far_memory() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_calls.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        for engine in fault_engines(user) {
            let options = ["--local=8M", "--far=memory:", "--fault-engine", engine];
            let ran = Run::new(&stage, &[&program]).as_user(user).under(&options).finish();
            assert_eq!(
                (ran.exit, ran.stdout.as_str()),
                (Exit::Code(0), "0 failed\n"),
                "{user:?} {engine} {ran:#?}"
            );
        }
    }
}

#[test]
fn eight_threads_handle_their_own_faults() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("paged.c", &["-lpthread", "-O2"]) else { return };
    for user in users() {
        for store in stage.stores() {
            let options = ["--local=16M", "--far", &store, "--page-size=4K", "--fault-engine=thread"];
            let run = Run::new(&stage, &[&program]).arg("64").arg("8").arg("3000");
            let ran = run.as_user(user).under(&options).finish().succeeded();
            assert_eq!(ran.stdout, "8388608 words, 0 wrong\n", "{user:?} {store}");
            assert!(ran.report["far"]["evictions"].as_u64().unwrap() > 5_000, "{ran:#?}");
        }
    }
}

#[test]
fn datagram_across_segments_is_not_truncated() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_datagram.c", &[]) else { return };
    for engine in ["user-mode", "thread"] {
        let options = ["--local=8M", "--far=memory:", "--fault-engine", engine];
        let ran = Run::new(&stage, &[&program]).under(&options).finish().succeeded();
        assert_eq!(ran.stdout, "60000 bytes sent, 60000 at once, 0 wrong\n0 lost\n", "{engine}");
    }
}

// This test has been seen to fail with the SIGBUS engine (8192 wrong words) when frames in a pipe are reused.
#[test]
fn pages_in_a_pipe_keep_their_contents() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_vmsplice.c", &["-O2"]) else { return };
    for user in users() {
        for engine in fault_engines(user) {
            for size in ["4K", "16K"] {
                let options = ["--local=8M", "--far=memory:", "--page-size", size, "--fault-engine", engine];
                let ran = Run::new(&stage, &[&program]).as_user(user).under(&options).finish().succeeded();
                assert_eq!(ran.stdout, "0 wrong\n", "{user:?} {engine} {size}");
                assert!(ran.report["far"]["evictions"].as_u64().unwrap() > 50_000, "{ran:#?}");
            }
        }
    }
}

/// A program makes a system call by an instruction of its own, which the library does not see. The call fails with an
/// error: it neither blocks for ever nor returns wrong data.
#[test]
fn system_call_without_the_c_library_fails() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_direct_call.c", &[]) else { return };
    let options = ["--local=8M", "--far=memory:", "--fault-engine=user-mode"];
    let ran = Run::new(&stage, &[&program]).under(&options).finish().succeeded();
    assert_eq!(ran.stdout, "EFAULT\n");
}

#[test]
fn files_of_r_python_and_sqlite_are_the_same() {
    let stage = Stage::new();
    let r = "x <- lapply(1:12, function(i) (1:5e5) * i); f <- tempfile(); saveRDS(x, f, compress = FALSE); \
        y <- readRDS(f); w <- file(f, 'wb'); writeBin(x[[3]], w); close(w); \
        cat(identical(x, y), identical(readBin(f, 'double', 5e5), x[[3]]), system('echo out', intern = TRUE), \
        nchar(paste(rep('far', 1e6), collapse = ' ')), sep = '\\n')";
    let python = "import numpy, os, subprocess\n\
        a = numpy.arange(6_000_000, dtype=float); a.tofile('a.dat'); b = numpy.fromfile('a.dat')\n\
        c = open('a.dat', 'rb').read(); os.remove('a.dat')\n\
        print((a == b).all(), len(c), subprocess.check_output(['echo', 'out']), c == a.tobytes())";
    let sql = "create table t(x); with recursive n(i) as (select 1 union all select i+1 from n where i<200000) \
        insert into t select printf('%050d', i * 7919 % 200003) from n; pragma cache_size=20000; \
        select count(*), max(x) from t; select sum(length(a.x)) from t a join t b on a.rowid = b.rowid + 1;";
    let programs: [(&str, &[&str], Vec<&str>); 3] = [
        ("Rscript", &["--version"], vec!["Rscript", "--vanilla", "-e", r]),
        ("/usr/bin/python3", &["-c", "import numpy"], vec!["/usr/bin/python3", "-c", python]),
        ("sqlite3", &["--version"], vec!["sqlite3", ":memory:", sql]),
    ];
    for (name, check, words) in programs {
        if has_program(name, check) {
            for engine in ["user-mode", "thread"] {
                let options = ["--local=16M", "--far=memory:", "--fault-engine", engine];
                same_output(&Run::new(&stage, &words), &options, 1);
            }
        }
    }
}
