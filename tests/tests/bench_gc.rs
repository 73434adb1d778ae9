//! Tests `largesse bench gc`: it checks answers before it reports times, gains, shares and a picture, and it explains
//! missing programs and mistyped options.

use largesse_tests::{Exit, Ran, Run, Stage, has_program, skipped, workspace};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Returns a stage with everything that `largesse bench gc` starts.
fn stage() -> Stage {
    let stage = Stage::with_companion("largesse-bench");
    stage.add_companion("largesse-lisp");
    stage
}

/// Options for the smallest measurement whose times still differ from zero.
const QUICK: [&str; 7] = ["--json", "--runs", "1", "--scale", "0.02", "--touch", "0"];

fn bench(stage: &Stage, programs: &Path, words: &[&str]) -> Ran {
    let command = [stage.command().into_os_string(), "bench".into()];
    let words = words.iter().map(|word| (*word).into());
    Run::new(stage, &command.into_iter().chain(words).collect::<Vec<_>>())
        .arg("--programs")
        .arg(programs)
        .finish()
}

fn quick(stage: &Stage, words: &[&str]) -> Ran {
    bench(stage, &workspace().join("benches"), &[&["gc"], &QUICK[..], words].concat())
}

/// Returns the JSON objects that the bench printed whose `kind` is this one.
fn of_kind(ran: &Ran, kind: &str) -> Vec<Value> {
    let lines = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    lines.filter(|value| value["kind"] == kind).collect()
}

#[test]
fn collections_have_pauses() {
    let stage = stage();
    // As often as the bench repeats the program on a slow machine, it may end before its first collection.
    let folder = stage.scratch().join("small heap");
    let (definitions, usual) = (folder.join("definitions"), workspace().join("benches"));
    std::fs::create_dir_all(&definitions).unwrap();
    std::os::unix::fs::symlink(usual.join("programs"), folder.join("programs")).unwrap();
    let lines = std::fs::read_to_string(usual.join("definitions/gc.toml")).unwrap();
    let small = lines.replace(
        r#"run = ["{largesse}", "lisp", "--sync", "safepoint","#,
        r#"run = ["env", "TIMES=10000", "{largesse}", "lisp", "--heap", "32M", "--sync", "safepoint","#,
    );
    assert_ne!(lines, small, "no line to change");
    std::fs::write(definitions.join("gc.toml"), small).unwrap();

    let words =
        [&["gc"], &QUICK[..], &["--only", "safepoint", "--only", "copy-seq", "--threads", "1"]].concat();
    let ran = bench(&stage, &folder, &words).succeeded();
    let test = &of_kind(&ran, "run")[0]["tests"][0];
    assert!(test["gc_seconds"].as_f64() > Some(0.0), "{ran:#?}");
    assert!(test["pauses"].as_array().is_some_and(|pauses| !pauses.is_empty()), "{ran:#?}");
}

#[test]
fn every_program_has_gains_shares_and_curves() {
    let stage = stage();
    let picture = stage.scratch().join("gc.svg").display().to_string();
    let ran = quick(&stage, &["--only", "safepoint", "--threads", "2", "--svg", &picture]).succeeded();
    let cells = of_kind(&ran, "cell");
    assert_eq!(cells.len(), 9 * 2, "{ran:#?}");
    let number = |cell: &Value, name: &str| cell[name].as_f64().unwrap_or(f64::NAN);
    for cell in &cells {
        let of = |name: &str| number(cell, name);
        assert_eq!((&cell["answer"], &cell["setting"]), (&"right".into(), &"safepoint".into()));
        assert!(of("median") > 0.0 && of("runs") == 1.0 && (0.0..=1.0).contains(&of("gc_share")), "{cell}");
        let alone = cells.iter().find(|other| other["bench"] == cell["bench"] && other["threads"] == 1);
        let gain = of("threads") * number(alone.unwrap(), "median") / of("median");
        assert!((of("gain") / gain - 1.0).abs() < 1e-9, "{gain}: {cell}");
    }
    let answers: Vec<_> =
        of_kind(&ran, "run").iter().map(|run| run["tests"][0]["answer"].as_array().unwrap().len()).collect();
    assert_eq!(answers, [1, 2].repeat(9), "one answer a thread");
    assert!(of_kind(&ran, "run").iter().all(|run| run["tests"][0]["marked"].is_array()), "{ran:#?}");

    let drawn = std::fs::read_to_string(&picture).unwrap();
    for cell in &cells {
        assert!(drawn.lines().any(|line| line == cell["bench"].as_str().unwrap()), "{cell}\n{drawn}");
    }
    // A curve is a line with a circle at each of its points, in two panels.
    assert_eq!(drawn.matches("<circle").count(), 2 * 9 * 2);
    let parse = "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])";
    if has_program("python3", &["-c", "pass"]) {
        assert!(has_program("python3", &["-c", parse, &picture]), "{drawn}");
    }
}

