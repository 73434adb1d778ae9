//! Tests of the command `largesse report` on artificial reports.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for one test; removed when dropped.
struct ReportFolder(PathBuf);

impl ReportFolder {
    fn new() -> ReportFolder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("largesse-report-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        ReportFolder(path)
    }

    /// Creates a folder with this report as `got.json`.
    fn with(report: &Value) -> ReportFolder {
        let folder = ReportFolder::new();
        std::fs::write(folder.path("got.json"), report.to_string()).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the names of its files, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn report(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_largesse"))
            .arg("report")
            .args(words)
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    /// Runs `largesse report` with the arguments `words`, and checks the exit status and parts of the error message.
    #[track_caller]
    fn refused(&self, words: &[&str], status: i32, answer: &[&str]) {
        let output = self.report(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        for part in answer {
            assert!(said.contains(part), "{words:?}: no '{part}' in {said}");
        }
    }
}

impl Drop for ReportFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the report of a program with two intervals of far memory.
fn report() -> Value {
    let interval = |seconds: f64| {
        json!({ "seconds": seconds, "faults": 100, "bytes_in": 1 << 20, "bytes_out": 1 << 20, "set_bytes": 65536,
                "local_bytes": 1 << 24, "resident_bytes": 1 << 24, "stored_bytes": 1 << 25 })
    };
    json!({ "launched_pid": 7, "processes": [], "command": ["R", "-f", "<a.R>"], "signal": null, "far": { "faults": 200 },
            "timeline": [interval(0.01), interval(0.02)] })
}

#[track_caller]
fn drew(output: &Output) {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn picture_is_next_to_report() {
    let folder = ReportFolder::with(&report());
    drew(&folder.report(&["got.json", "--svg"]));
    let picture = folder.read("got.svg");
    for words in ["R -f &lt;a.R&gt;", "working set", "</svg>"] {
        assert!(picture.contains(words), "no '{words}' in {picture}");
    }
}

#[test]
fn named_output_is_used() {
    let folder = ReportFolder::with(&report());
    std::fs::write(folder.path("named.svg"), "a user's").unwrap();
    drew(&folder.report(&["got.json", "--svg", "named.svg"]));
    let printed = folder.report(&["got.json", "--svg", "-"]);
    drew(&printed);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), folder.read("named.svg"));
    assert_eq!(folder.names(), ["got.json", "named.svg"]);
}

#[test]
fn only_own_pictures_are_replaced() {
    let folder = ReportFolder::with(&report());
    std::fs::write(folder.path("got.svg"), "a user's").unwrap();
    folder.refused(&["got.json", "--svg"], 1, &["got.svg is there already", "--svg OUT.svg"]);
    assert_eq!(folder.read("got.svg"), "a user's");
    std::fs::remove_file(folder.path("got.svg")).unwrap();
    std::os::unix::fs::symlink("elsewhere", folder.path("got.svg")).unwrap();
    folder.refused(&["got.json", "--svg"], 1, &["got.svg is there already"]);
    assert!(!folder.path("elsewhere").exists());
    std::fs::remove_file(folder.path("got.svg")).unwrap();
    drew(&folder.report(&["got.json", "--svg"]));
    drew(&folder.report(&["got.json", "--svg"]));
}

#[test]
fn report_named_svg_is_kept() {
    let folder = ReportFolder::with(&report());
    std::fs::rename(folder.path("got.json"), folder.path("got.svg")).unwrap();
    folder.refused(&["got.svg", "--svg"], 1, &["got.svg is there already"]);
    assert_eq!(folder.read("got.svg"), report().to_string());
}

#[test]
fn refusals_name_remedy() {
    let run = "`largesse run --local SIZE --report FILE.json -- PROGRAM`";
    let folder = ReportFolder::new();
    folder.refused(&["got.json", "--svg"], 1, &["report got.json cannot be read: No such file", run]);
    folder.refused(&["got.json"], 1, &["report got.json cannot be read: No such file", run]);
    folder.refused(&["--svg"], 2, &["<FILE.json>"]);
    for text in ["", "{", "[1]", "{\"processes\": 1}", "\u{1f600}"] {
        std::fs::write(folder.path("got.json"), text).unwrap();
        folder.refused(&["got.json", "--svg"], 1, &["got.json is not a report", run]);
    }
    let mut near = report();
    near["far"] = Value::Null;
    near.as_object_mut().unwrap().remove("timeline");
    ReportFolder::with(&near).refused(
        &["got.json", "--svg"],
        1,
        &["without far memory", "run it with far memory", run],
    );
    let mut killed = report();
    killed["signal"] = "SIGKILL".into();
    killed.as_object_mut().unwrap().remove("timeline");
    ReportFolder::with(&killed).refused(&["got.json", "--svg"], 1, &["no time line", "was ended by SIGKILL"]);
    let folder = ReportFolder::with(&report());
    folder.refused(
        &["got.json", "--svg", "/nowhere/x.svg"],
        1,
        &["/nowhere/x.svg cannot be written: No such"],
    );
    assert!(!Path::new("/nowhere").exists() && folder.names() == ["got.json"]);
}

/// Runs `largesse report FILE` with 2 GiB of address space, so that it cannot read for ever.
fn bounded(file: &str, input: impl Into<std::process::Stdio>) -> (Option<i32>, String) {
    let words =
        format!("ulimit -v 2097152; exec timeout 20 {} report {file}", env!("CARGO_BIN_EXE_largesse"));
    let output = Command::new("sh").args(["-c", &words]).stdin(input).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn endless_reports_are_refused() {
    let (status, said) = bounded("/dev/zero", std::process::Stdio::null());
    assert!(status == Some(1) && said.contains("neither a regular file nor a pipe"), "{status:?}: {said}");
    let folder = ReportFolder::new();
    let sparse = folder.path("sparse.json");
    std::fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    let (status, said) = bounded(sparse.to_str().unwrap(), std::process::Stdio::null());
    assert!(status == Some(1) && said.contains("is larger than 64 MiB"), "{status:?}: {said}");
    let mut endless = Command::new("yes").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (status, said) = bounded("/dev/stdin", endless.stdout.take().unwrap());
    let _ = endless.wait();
    assert!(status == Some(1) && said.contains("is larger than 64 MiB"), "{status:?}: {said}");
}

#[test]
fn reports_are_read_from_pipes() {
    let folder = ReportFolder::with(&report());
    let mut cat =
        Command::new("cat").arg(folder.path("got.json")).stdout(std::process::Stdio::piped()).spawn();
    let (status, said) = bounded("/dev/stdin", cat.as_mut().unwrap().stdout.take().unwrap());
    let _ = cat.unwrap().wait();
    assert_eq!((status, said.as_str()), (Some(0), ""));
}
