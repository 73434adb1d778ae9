//! Tests `largesse bench kernels` on little data.

use serde_json::Value;
use std::process::Command;

fn bench(arguments: &[&str]) -> String {
    let always = ["kernels", "--runs", "1", "--scale", "0.01"];
    let done =
        Command::new(env!("CARGO_BIN_EXE_largesse-bench")).args(always).args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn instruction_sets_are_timed_at_every_length() {
    let picture = std::env::temp_dir().join(format!("largesse-kernels-{}.svg", std::process::id()));
    let text = bench(&["--json", "--only", "ddot", "--only", "daxpy", "--svg", &picture.to_string_lossy()]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys = |kind: &str| {
        let line = lines.iter().find(|line| line["kind"] == kind).unwrap();
        line.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    assert!(lines.iter().all(|line| line["kind"] != "trouble"), "{text}");
    assert_eq!(keys("limits"), "additions bench clock kind levels multiply_adds");
    assert_eq!(keys("ladder"), "bench gflops kind per_cent spread step");
    assert_eq!(
        keys("line"),
        "bench gflops gigabytes kernel kind level n offset per_cent seconds shift spread who"
    );
    for (kernel, who) in
        ["ddot", "daxpy"].into_iter().flat_map(|kernel| [(kernel, "portable"), (kernel, SIMD)])
    {
        let here = lines.iter().filter(|line| line["kernel"] == kernel && line["who"] == who);
        assert!(here.clone().count() >= 14, "{kernel} {who}: {text}");
        assert!(here.clone().all(|line| line["seconds"].as_f64().unwrap() > 0.0), "{text}");
    }
    let drawn = std::fs::read_to_string(&picture).unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert!(drawn.contains("ddot") && drawn.contains("portable"));
}

/// Name of the instruction set that every processor of this architecture has.
const SIMD: &str = if cfg!(target_arch = "x86_64") { "sse2" } else { "neon" };

#[test]
fn tables_show_limits_alignment_and_the_ladder() {
    let shown = bench(&["--only", "dsum"]);
    for words in ["Limits: clock", "sum of x[i]", "lies", "portable", "On the HA8000", "`lies`: bytes"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
}
