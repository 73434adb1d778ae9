//! Checks the layers of the workspace: which crates a crate may use, which must not allocate, and which may read the
//! environment.

use largesse_tests::workspace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every crate, with the crates that it uses. Adding an entry here is a design decision.
const LAYERS: &[(&str, &[&str])] = &[
    ("largesse-pages", &[]),
    ("largesse-machine", &[]),
    ("largesse-random", &[]),
    ("largesse-kernels", &["largesse-random"]),
    ("largesse-arena", &["largesse-pages"]),
    ("largesse-store", &["largesse-machine", "largesse-pages"]),
    ("largesse-policy", &["largesse-random"]),
    (
        "largesse-pager",
        &["largesse-arena", "largesse-machine", "largesse-pages", "largesse-policy", "largesse-store"],
    ),
    ("largesse-agent", &["largesse-machine", "largesse-pages", "largesse-store"]),
    ("largesse-redis", &["largesse-store"]),
    ("largesse-mpi", &["largesse-pages", "largesse-random", "largesse-store"]),
    ("largesse-report", &[]),
    ("largesse-text", &[]),
    ("largesse-plot", &["largesse-text"]),
    ("largesse-terminal", &["largesse-text"]),
    ("largesse-settings", &[]),
    ("largesse-malloc", &["largesse-arena", "largesse-pages", "largesse-report"]),
    ("largesse-gc", &["largesse-arena", "largesse-pages"]),
    ("largesse-lisp", &["largesse-arena", "largesse-gc", "largesse-pages"]),
    (
        "largesse-paging",
        &[
            "largesse-agent",
            "largesse-pager",
            "largesse-pages",
            "largesse-policy",
            "largesse-settings",
            "largesse-store",
        ],
    ),
    (
        "largesse-far",
        &[
            "largesse-agent",
            "largesse-machine",
            "largesse-mpi",
            "largesse-pages",
            "largesse-paging",
            "largesse-settings",
            "largesse-store",
            "largesse-terminal",
        ],
    ),
    (
        "largesse-preload",
        &[
            "largesse-arena",
            "largesse-kernels",
            "largesse-machine",
            "largesse-malloc",
            "largesse-pager",
            "largesse-pages",
            "largesse-paging",
            "largesse-policy",
            "largesse-report",
            "largesse-settings",
            "largesse-store",
            "largesse-text",
        ],
    ),
    (
        "largesse-cli",
        &[
            "largesse-agent",
            "largesse-far",
            "largesse-kernels",
            "largesse-machine",
            "largesse-pager",
            "largesse-pages",
            "largesse-plot",
            "largesse-random",
            "largesse-redis",
            "largesse-report",
            "largesse-settings",
            "largesse-store",
            "largesse-terminal",
            "largesse-text",
        ],
    ),
    (
        "largesse-lisp-command",
        &[
            "largesse-arena",
            "largesse-far",
            "largesse-gc",
            "largesse-lisp",
            "largesse-pager",
            "largesse-pages",
            "largesse-paging",
            "largesse-settings",
            "largesse-store",
            "largesse-terminal",
        ],
    ),
    (
        "largesse-bench",
        &[
            "largesse-far",
            "largesse-kernels",
            "largesse-machine",
            "largesse-pages",
            "largesse-plot",
            "largesse-settings",
            "largesse-store",
            "largesse-terminal",
        ],
    ),
    ("largesse-pin", &[]),
    ("largesse-generate", &["largesse-bench", "largesse-cli", "largesse-lisp-command"]),
    ("largesse-tests", &[]),
];

/// Crates that serve `malloc`, so that they must not call it.
const WITHOUT_ALLOC: &[&str] = &["os/pages", "regions/arena", "heaps/report", "heaps/malloc"];

/// Crates that decide from numbers alone: they forbid unsafe code, read no clock, and neither read nor write anything.
const PURE: &[&str] = &["regions/policy"];

