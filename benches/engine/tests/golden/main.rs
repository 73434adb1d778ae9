//! Compares what `largesse bench` prints with recorded output: comparisons of shell programs that print fixed times,
//! as tables and as JSON. `programs/largesse` stands in for the command.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names of recorded outputs, and the arguments that lead to them.
const CASES: [(&str, &[&str]); 17] = [
    ("r", &["r", "--peers", "--runs", "3"]),
    ("r-one-run", &["r", "--only", "two/second", "--runs", "1", "--scale", "0.25"]),
    ("r-fails", &["r", "--only", "fails"]),
    ("r-list", &["r", "--list"]),
    ("r-list-some", &["r", "--list", "--only", "fails", "--only", "two/second"]),
    ("r-list-group", &["r", "--list", "--only", "small"]),
    ("far", &["far", "--runs", "3", "--cap", "1"]),
    ("far-options", &["far", "--only", "walk", "--local=50", "--page-sizes=4K,auto", "--store=file:/x"]),
    ("gc", &["gc", "--runs", "2", "--threads", "3,2", "--cap", "2"]),
    ("gc-list", &["gc", "--only", "trees", "--list"]),
    ("gc-only", &["gc", "--only", "nothing"]),
    ("far-only", &["far", "--only", "nothing"]),
    ("kernels-only", &["kernels", "--only", "dsun"]),
    ("unknown", &["near"]),
    ("misplaced", &["kernels", "--cap", "3"]),
    ("misplaced-r", &["far", "--peers"]),
    ("store", &["far", "--store=disk"]),
];

/// Replaces what differs between machines: the description of the machine, free memory and lower bounds.
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
    if line.contains(" cores, ") {
        return "MACHINE".into();
    }
    let words: Vec<&str> = line.split(' ').collect();
    let word = |(place, word): (usize, &&str)| match words[..place].last() {
        Some(&">") => word.replace(|letter: char| letter.is_ascii_digit(), "#"),
        _ if words[place + 1..].starts_with(&["MiB", "are"]) => "#".into(),
        _ => (*word).into(),
    };
    words.iter().enumerate().map(word).collect::<Vec<String>>().join(" ")
}

#[test]
fn output_is_as_recorded() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("golden-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // The program looks for the command in its own folder.
    let program = folder.join("largesse-bench");
    std::fs::copy(env!("CARGO_BIN_EXE_largesse-bench"), &program).unwrap();
    std::fs::copy(here.join("programs/largesse"), folder.join("largesse")).unwrap();
    for (name, words) in CASES {
        for json in [&[][..], &["--json"]] {
            let mut command = Command::new(&program);
            std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")).for_each(|(name, _)| {
                command.env_remove(name);
            });
            let state = folder.join(format!("{name}{}", json.len()));
            command.args(words).args(json).arg("--programs").arg(&here);
            let done = command
                .env("LC_ALL", "C.UTF-8")
                .env("STATE", state)
                .env("INHERITED", "yes")
                .output()
                .unwrap();
            let bytes = [&done.stdout[..], &done.stderr, format!("{}\n", done.status).as_bytes()].concat();
            let found = String::from_utf8(bytes).unwrap();
            let file = here.join("expected").join(format!("{name}{}.txt", json.concat().replace("--", ".")));
            let kept = folder.join(file.file_name().unwrap());
            std::fs::write(&kept, &found).unwrap();
            let expected = std::fs::read_to_string(&file).unwrap();
            let [found, expected] =
                [found, expected].map(|text| text.lines().map(masked).collect::<Vec<_>>());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "{} is not {}", kept.display(), file.display());
            }
            assert_eq!(found.len(), expected.len(), "{} is not {}", kept.display(), file.display());
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
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
