//! Compares the output of `largesse bench` with recorded output, as tables and as JSON. The programs are shell scripts
//! that print fixed times. `programs/largesse` stands in for the command, and `cases.txt` has the arguments.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Replaces the parts of a line that differ between machines: descriptions, free memory, the C library and lower
/// bounds.
fn masked(line: &str) -> String {
    if let Ok(mut object) = serde_json::from_str::<Value>(line) {
        if let Some(machine) = object["machine"].as_object() {
            object["machine"] = machine.keys().cloned().collect();
        }
        for key in ["above", "auto_to_best_above"] {
            if object[key].is_number() {
                object[key] = "#".into();
            }
        }
        if let Some(why) = object["why"].as_str() {
            object["why"] = masked(why).into();
        }
        return object.to_string();
    }
    if line.contains(" processors, ") {
        return "MACHINE".into();
    }
    let words: Vec<&str> = line.split(' ').collect();
    let word = |(place, word): (usize, &&str)| match words[..place] {
        [.., ">"] => word.replace(|letter: char| letter.is_ascii_digit(), "#"),
        [.., "here", "is"] => "#".into(),
        _ if words[place + 1..].starts_with(&["MiB", "are"]) => "#".into(),
        _ => (*word).into(),
    };
    words.iter().enumerate().map(word).collect::<Vec<String>>().join(" ")
}

#[test]
fn output_is_as_recorded() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // The program looks for the command in its own folder.
    let program = folder.path().join("largesse-bench");
    std::fs::copy(env!("CARGO_BIN_EXE_largesse-bench"), &program).unwrap();
    std::fs::copy(here.join("programs/largesse"), folder.path().join("largesse")).unwrap();
    for case in include_str!("cases.txt").lines() {
        let (name, words) = case.split_once(": ").unwrap();
        for (json, suffix) in [(None, ".txt"), (Some("--json"), ".json.txt")] {
            let mut command = Command::new(&program);
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
                command.env_remove(name);
            }
            let state = folder.path().join(format!("{name}{suffix}"));
            command.env("LC_ALL", "C.UTF-8").env("STATE", state).env("INHERITED", "yes");
            command.args(words.split(' ')).args(json).arg("--programs").arg(&here);
            let done = command.output().unwrap();
            let bytes = [&done.stdout[..], &done.stderr, done.status.to_string().as_bytes()].concat();
            let expected = std::fs::read_to_string(here.join("expected").join(format!("{name}{suffix}")));
            let texts = [String::from_utf8(bytes).unwrap(), expected.unwrap()];
            let [found, expected] = texts.map(|text| text.lines().map(masked).collect::<Vec<_>>());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{case} {json:?}: {expected:?}");
            }
            assert_eq!(found.len(), expected.len(), "{case} {json:?}");
        }
    }
}

#[test]
fn pictures_have_two_points_for_each_cell() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let picture = folder.path().join("picture.svg");
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse-bench"));
    command.args(["gc", "--only=ours", "--only=hangs", "--only=lists", "--threads=3", "--runs=1", "--cap=1"]);
    command.arg("--programs").arg(here).arg("--svg").arg(&picture).output().unwrap();
    let drawn = std::fs::read_to_string(picture).unwrap();
    // Two cells of `ours`, one of `hangs`: each is a gain and a share.
    assert_eq!((drawn.matches("<circle").count(), drawn.matches("share of GC").count()), (2 * 3, 2));
}

#[test]
fn full_disk_is_reported_once() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse-bench"));
    let output = command.args(["r", "--list"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    let error = "largesse: standard output: No space left on device (os error 28)\n";
    assert_eq!((String::from_utf8_lossy(&output.stderr), output.status.code()), (error.into(), Some(2)));
}

/// Calls `look` until it returns a value, for at most a minute.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
        if let found @ Some(_) = look() {
            return found;
        }
    }
    None
}

// This fails if the program does not ask for the signal.
#[test]
fn killed_benches_leave_no_program() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse-bench"));
    command.args(["r", "--only", "sleeps", "--programs"]).arg(here).env("STATE", "/dev/null");
    let mut bench = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", bench.id());
    let program = soon(|| {
        let all = std::fs::read_to_string(&children).ok()?;
        let sleeps = |id: &&str| {
            std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|comm| comm == "sleep\n")
        };
        all.split_whitespace().find(sleeps).map(str::to_owned)
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    let program = program.expect("no program");
    // The process does not exist any more, or is a zombie.
    let gone = soon(|| match std::fs::read_to_string(format!("/proc/{program}/stat")) {
        Ok(stat) => stat.contains(") Z ").then_some(()),
        Err(_) => Some(()),
    });
    assert!(gone.is_some(), "{program} is still running");
}