/// Files of the library's crates that may start threads: the one way to start a service thread, the thread that ends
/// the process as one of the program would, the calls of the program, and the agent, which is a process of its own.
const STARTERS: &[&str] = &[
    "os/machine/src/service.rs",
    "fronts/preload/src/last_thread.rs",
    "fronts/preload/src/thread_start.rs",
    "regions/agent/src/client_session.rs",
];

/// Folders with the crates that users run. Only these crates read settings.
const FRONTS: &[&str] = &["fronts", "tests", "benches", "fuzz"];

#[test]
fn every_crate_uses_only_the_crates_of_the_table() {
    assert_eq!(broken(&metadata()), Vec::<String>::new());
}

#[test]
fn edge_that_is_not_in_the_table_is_reported() {
    let mut doctored = metadata();
    let packages = doctored["packages"].as_array_mut().unwrap();
    let pages = packages.iter_mut().find(|package| package["name"] == "largesse-pages").unwrap();
    let edge = serde_json::json!({ "name": "largesse-malloc", "kind": null });
    pages["dependencies"].as_array_mut().unwrap().push(edge);
    assert_eq!(broken(&doctored), ["largesse-pages uses largesse-malloc"]);
}

#[test]
fn edges_for_tests_or_the_build_count_too() {
    for kind in ["dev", "build"] {
        let mut doctored = metadata();
        let packages = doctored["packages"].as_array_mut().unwrap();
        let arena = packages.iter_mut().find(|package| package["name"] == "largesse-arena").unwrap();
        let edge = serde_json::json!({ "name": "largesse-report", "kind": kind });
        arena["dependencies"].as_array_mut().unwrap().push(edge);
        assert_eq!(broken(&doctored), ["largesse-arena uses largesse-report"], "{kind}");
    }
}

#[test]
fn unused_edge_of_the_table_is_reported() {
    let mut doctored = metadata();
    let packages = doctored["packages"].as_array_mut().unwrap();
    let arena = packages.iter_mut().find(|package| package["name"] == "largesse-arena").unwrap();
    arena["dependencies"].as_array_mut().unwrap().retain(|edge| edge["name"] != "largesse-pages");
    assert_eq!(broken(&doctored), ["largesse-arena does not use largesse-pages"]);
}

#[test]
fn crate_that_is_not_in_the_table_is_reported() {
    let mut doctored = metadata();
    let new = serde_json::json!({ "name": "largesse-new", "dependencies": [] });
    doctored["packages"].as_array_mut().unwrap().push(new);
    assert_eq!(broken(&doctored), ["largesse-new is not in the table"]);
}

#[test]
fn crates_that_serve_malloc_cannot_call_it() {
    for folder in WITHOUT_ALLOC {
        let root = workspace().join(folder).join("src/lib.rs");
        let text = std::fs::read_to_string(&root).unwrap();
        assert!(text.lines().any(|line| line.trim() == "#![no_std]"), "{folder} is not no_std");
        for file in sources(&workspace().join(folder).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(allocating_lines(&file, &text), Vec::<String>::new());
        }
    }
}

#[test]
fn crate_that_allocates_is_reported() {
    let used = "#![no_std]\nextern crate alloc;\nfn f() {}\n";
    assert_eq!(allocating_lines(Path::new("lib.rs"), used).len(), 1);
    let tested = "#![no_std]\n#[cfg(test)]\nmod tests {\n    extern crate std;\n}\n";
    assert_eq!(allocating_lines(Path::new("lib.rs"), tested).len(), 0);
}

#[test]
fn pure_crates_have_no_unsafe_code_clock_or_io() {
    for folder in PURE {
        let source = workspace().join(folder).join("src");
        let root = std::fs::read_to_string(source.join("lib.rs")).unwrap();
        assert!(root.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]"), "{folder} may be unsafe");
        for file in sources(&source) {
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(impure_lines(&file, &text), Vec::<String>::new());
        }
    }
}