#[test]
fn all_installed_languages_give_the_same_answer() {
    let stage = stage();
    let mut words = vec!["--only", "copy-seq", "--threads", "2"];
    for system in ["mutex", "rwlock", "safepoint", "euslisp", "boehm", "sbcl"] {
        words.extend(["--only", system]);
    }
    let ran = quick(&stage, &words).succeeded();
    let absent = of_kind(&ran, "absent");
    for system in &absent {
        assert!(system["why"].as_str().unwrap().contains("apt-get install"), "{system}");
        skipped(&format!("{}: {}", system["setting"], system["why"]));
    }
    let cells = of_kind(&ran, "cell");
    assert_eq!(cells.len(), (6 - absent.len()) * 2, "{ran:#?}");
    assert!(cells.iter().all(|cell| cell["answer"] == "right" && cell["about"] != ""), "{ran:#?}");
}

#[test]
fn wrong_answer_is_a_failure_without_a_time() {
    let stage = stage();
    let benches = stage.path("benches");
    let copied = Command::new("cp").arg("-r").arg(workspace().join("benches")).arg(&benches).status();
    assert!(copied.unwrap().success());
    let definition = benches.join("definitions/gc.toml");
    let text = std::fs::read_to_string(&definition).unwrap();
    assert!(text.contains("answer = 75025\n"));
    std::fs::write(&definition, text.replace("answer = 75025\n", "answer = 75026\n")).unwrap();
    let words = ["--only", "compfib", "--only", "intfib", "--only", "mutex", "--threads", "1"];
    let ran = bench(&stage, &benches, &[&["gc"], &QUICK[..], &words].concat());
    assert_eq!(ran.exit, Exit::Code(1), "{ran:#?}");
    let of = |kind| of_kind(&ran, kind);
    let found: Vec<_> = of("cell").iter().map(|it| format!("{} {}", it["bench"], it["answer"])).collect();
    assert_eq!(found, [r#""compfib" "wrong""#, r#""intfib" "right""#]);
    assert_eq!(of("run").iter().filter(|run| run["bench"] == "compfib").count(), 0);
    let trouble = of("trouble")[0]["text"].as_str().unwrap().to_owned();
    assert!(trouble.contains("[75025.0], expected [75026.0]"), "{trouble}");
}

#[test]
fn missing_program_is_reported_with_its_install_command() {
    let stage = stage();
    let words = ["bench", "gc", "--only", "go", "--programs"].map(Into::into);
    let ran = Run::new(&stage, &[&[stage.command().into_os_string()], &words[..]].concat())
        .arg(workspace().join("benches"))
        .variable("PATH", "/nowhere")
        .finish();
    assert_eq!(ran.exit, Exit::Code(1), "{ran:#?}");
    assert!(ran.stdout.contains("go: not installed: apt-get install golang"), "{ran:#?}");
}

#[test]
fn mistyped_option_lists_the_choices() {
    let stage = stage();
    let check = |words: &[&str], part: &str| {
        let ran = bench(&stage, &workspace().join("benches"), words);
        assert_eq!(ran.exit, Exit::Code(2), "{words:?} {ran:#?}");
        assert!(ran.stderr.contains(part), "{words:?}: {ran:#?}");
    };
    check(&["gc", "--threads", "1,x"], "1,2,4");
    check(&["gc", "--threads", "65"], "from 1 to 64");
    check(&["gc", "--only", "jvm"], "make-cube, mutex, rwlock, safepoint, euslisp, boehm, sbcl, go");
    check(&["gc", "--times", "3"], "`largesse bench r` and `largesse bench far` only");
    check(&["far", "--threads", "2"], "--threads is an option of `largesse bench gc` only");
    check(&["kernels", "--cap", "2"], "`largesse bench far` and `largesse bench gc` only");
    check(&["r", "--svg", "x"], "`largesse bench gc` and `largesse bench kernels` only");
}
