//! Tests Lisp programs whose live data do not fit into the local memory that their heap is given.

use largesse_tests::{Exit, Ran, Run, Stage, User, agents, anonymous_kib, signal, users, wait_for};
use std::path::Path;
use std::time::Duration;

/// Returns a run of `largesse lisp --stats` with these options and this program.
fn lisp<'a>(stage: &'a Stage, user: User, options: &[&str], program: &Path) -> Run<'a> {
    let mut words = vec![stage.command().into_os_string(), "lisp".into(), "--stats".into()];
    words.extend(options.iter().map(Into::into));
    words.push(program.into());
    Run::new(stage, &words).as_user(user)
}

/// Returns the number that follows `words` in the output of `--stats`. A size is converted to KiB.
#[track_caller]
fn told(ran: &Ran, words: &str) -> f64 {
    let rest = ran.stderr.split_once(words).unwrap_or_else(|| panic!("no {words}: {ran:#?}")).1;
    let mut rest = rest.split_whitespace();
    let number: f64 = rest.next().and_then(|it| it.parse().ok()).unwrap();
    number * if rest.next() == Some("MiB") { 1024.0 } else { 1.0 }
}

#[test]
fn answers_are_the_same_with_most_of_the_heap_in_the_store() {
    let stage = Stage::with_companion("largesse-lisp");
    let program = stage.program("rows.l");
    let near = lisp(&stage, User::Current, &[], &program).finish().succeeded();
    assert_eq!(near.stdout.lines().count(), 3, "{near:#?}");
    assert!(!near.stderr.contains("Far memory"), "{near:#?}");
    let store = stage.store();
    for user in users() {
        for options in [&["--far", &store, "--page-size=64K"][..], &["--far=memory:"], &[]] {
            // The program's live data are about 19 MiB.
            let options = [&["--local=4M"], options].concat();
            let far = lisp(&stage, user, &options, &program).finish().succeeded();
            assert_eq!(far.stdout, near.stdout, "{user:?} {options:?}");
            assert!(told(&far, "resident ") <= 4.0 * 1024.0, "{far:#?}");
            assert!(told(&far, "in the store ") >= 3.0 * 4.0 * 1024.0, "{far:#?}");
            assert!(told(&far, "pages from the store ") > 2000.0, "{far:#?}");
            assert!(told(&far, "over the limit ") < 1.0, "{far:#?}");
        }
    }
}

#[test]
fn collections_read_little_of_the_store() {
    let stage = Stage::with_companion("largesse-lisp");
    let program = stage.program("kept.l");
    let near = lisp(&stage, User::Current, &[], &program).finish().succeeded();
    assert!(!near.stderr.contains("full collections"), "{near:#?}");
    let store = stage.store();
    // A quarter of the live data is local.
    for page_size in [&[][..], &["--page-size=4K"], &["--page-size=256K"]] {
        let far = [&["--local=2M", "--far", &store], page_size].concat();
        let far = lisp(&stage, User::Current, &far, &program).finish().succeeded();
        assert_eq!(far.stdout, near.stdout, "{far:#?}");
        assert!(told(&far, "% of the pages in the store, ") >= 10.0, "{far:#?}");
        assert!(told(&far, " partial ones ") <= 20.0, "{far:#?}");
    }
}

#[test]
fn local_percentage_keeps_a_share_of_the_heap_resident() {
    let stage = Stage::with_companion("largesse-lisp");
    let program = stage.program("rows.l");
    let far = lisp(&stage, User::Current, &["--local=25%", "--far=memory:"], &program).finish().succeeded();
    let (all, here, may) = (told(&far, "in all "), told(&far, "resident "), told(&far, "local limit "));
    assert!(here <= may && (may / all - 0.25).abs() < 0.01, "{far:#?}");
    assert!(told(&far, "pages from the store ") > 2000.0, "{far:#?}");
}

#[test]
fn lost_agent_ends_the_program() {
    let stage = Stage::with_companion("largesse-lisp");
    let program = stage.program("rows.l");
    let text = "(while t (work 0) (work 1))";
    let run = lisp(&stage, User::Current, &["--local=6M", "--far=memory:", "-e", text], &program);
    let child = run.start();
    let agent =
        wait_for("the program has an agent and fills its local memory", Duration::from_secs(60), || {
            let [agent] = agents("-", child.id())[..] else { return None };
            (anonymous_kib(child.id()) > 4 << 10).then_some(agent)
        });
    signal(agent, libc::SIGKILL);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(74), "{message}");
    assert!(message.contains("far memory is lost, and the program with it"), "{message}");
}

#[test]
fn refused_options_are_explained() {
    let stage = Stage::with_companion("largesse-lisp");
    let program = stage.program("rows.l");
    for (options, status, words) in [
        (&["--far=memory:"][..], 2, "nothing without --local"),
        (&["--page-size=64K"], 2, "nothing without --local"),
        (&["--local=much"], 2, "512M or 4G"),
        (&["--local=1000"], 2, "the least is 1M"),
        (&["--local=64M", "--far=disk"], 2, "file:PATH"),
        (&["--local=64M", "--pages=4k"], 2, "cannot be used with"),
        (&["--local=64M", "--far=file:/dev/shm/pages"], 1, "file:/dev/shm/pages"),
        (&["--local=64M", "--far=redis://127.0.0.1:1"], 125, "127.0.0.1:1"),
    ] {
        let ran = lisp(&stage, User::Current, options, &program).finish();
        assert_eq!(ran.exit, Exit::Code(status), "{options:?} {ran:#?}");
        assert!(format!("{}{}", ran.hints, ran.stderr).contains(words), "{options:?} {ran:#?}");
        assert_eq!(ran.stdout, "", "{ran:#?}");
    }
}