#[test]
fn clock_or_io_in_a_pure_crate_is_reported() {
    for line in ["Instant::now()", "std::fs::read(x)", "use std::io;", "thread::sleep(d)", "libc::getpid()"] {
        assert_eq!(impure_lines(Path::new("lib.rs"), line).len(), 1, "{line}");
    }
    let tested = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { Instant::now(); }\n}\n";
    assert_eq!(impure_lines(Path::new("lib.rs"), tested).len(), 0);
}

/// A thread that is started in another way would take signals of the program, and would be counted as one of the
/// program's.
#[test]
fn library_starts_only_service_threads() {
    let metadata = metadata();
    let mut library = BTreeSet::from(["largesse-preload"]);
    for (name, uses) in LAYERS.iter().rev() {
        if library.contains(name) {
            library.extend(*uses);
        }
    }
    let mut starters = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        if !library.contains(package["name"].as_str().unwrap()) {
            continue;
        }
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        for file in sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            if product(&file, &text).any(starts_a_thread) {
                let file = file.strip_prefix(workspace().canonicalize().unwrap()).unwrap();
                starters.insert(file.to_str().unwrap().to_owned());
            }
        }
    }
    assert_eq!(starters, STARTERS.iter().map(|&file| file.to_owned()).collect());
}

fn starts_a_thread(line: &str) -> bool {
    ["thread::spawn", "thread::Builder", "pthread_create("].iter().any(|word| line.contains(word))
}

#[test]
fn only_fronts_read_the_environment() {
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let folder = manifest.parent().unwrap();
        let below = folder.strip_prefix(workspace().canonicalize().unwrap()).unwrap_or(folder);
        if FRONTS.iter().any(|front| below.starts_with(front)) {
            continue;
        }
        for file in sources(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for word in ["env::var", "getenv", "environ"] {
                assert!(!product(&file, &text).any(|line| line.contains(word)), "{}: {word}", file.display());
            }
        }
    }
}

/// Returns a message for each difference between the crates' dependencies and the table [`LAYERS`].
fn broken(metadata: &Value) -> Vec<String> {
    let table: BTreeMap<&str, BTreeSet<&str>> =
        LAYERS.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(allowed) = table.get(name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        let edges = package["dependencies"].as_array().unwrap().iter();
        let names = edges.map(|edge| edge["name"].as_str().unwrap());
        let used: BTreeSet<&str> = names.filter(|used| used.starts_with("largesse-")).collect();
        wrong.extend(used.difference(allowed).map(|used| format!("{name} uses {used}")));
        wrong.extend(allowed.difference(&used).map(|unused| format!("{name} does not use {unused}")));
    }
    wrong
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the lines of a file that make an allocator available. Tests, and the module that replaces the kernel under
/// Miri, are left out.
fn allocating_lines(file: &Path, text: &str) -> Vec<String> {
    let lines = product(file, text).filter(|line| {
        let line = line.trim();
        line.starts_with("extern crate alloc") || line.starts_with("extern crate std")
    });
    lines.map(|line| format!("{}: {line}", file.display())).collect()
}

/// Returns the lines of a file that read a clock or anything else outside the process. Tests are left out.
fn impure_lines(file: &Path, text: &str) -> Vec<String> {
    const WORDS: &[&str] = &["::now()", "std::fs", "std::io", "std::net", "std::process", "thread::", "libc"];
    let lines = product(file, text).filter(|line| WORDS.iter().any(|word| line.contains(word)));
    lines.map(|line| format!("{}: {line}", file.display())).collect()
}

/// Returns the lines of a file before its tests, or none if the file is compiled for tests or for Miri only.
fn product<'a>(file: &Path, text: &'a str) -> impl Iterator<Item = &'a str> {
    let name = file.file_name().unwrap_or_default();
    let whole = name != "tests.rs" && name != "miri.rs";
    let is_test = |line: &&str| line.trim().starts_with("#[cfg(") && line.contains("test");
    let is_comment = |line: &&str| line.trim().starts_with("//");
    text.lines().take_while(move |line| whole && !is_test(line)).filter(move |line| !is_comment(line))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
