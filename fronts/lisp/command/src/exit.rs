//! Turns the end of a program into a message on standard error and an exit status.

use largesse_lisp::Ended;
use largesse_terminal::say::{complain, complain_lines};

/// Prints why the program cannot run, and returns the exit status of an error.
pub(super) fn failed(cause: &str) -> i32 {
    complain!("largesse lisp: {cause}");
    1
}

/// Prints the report of an error, and returns the exit status for the way in which the program ended.
pub(super) fn status(ended: Ended) -> i32 {
    match ended {
        Ended::Quit(status) => status,
        Ended::Interrupted => 130,
        Ended::Incomplete => failed("the text ends inside of a form"),
        Ended::Error(report) => {
            complain_lines!("{report}");
            1
        }
    }
}
