//! Tests Ctrl-C in a Lisp program: every thread stops, and its cleanup forms run.

use largesse_tests::{Run, Stage};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;

const PROGRAM: &str = "(progn (sys:make-thread 2) (sys:thread #'(lambda () (while t)))
  (unwind-protect (progn (print 'begun) (finish-output *standard-output*) (while t)) (print 'cleaned)))";

#[test]
fn interrupt_stops_every_thread_and_runs_cleanup_forms() {
    let stage = Stage::with_companion("largesse-lisp");
    let words = [stage.command().into_os_string(), "lisp".into(), "-e".into(), PROGRAM.into()];
    let mut child = Run::new(&stage, &words).start();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("begun") {
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "{line}");
    }
    // SAFETY: the arguments are numbers, and the child has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) }, 0);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    assert_eq!(rest.trim(), "cleaned");
}
