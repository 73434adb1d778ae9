//! Programs in trouble: a message and a status, or the right data, and never wrong ones.

use largesse_tests::{Ran, Run, Stage, is_root, skipped};
use std::path::{Path, PathBuf};

/// Far memory for ordinary users needs `/dev/userfaultfd` or the sysctl.
fn permitted() -> bool {
    let yes = is_root() || std::fs::File::options().read(true).write(true).open("/dev/userfaultfd").is_ok();
    if !yes {
        skipped("userfaultfd is not permitted here");
    }
    yes
}

/// A folder on a disk, whatever the temporary folder is.
fn store_in(folder: &Path) -> String {
    format!("file:{}", folder.join("pages").display())
}

fn program(stage: &Stage) -> Option<PathBuf> {
    if !permitted() {
        return None;
    }
    stage.compiled("far_trouble.c", &["-lpthread", "-O2"])
}

/// What it says over a file.
fn over_file(stage: &Stage, words: &[&str]) -> Option<Ran> {
    let program = program(stage)?;
    let store = store_in(&stage.scratch());
    let run = words.iter().fold(Run::new(stage, &[program]), |run, word| run.arg(word));
    Some(run.under(&["--local=8M", "--far", &store]).finish())
}

#[test]
fn a_program_that_closes_what_it_does_not_know_keeps_its_pages() {
    let stage = Stage::new();
    for how in ["closefrom", "close"] {
        let Some(ran) = over_file(&stage, &[how, "32"]) else { return };
        let ran = ran.succeeded();
        // As in a run without the library: what `Run` starts with is 0 to 2.
        assert_eq!(ran.stdout, "number 3\nnumbers 3 to 22\n0 wrong\n", "{how}");
        assert!(ran.report["far"]["fills"].as_u64().unwrap() > 1000, "{how} {ran:#?}");
    }
}

#[test]
fn a_child_made_behind_our_back_dies_rather_than_reading_zeros() {
    let stage = Stage::new();
    let Some(ran) = over_file(&stage, &["children", "32"]) else { return };
    let expected = "clone reads: signal 11\nclone execs: status 0\n\
        _Fork reads: signal 11\n_Fork execs: status 0\nposix_spawn: status 0\nvfork reads: status 0\n\
        fork reads: status 0\n0 wrong\n";
    assert_eq!(ran.succeeded().stdout, expected);
}
