//! Runs the prompt, with history, completion, and forms over several lines.

use crate::exit::{failed, status};
use crate::interrupt;
use largesse_lisp::{Ended, Interpreter};
use largesse_terminal::name;
use largesse_terminal::say::{self, complain, complain_lines, counted};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Editor, Helper};
use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// Gives the line editor the Lisp's symbols, and whether a form is complete.
struct Symbols<'a>(&'a RefCell<&'a mut Interpreter>);

impl Helper for Symbols<'_> {}
impl Highlighter for Symbols<'_> {}

impl Hinter for Symbols<'_> {
    type Hint = String;
}

impl Validator for Symbols<'_> {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        // A pipe is read line by line and `talk` joins the lines: the editor would drop a form that the end of input
        // cuts.
        let incomplete =
            std::io::stdin().is_terminal() && self.0.borrow_mut().is_incomplete(context.input().as_bytes());
        Ok(if incomplete { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for Symbols<'_> {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.0.borrow().completions(&line[..position]))
    }
}

/// Reads, evaluates and prints until the end of input; returns the exit status.
pub(super) fn run(lisp: &mut Interpreter) -> i32 {
    let lisp = RefCell::new(lisp);
    let mut editor = match Editor::<Symbols<'_>, FileHistory>::new() {
        Ok(editor) => editor,
        Err(cause) => return failed(&format!("no prompt: {cause}")),
    };
    editor.set_helper(Some(Symbols(&lisp)));
    let history = history();
    if let Some(path) = &history {
        // There is no history at the first start.
        let _ = editor.load_history(path);
    }
    let status = talk(&mut editor, &lisp);
    if let Some(path) = &history
        && let Err(cause) = editor.save_history(path)
    {
        complain!("largesse lisp: the history was not saved to {}: {cause}", name(path));
    }
    status
}

/// Commands of the prompt: a word, and the function that is called with the quoted forms of the rest of the line.
const COMMANDS: [(&str, &str); 8] = [
    (":help", "largesse::help-command"),
    (":h", "largesse::help-command"),
    (":apropos", "apropos"),
    (":inspect", "largesse::inspect-command"),
    (":bt", "btrace"),
    (":btrace", "btrace"),
    (":reset", "reset"),
    (":quit", "exit"),
];

/// Returns the form for a line that is a command of the prompt.
fn command_form(line: &str) -> Option<String> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let (_, function) = COMMANDS.iter().find(|(name, _)| *name == word)?;
    Some(format!("(apply '{function} '({rest}))"))
}

fn talk(editor: &mut Editor<Symbols<'_>, FileHistory>, lisp: &RefCell<&mut Interpreter>) -> i32 {
    let mut rest = String::new();
    // A program from a pipe whose forms had errors ends with 1, although the later forms are evaluated.
    let from_pipe = !std::io::stdin().is_terminal();
    let mut failures = 0;
    loop {
        let package = lisp.borrow().package().to_lowercase();
        let own = lisp.borrow_mut().prompt_string();
        let prompt = if package == "user" { format!("{own}> ") } else { format!("{own}{package}> ") };
        match editor.readline(&prompt) {
            Ok(line) => {
                rest.push_str(&line);
                rest.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                rest.clear();
                continue;
            }
            Err(ReadlineError::Eof) if rest.trim().is_empty() => return i32::from(from_pipe && failures > 0),
            Err(ReadlineError::Eof) => return status(Ended::Incomplete),
            Err(cause) => return failed(&format!("no input: {cause}")),
        }
        let _ = editor.add_history_entry(rest.trim_end());
        let mut lisp = lisp.borrow_mut();
        lisp.note_line(rest.trim_end());
        if lisp.was_interrupted() {
            // The signal came while this thread was idle, but other threads may have stopped.
            lisp.resume();
        }
        let answer = match command_form(&rest) {
            Some(form) => lisp.evaluate(&form),
            None => lisp.evaluate(&rest),
        };
        if answer != Err(Ended::Incomplete) {
            rest.clear();
        }
        match answer {
            Ok(Some(value)) => say::raw(format_args!("{value}\n")),
            Ok(None) | Err(Ended::Incomplete) => {}
            Err(Ended::Error(report)) => {
                failures += 1;
                complain_lines!("{report}");
            }
            Err(Ended::Interrupted) => match lisp.resume() {
                0 => complain!("interrupted"),
                busy => complain!("interrupted; not yet stopped: {}", counted(busy as u64, "thread")),
            },
            Err(Ended::Quit(status)) => return status,
        }
        interrupt::taken();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the folder of such files is a setting of the user, not of ours"
)]
/// Returns the path of the history: `$XDG_STATE_HOME/largesse/lisp-history`, or below `~/.local/state`.
fn history() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    let directory = state.join("largesse");
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("lisp-history"))
}
