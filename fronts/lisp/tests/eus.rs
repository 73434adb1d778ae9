//! Our answers agree with EusLisp's for the forms in `*/cases`, recorded by `record.sh` in `*/answers`. Numbers may
//! differ in their last digits.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use std::path::{Path, PathBuf};

const STACK: usize = 6 << 20;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Runs `f` with a new Lisp that has loaded `show`, on a separate machine stack.
fn with_lisp(settings: GcSettings, f: impl FnOnce(&mut Interpreter) + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let run = move || {
            let range = Reserved::new(1 << 30, SPAN).expect("address space");
            let memory = NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false);
            let mut lisp =
                Interpreter::start(settings, memory, STACK - (64 << 10), Vec::new()).expect("a Lisp");
            lisp.load(tests().join("show.l").to_str().unwrap()).unwrap();
            f(&mut lisp);
        };
        let done = thread.spawn_scoped(scope, run).unwrap().join();
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Returns the forms of a chapter with EusLisp's answers.
fn chapter(name: &str) -> Vec<(String, String)> {
    let read = |part: &str, ending: &str| {
        let (folder, file) = name.split_once('/').unwrap();
        let path = tests().join(folder).join(part).join(file).with_extension(ending);
        std::fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
    };
    let (cases, answers) = (read("cases", "l"), read("answers", "txt"));
    let answers: Vec<&str> = answers.lines().skip(1).collect();
    let cases: Vec<&str> = cases.lines().collect();
    assert_eq!(cases.len(), answers.len(), "{name}: record.sh has not been run");
    cases.into_iter().map(str::to_owned).zip(answers.into_iter().map(str::to_owned)).collect()
}

/// Returns the text that `show` writes for a form's value, or `error` for a form that ends in an error.
fn answer(lisp: &mut Interpreter, form: &str) -> String {
    match lisp.evaluate(&format!("(with-output-to-string (s) (show s {form}))")) {
        Ok(text) => text.map(|text| unquoted(&text)).unwrap_or_default(),
        Err(Ended::Error(_)) => "error".to_owned(),
        Err(other) => panic!("{form}: {other:?}"),
    }
}

/// Returns the text of a printed string.
fn unquoted(printed: &str) -> String {
    let inner = printed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(printed);
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    text
}

/// Compares word by word; words with a decimal point as numbers.
fn agree(ours: &str, theirs: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        spaced.split_whitespace().map(str::to_owned).collect()
    };
    let same = |a: &String, b: &String| {
        let number = |word: &String| word.contains('.').then(|| word.parse::<f64>().ok()).flatten();
        match (number(a), number(b)) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
            _ => a == b,
        }
    };
    let (ours, theirs) = (words(ours), words(theirs));
    ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| same(a, b))
}

#[track_caller]
fn check(name: &str) {
    with_lisp(GcSettings::default(), |lisp| {
        let mut failures = String::new();
        for (form, theirs) in chapter(name) {
            let ours = answer(lisp, &form);
            if !agree(&ours, &theirs) {
                failures += &format!("{form}\n  ours   {ours}\n  theirs {theirs}\n");
                if let Err(Ended::Error(text)) = lisp.evaluate(&form) {
                    failures += &format!("  {text}\n");
                }
            }
        }
        assert!(failures.is_empty(), "{failures}");
    });
}

macro_rules! chapters {
    ($($test:ident: $name:literal,)*) => { $( #[test] fn $test() { check($name); } )* };
}

chapters! {
    vectors_match_euslisp: "geometry/vectors",
    matrices_match_euslisp: "geometry/matrices",
    coordinates_match_euslisp: "geometry/coordinates",
    bodies_match_euslisp: "geometry/bodies",
    interference_match_euslisp: "geometry/pairs",
    composition_match_euslisp: "geometry/composition",
    flat_bodies_and_frames_match_euslisp: "geometry/flat",
    viewing_matches_euslisp: "geometry/viewing",
    decompositions_and_solids_match_jskeus: "geometry/irteus",
    lists_match_euslisp: "chapters/lists",
    sequences_match_euslisp: "chapters/sequences",
    numbers_match_euslisp: "chapters/numbers",
    strings_match_euslisp: "chapters/strings",
    control_match_euslisp: "chapters/control",
    objects_match_euslisp: "chapters/objects",
    hash_tables_match_euslisp: "chapters/hash",
}

/// Evaluates the picked forms of a chapter in `threads` threads in parallel, and compares each answer.
#[track_caller]
fn check_together(name: &str, threads: usize, pick: fn(usize) -> bool, settings: GcSettings) {
    with_lisp(settings, |lisp| {
        let (definitions, questions): (Vec<_>, Vec<_>) =
            chapter(name).into_iter().partition(|(form, _)| form.starts_with("(def"));
        for (form, _) in definitions {
            lisp.evaluate(&form).unwrap();
        }
        let picked = questions.into_iter().enumerate().filter(|(index, _)| pick(*index));
        let questions: Vec<_> = picked.map(|(_, question)| question).collect();
        let forms: Vec<&str> = questions.iter().map(|(form, _)| form.as_str()).collect();
        let work = format!(
            "(sys:make-thread {threads})
             (setq *forms* '({}))
             (defun answer (form) (with-output-to-string (s) (show s (handler-case (eval form) (error () 'error)))))
             (defun answers () (mapcar #'answer *forms*))
             (let (workers all)
               (dotimes (i {threads}) (push (sys:thread #'answers) workers))
               (dolist (w workers) (push (sys:wait-thread w) all))
               (setq *all* all))",
            forms.join("\n")
        );
        lisp.evaluate(&work).unwrap_or_else(|ended| panic!("{ended:?}"));
        for thread in 0..threads {
            for (index, (form, theirs)) in questions.iter().enumerate() {
                let ours = lisp.evaluate(&format!("(nth {index} (nth {thread} *all*))")).unwrap();
                let ours = unquoted(&ours.unwrap());
                assert!(agree(&ours, theirs), "thread {thread}: {form}\n  ours   {ours}\n  theirs {theirs}");
            }
        }
    });
}

/// Settings that collect at every n-th allocation, verify the heap and overwrite dead objects.
fn stress(every: u64) -> GcSettings {
    GcSettings { stress: every, verify: true, poison: true, ..GcSettings::default() }
}

#[test]
fn two_threads_share_bodies() {
    check_together("geometry/pairs", 2, |_| true, GcSettings::default());
}

#[test]
fn eight_threads_agree() {
    for name in ["geometry/pairs", "geometry/matrices", "geometry/vectors"] {
        check_together(name, 8, |_| true, GcSettings::default());
    }
}

#[test]
fn threads_agree_under_stress() {
    check_together("geometry/composition", 1, |index| index < 20 && index % 6 == 0, stress(199));
    check_together("geometry/pairs", 2, |index| index % 12 == 0, stress(211));
}
