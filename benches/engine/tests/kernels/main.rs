//! Tests `largesse bench kernels` on little data.

use serde_json::Value;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let always = ["kernels", "--runs", "1", "--scale", "0.01"];
    Command::new(env!("CARGO_BIN_EXE_largesse-bench")).args(always).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn instruction_sets_are_timed_at_every_length() {
    let picture = std::env::temp_dir().join(format!("largesse-kernels-{}.svg", std::process::id()));
    let done = bench(&["--json", "--only", "ddot", "--only", "daxpy", "--svg", &picture.to_string_lossy()]);
    assert!(done.status.success(), "{done:?}");
    let lines: Vec<Value> =
        text(&done.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).cloned().collect::<Vec<_>>();
    assert_eq!(of_kind("trouble"), Vec::<Value>::new());
    assert_eq!(of_kind("limits").len(), 1);
    assert!(!of_kind("ladder").is_empty());
    let rows = of_kind("line");
    for kernel in ["ddot", "daxpy"] {
        for who in ["portable", if cfg!(target_arch = "x86_64") { "sse2" } else { "neon" }] {
            let here: Vec<_> =
                rows.iter().filter(|row| row["kernel"] == kernel && row["who"] == who).collect();
            assert!(here.len() >= 14, "{kernel} {who}: {}", here.len());
            assert!(here.iter().all(|row| row["seconds"].as_f64().unwrap() > 0.0 && row["shift"].is_u64()));
        }
    }
    let drawn = std::fs::read_to_string(&picture).unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert!(drawn.contains("ddot") && drawn.contains("portable"));
}

#[test]
fn tables_show_alignment_and_missing_peers() {
    let done = bench(&["--only", "dsum"]);
    assert!(done.status.success(), "{done:?}");
    let shown = text(&done.stdout);
    for words in ["Limits: clock", "sum of x[i]", "lies", "portable", "On the HA8000"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}

#[test]
fn wrong_names_list_the_right_ones() {
    for (arguments, words) in [
        (&["--only", "dsun"][..], "dsum, dasum, dsumsq"),
        (&["--cap", "3"], "--cap is an option of `largesse bench far` and `largesse bench gc` only"),
        (&["--peers"], "--peers is an option of `largesse bench r` only"),
    ] {
        let done = bench(arguments);
        assert_eq!(done.status.code(), Some(2));
        assert!(text(&done.stderr).contains(words), "{done:?}");
    }
}
