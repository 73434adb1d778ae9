//! Every function takes the arguments that EusLisp's manual gives it: `lambda_lists.txt` is the table of them.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};

const STACK: usize = 16 << 20;
const TABLE: &str = include_str!("lambda_lists.txt");
/// Parts of messages about the number of arguments, or about a keyword.
const REFUSALS: [&str; 3] = ["too few arguments", "too many arguments", "keyword"];
/// Number of arguments that stands for any number.
const MANY: usize = 5;

/// Runs `f` with a new Lisp on a separate machine stack.
fn with_lisp(f: impl FnOnce(&mut Interpreter) + Send) {
    std::thread::scope(|scope| {
        let run = || {
            let range = Reserved::new(64 * SPAN, SPAN).unwrap();
            let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
            f(&mut Interpreter::start(GcSettings::default(), memory, STACK, Vec::new()).unwrap());
        };
        std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap().join().unwrap();
    });
}

/// Returns the first line of the error of a call of `name` if it refuses the number of arguments or a keyword.
fn refusal(lisp: &mut Interpreter, name: &str, form: &str) -> Option<String> {
    let Err(Ended::Error(report)) = lisp.evaluate(form) else { return None };
    let message = report.lines().next().unwrap_or("").to_owned();
    let refused =
        message.contains(&format!("{name} takes ")) || REFUSALS.iter().any(|part| message.contains(part));
    refused.then_some(message)
}

#[test]
fn builtins_take_the_arguments_of_the_manual() {
    // Some functions make files, whose names are nil here.
    std::env::set_current_dir(env!("CARGO_TARGET_TMPDIR")).unwrap();
    with_lisp(|lisp| {
        let (mut failures, mut tried) = (String::new(), 0);
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (facts, form) =
                line.split_once(" | ").map_or((line, None), |(facts, form)| (facts, Some(form)));
            let words: Vec<&str> = facts.split(' ').collect();
            let (name, least) = (words[0], words[1].parse::<usize>().unwrap());
            let most = words[2].parse().unwrap_or(MANY);
            if lisp.evaluate(&format!("(or (fboundp '{name}) (error \"\"))")).is_err() {
                continue;
            }
            tried += 1;
            let calls = (least..=most.max(least)).map(|count| format!("({name}{})", " nil".repeat(count)));
            let forms: Vec<String> = form.map_or_else(|| calls.collect(), |form| vec![form.to_owned()]);
            for form in forms {
                if let Some(message) = refusal(lisp, name, &form) {
                    failures += &format!("{form}: {message}\n");
                }
            }
        }
        assert!(tried > 500, "only {tried} of the functions are defined");
        assert!(failures.is_empty(), "{failures}");
    });
}
