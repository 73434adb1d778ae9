//! Tests that the shipped definitions are complete, and that their programs exist and have their tests.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reads the definition `name` of a bench.
fn read(name: &str) -> Table {
    toml::from_str(&read_to_string(root().join("definitions").join(name)).expect(name)).expect(name)
}

fn tables<'v>(of: &'v Table, key: &str) -> Vec<&'v Table> {
    let all = of.get(key).and_then(Value::as_array).expect(key);
    all.iter().map(|one| one.as_table().expect(key)).collect()
}

fn text<'v>(of: &'v Table, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the elements of the array of texts under `key`, or none if there is no such array.
fn words<'v>(of: &'v Table, key: &str) -> Vec<&'v str> {
    let all = of.get(key).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn definitions_are_read() {
    for comparison in ["r", "far", "gc"] {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_largesse-bench"));
        let done = bench.args([comparison, "--list", "--programs"]).arg(root()).output().unwrap();
        assert!(done.status.success() && done.stdout.len() > 100, "{comparison}: {done:?}");
    }
}

#[test]
fn benches_have_programs_and_answers() {
    let settings = read("settings.toml");
    let role = |name: &&str| tables(&settings, "setting").into_iter().find(|it| text(it, "name") == *name);
    let role = |name: &&str| text(role(name).expect("a setting"), "role");
    let mut counted = 0;
    for file in ["far.toml", "fifteen.toml", "memory.toml", "micro.toml", "slides.toml"] {
        for bench in tables(&read(file), "bench") {
            counted += 1;
            let name = text(bench, "name");
            let mut roles: Vec<_> = words(bench, "settings").iter().map(role).collect();
            roles.retain(|role| *role != "peer");
            assert_eq!(roles, ["baseline", "subject"], "{name}");
            let program = match words(bench, "args").first() {
                Some(name) if text(bench, "program") == "c/far/run.sh" => format!("c/far/{name}.c"),
                _ => text(bench, "program").to_owned(),
            };
            let source = read_to_string(root().join("programs").join(&program)).expect(&program);
            assert!(root().join("programs").join(text(bench, "program")).is_file(), "{name}");
            assert!(!words(bench, "interpreter").is_empty(), "{name}");
            let tests = tables(bench, "test");
            let measured = if program.ends_with(".R") { tests.len() } else { 0 };
            assert_eq!(source.matches("\nmeasure(\"").count(), measured, "{name}");
            for test in &tests {
                let calls = ["\nmeasure(\"", "result(\"", "\"test\": \""];
                let calls = calls.map(|call| format!("{call}{}\"", text(test, "name")));
                assert!(calls.iter().any(|call| source.contains(call)), "{name}/{}", text(test, "name"));
                let answer = test.get("expect").and_then(|expect| expect.get("1")?.as_array());
                assert!(bench.contains_key("far") || answer.is_some_and(|it| !it.is_empty()), "{name}");
            }
            let tolerances = tests.iter().chain([&bench]).filter_map(|it| it.get("tolerance")?.as_float());
            assert!(tolerances.into_iter().all(|tolerance| tolerance < 0.01), "{name}");
            let Some(far) = bench.get("far").and_then(Value::as_table) else { continue };
            let sizes = words(far, "page_sizes");
            assert!(sizes.contains(&"auto") && tests.len() == 1, "{name}");
            assert_eq!(sizes.contains(&"marked"), !words(far, "marked").is_empty(), "{name}");
            let Some(published) = far.get("published").and_then(Value::as_table) else { continue };
            let shares = published["local_percent"].as_array().unwrap().len();
            for row in tables(published, "row") {
                assert_eq!(row["seconds"].as_array().unwrap().len(), shares, "{name}");
                assert!(sizes.contains(&text(row, "page_size")), "{name}");
            }
        }
    }
    let files = std::fs::read_dir(root().join("definitions")).unwrap().count();
    assert_eq!((counted, files), (BENCHES, 7), "a new definition is not tested");
}

/// Number of benches in all definitions.
const BENCHES: usize = 17;

#[test]
fn gc_programs_and_systems_exist() {
    let gc = read("gc.toml");
    let (programs, systems) = (tables(&gc, "program"), tables(&gc, "system"));
    assert!(systems.iter().any(|system| text(system, "name") == text(&gc, "reference")));
    let driver = read_to_string(root().join("programs/lisp/threads.l")).unwrap();
    for program in &programs {
        assert!(driver.contains(&format!("\"{}\"", text(program, "name"))), "{program}");
        assert!(program["times"].as_integer() > Some(0) && program["answer"] != Value::from(0), "{program}");
    }
    for system in systems {
        let name = text(system, "name");
        assert_eq!(system.contains_key("build"), !text(system, "needs").is_empty(), "{name}");
        let known = |name: &&str| programs.iter().any(|program| text(program, "name") == *name);
        assert!(words(system, "programs").iter().all(known), "{name}");
        let lines = system.get("build").and_then(Value::as_array).into_iter().flatten();
        let words = lines.filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        for (_, file) in words.filter_map(|word| word.split_once("{programs}/")) {
            let file = root().join("programs").join(file.split('"').next().unwrap_or(file));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
