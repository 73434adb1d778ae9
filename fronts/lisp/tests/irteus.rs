//! Tests features that jskeus' files need and that have no recorded answers: the order of loading, collisions of
//! meshes, refusals of windows, and streams that have input.

use largesse_arena::NearMemory;
use largesse_gc::GcSettings;
use largesse_lisp::{Ended, Interpreter};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};

const STACK: usize = 8 << 20;

fn with_lisp(act: impl FnOnce(&mut Interpreter) + Send) {
    std::thread::scope(|scope| {
        let run = || {
            let range = Reserved::new(64 * SPAN, SPAN).unwrap();
            let memory = NearMemory::new(range, PageKind::Small, Placement::FirstTouch, false);
            let settings = GcSettings::default();
            act(&mut Interpreter::start(settings, memory, STACK - (64 << 10), Vec::new()).unwrap());
        };
        std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).unwrap().join().unwrap();
    });
}

fn value(lisp: &mut Interpreter, text: &str) -> String {
    match lisp.evaluate(text) {
        Ok(shown) => shown.unwrap_or_default(),
        Err(ended) => panic!("{text}: {ended:?}"),
    }
}

fn error(lisp: &mut Interpreter, text: &str) -> String {
    match lisp.evaluate(text) {
        Err(Ended::Error(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn jskeus_files_load_in_order() {
    let folder = std::env::temp_dir().join(format!("largesse-irteus-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("irteus")).unwrap();
    with_lisp(|lisp| {
        value(lisp, "(defvar *order* nil)");
        let names = value(lisp, "(apply #'append (mapcar #'cdr largesse::irteus-files))");
        for name in names.trim_matches(['(', ')']).split_whitespace().map(|name| name.trim_matches('"')) {
            let text = format!("(push (list \"{name}\" (package-name *package*)) user::*order*)");
            std::fs::write(folder.join("irteus").join(format!("{name}.l")), text).unwrap();
        }
        value(lisp, &format!("(load-irteus \"{}\")", folder.display()));
        let order = value(lisp, "(reverse *order*)");
        assert!(order.starts_with(r#"(("irtmath" "USER") ("irtutil" "USER")"#), "{order}");
        assert!(order.ends_with(r#"("irtviewer" "GL"))"#), "{order}");
        assert_eq!(value(lisp, "(list (package-name *package*) (memq :irt '(:irt)))"), "(\"USER\" (:irt))");
    });
    std::fs::remove_dir_all(&folder).unwrap();
    with_lisp(|lisp| {
        let message = error(lisp, "(load-irteus \"/nowhere\")");
        assert!(message.contains("no folder irteus"), "{message}");
    });
}

/// Defines a mesh from the triangles of a cube, and its distance from a second one.
const MESHES: &str = "
(defun mesh (b)
  (let ((m (geo::pqpmakemodel)))
    (geo::pqpbeginmodel m)
    (dolist (f (send b :faces))
      (let ((v (send f :vertices)))
        (geo::pqpaddtri m (first v) (second v) (third v) 0)
        (geo::pqpaddtri m (first v) (third v) (fourth v) 1)))
    (geo::pqpendmodel m)
    m))
(setq *a* (mesh (make-cube 10 10 10)) *b* (mesh (make-cube 1 1 1)) *r* (unit-matrix 3))
(defun apart (at)
  (let ((p (float-vector 0 0 0)) (q (float-vector 0 0 0)))
    (list (geo::pqpdistance *r* #f(0 0 0) *a* *r* at *b* p q 2) (aref p 2) (aref q 2))))
(defun meet (at flag) (geo::pqpcollide *r* #f(0 0 0) *a* *r* at *b* flag))";

#[test]
fn meshes_measure_distance_and_collisions() {
    with_lisp(|lisp| {
        value(lisp, &format!("(progn {MESHES})"));
        assert_eq!(value(lisp, "(apart #f(0 0 8))"), "(2.5 5.0 7.5)");
        assert_eq!(value(lisp, "(car (apart #f(0 0 5)))"), "0.0");
        assert_eq!(value(lisp, "(list (meet #f(0 0 8) 2) (meet #f(0 0 5) 2))"), "(0 1)");
        assert_eq!(value(lisp, "(> (meet #f(0 0 5) 1) 1)"), "t");
        // Inside, the surfaces do not touch.
        assert_eq!(value(lisp, "(list (meet #f(0 0 0) 1) (car (apart #f(0 0 0))))"), "(0 4.5)");
        assert!(
            error(lisp, "(geo::pqpdistance *r* #f(0 0 0) 5 *r* #f(0 0 0) *b* #f(0 0 0) #f(0 0 0))")
                .contains("collision model")
        );
        assert!(error(lisp, "(geo::pqpendmodel (geo::pqpmakemodel))").contains("with triangles"));
        value(lisp, "(geo::pqpdeletemodel *b*)");
        assert!(error(lisp, "(meet #f(0 0 8) 2)").contains("collision model"));
    });
}

#[test]
fn models_outlive_collections() {
    with_lisp(|lisp| {
        value(lisp, &format!("(progn {MESHES})"));
        value(lisp, "(progn (dotimes (i 200) (geo::pqpmakemodel)) (sys:gc) (sys:gc))");
        assert_eq!(value(lisp, "(car (apart #f(0 0 8)))"), "2.5");
    });
}

#[test]
fn windows_and_images_are_refused() {
    with_lisp(|lisp| {
        let message = error(lisp, "(instance gl::glviewsurface :create :width 100)");
        assert!(message.contains("windows are not supported"), "{message}");
        let message = error(lisp, "(send (user::read-image-file \"a.png\") :width)");
        assert!(message.contains("images are not supported"), "{message}");
        assert_eq!(value(lisp, "(send (user::read-image-file \"a.png\") :name)"), "\"a.png\"");
        assert_eq!(
            value(lisp, "(send (instance gl::colormaterial :create :name :a) :diffuse)"),
            "#f(0.3 0.5 0.7 1.0)"
        );
        value(lisp, "(defforeign far-away nil \"far_away\" () :integer)");
        let message = error(lisp, "(far-away)");
        assert!(message.contains("far-away"), "{message}");
    });
}

#[test]
fn select_stream_returns_streams_with_input() {
    let path = std::env::temp_dir().join(format!("largesse-select-{}", std::process::id()));
    std::fs::write(&path, "text").unwrap();
    with_lisp(|lisp| {
        value(lisp, "(setq s (make-string-input-stream \"x\"))");
        value(lisp, &format!("(setq f (open \"{}\"))", path.display()));
        assert_eq!(value(lisp, "(equal (select-stream (list s f) 0) (list s f))"), "t");
        assert_eq!(value(lisp, "(select-stream nil 0.01)"), "nil");
        assert!(error(lisp, "(select-stream '(5) 0)").contains("stream"));
    });
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn setq_sets_slots() {
    with_lisp(|lisp| {
        value(lisp, "(progn (defclass pot :super object :slots (a b)) (setq p (instantiate pot)))");
        assert_eq!(value(lisp, "(progn (setq (p . a) 1 x 2 (p . b) 3) (list (p . a) x (p . b)))"), "(1 2 3)");
    });
}
