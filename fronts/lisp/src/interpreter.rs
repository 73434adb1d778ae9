//! Runs a Lisp: this is the public interface of the crate.

use crate::context::{Context, Fixed};
use crate::error::{Exit, slot};
use crate::heap::Lisp as Language;
use crate::reader::{Reader, Source};
use crate::value::{ObjectKind, Value};
use crate::world::{LispWorld, Tables, class};
use largesse_arena::Backing;
use largesse_gc::{GcSettings, Heap, Statistics};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Longest wait for interrupted workers to stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running Lisp, bound to the thread that started it.
#[derive(Debug)]
pub struct Interpreter {
    cx: Context,
}

/// Tells why a form or a file returned no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// An error ended the evaluation. The lines of the text are class and message, form, and backtrace.
    Error(String),
    /// The text ended inside a form, so that more input may complete it.
    Incomplete,
    /// Ctrl-C interrupted the evaluation.
    Interrupted,
    /// The program called `(exit status)`.
    Quit(i32),
}

/// Interrupts the evaluations of all threads of a Lisp.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<LispWorld>);

impl Interrupt {
    /// Stops every running evaluation at its next safepoint. When none runs it stops the next one, unless
    /// [`Interpreter::was_interrupted`] is called before.
    pub fn all_threads(&self) {
        // Release: pairs with the Acquire in `forget_interrupts`.
        self.0.interrupts.fetch_add(1, Ordering::Release);
        self.0.heap.call_attention();
    }
}

impl Interpreter {
    /// Starts a Lisp on a heap of its own, for the calling thread, whose machine stack has `stack` bytes.
    pub fn start(
        settings: GcSettings,
        backing: impl Backing + Send + 'static,
        stack: usize,
        arguments: Vec<String>,
    ) -> Result<Interpreter, String> {
        let tables = Arc::new(Tables::new());
        let heap = Heap::new(Language { tables: Arc::clone(&tables) }, settings, backing)
            .map_err(|cause| format!("cannot create the heap: {cause}"))?;
        let mutator = heap.register_thread().enter();
        let mut world = LispWorld::new(heap.clone(), tables, arguments);
        let mut first = Context::new(
            Arc::new(LispWorld::new(heap, Arc::clone(&world.tables), Vec::new())),
            mutator,
            stack,
        );
        let names = match first.found_world() {
            Ok(names) => names,
            Err(_) => return Err("the heap is too small to start".to_owned()),
        };
        world.names = names;
        let mut interpreter = Interpreter { cx: first.moved_to(Arc::new(world)) };
        match interpreter.cx.furnish_world() {
            Ok(()) => {
                let user = interpreter.cx.package_numbered(crate::world::USER).object;
                interpreter.cx.set_global(names.package, user);
                Ok(interpreter)
            }
            Err(exit) => Err(format!("the library did not load: {:?}", interpreter.ended(exit))),
        }
    }

    /// Returns a handle with which another thread or a signal handler stops evaluations.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        Interrupt(Arc::clone(&self.cx.world))
    }

    /// Returns whether an interrupt arrived since the last evaluation ended, and discards it.
    pub fn was_interrupted(&mut self) -> bool {
        self.cx.forget_interrupts()
    }

    /// Waits after an interrupt, at most one second, until the workers have stopped, and returns the stopped ones to
    /// the pool. Returns the number of workers that still run.
    pub fn resume(&mut self) -> usize {
        let world = Arc::clone(&self.cx.world);
        let began = Instant::now();
        while world.pool.busy() > 0 && began.elapsed() < PATIENCE {
            self.cx.blocked(|| std::thread::sleep(Duration::from_millis(1)));
        }
        world.pool.reclaim();
        world.pool.busy()
    }

    /// Evaluates a file.
    pub fn load(&mut self, path: &str) -> Result<(), Ended> {
        let saved = self.cx.save();
        self.cx.set_fixed(Fixed::Form, Value::NIL);
        let answer = self.cx.load_file(path);
        // The report needs a part of the root stack, which is full after an overflow.
        self.cx.restore(&saved);
        answer.map(|_| ()).map_err(|exit| self.ended(exit))
    }

    /// Evaluates every form of a text and returns the last value, printed.
    pub fn evaluate(&mut self, text: &str) -> Result<Option<String>, Ended> {
        let saved = self.cx.save();
        let mut reader = Reader::new(Source::text(text.as_bytes()));
        let answer = self.evaluate_all(&mut reader);
        let incomplete = reader.incomplete;
        // The report needs a part of the root stack, which is full after an overflow.
        self.cx.restore(&saved);
        self.cx.catches.clear();
        self.cx.stepping = false;
        match answer {
            Ok(shown) => Ok(shown),
            Err(_) if incomplete => Err(Ended::Incomplete),
            Err(exit) => Err(self.ended(exit)),
        }
    }

    fn evaluate_all(&mut self, reader: &mut Reader<'_>) -> Result<Option<String>, Exit> {
        let cx = &mut self.cx;
        let mut shown = None;
        loop {
            cx.set_fixed(Fixed::Form, Value::NIL);
            let form = reader.read(cx)?;
            if reader.take_extra().is_some() {
                let stream = cx.global_value(cx.world.names.error_output);
                cx.write_bytes(stream, b"a closing parenthesis that closes nothing\n")?;
            }
            let Some(form) = form else { return Ok(shown) };
            let mark = cx.mark();
            cx.push(form)?;
            let current = cx.installed_name("-")?;
            cx.set_global(current, form);
            let value = cx.eval(form)?;
            cx.push(value)?;
            cx.remember(form, value)?;
            shown = Some(cx.show(value)?);
            cx.release(mark);
        }
    }

    /// Returns whether a text of arbitrary bytes ends inside a form. Evaluates nothing but `#.` forms.
    pub fn is_incomplete(&mut self, text: &[u8]) -> bool {
        let saved = self.cx.save();
        let mut reader = Reader::new(Source::text(text));
        while let Ok(Some(_)) = reader.read(&mut self.cx) {}
        self.cx.restore(&saved);
        reader.incomplete
    }

    /// Calls the function in `sys:*exit-hook*` at the end of a program that did not call `exit`.
    pub fn finish(&mut self) -> Result<(), Ended> {
        let saved = self.cx.save();
        let done = self.cx.call_exit_hook();
        self.cx.restore(&saved);
        done.map_err(|exit| self.ended(exit))
    }

    /// Notes a line that was typed, for the program's `h` and `!`.
    pub fn note_line(&mut self, line: &str) {
        let saved = self.cx.save();
        let noted = self.cx.installed_name("LARGESSE:NOTE-LINE").and_then(|function| {
            let text = self.cx.string(line)?;
            self.cx.push(text)?;
            self.cx.apply(function, &[text])
        });
        self.cx.restore(&saved);
        // A heap without room for the line has none for its evaluation, which then reports it.
        let _ = noted;
    }

    /// Returns the text of `*prompt-string*`.
    pub fn prompt_string(&mut self) -> String {
        let value = self.cx.installed_name("*PROMPT-STRING*").map(|name| self.cx.global_value(name));
        match value {
            Ok(text) if text.is(ObjectKind::String) => text.text().into_owned(),
            _ => String::new(),
        }
    }

    /// Returns the name of the current package.
    #[must_use]
    pub fn package(&self) -> String {
        self.cx.current_package().name()
    }

    pub(crate) fn context(&self) -> &Context {
        &self.cx
    }

    /// Returns the heap's statistics.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.cx.world.heap.statistics()
    }

    /// Returns tables of the heap's statistics: live objects by size, cells delegated to threads, and how often threads
    /// visited the keep, the table of all blocks.
    #[must_use]
    pub fn memory_report(&self) -> String {
        self.cx.world.memory_report()
    }

    /// Appends the text of `backing` to all later memory reports. Only the first call has an effect.
    pub fn report_too(&mut self, backing_report: impl Fn() -> String + Send + Sync + 'static) {
        // A second call is ignored.
        let _ = self.cx.world.backing_report.set(Box::new(backing_report));
    }

    fn ended(&mut self, exit: Exit) -> Ended {
        match exit {
            Exit::Quit => {
                let status = self.cx.fixed(Fixed::Exit).as_fixnum().unwrap_or(0);
                Ended::Quit(i32::try_from(status & 255).unwrap_or(0))
            }
            Exit::Interrupt => Ended::Interrupted,
            Exit::Error => Ended::Error(self.cx.error_report()),
            Exit::Throw | Exit::Block | Exit::Go => {
                Ended::Error("control-error: the target of the exit does not exist".to_owned())
            }
        }
    }
}

impl Context {
    /// Sets the variables of the prompt: `+`, `++` and `+++` are the last forms, `*`, `**` and `***` their values, and
    /// `/` is a list of the last value.
    fn remember(&mut self, form: Value, value: Value) -> Result<(), Exit> {
        let values = self.list(&[value])?;
        self.push(values)?;
        for (names, new) in [(["+++", "++", "+"], form), (["***", "**", "*"], value)] {
            let [third, second, first] = names.map(|name| self.installed_name(name));
            let (third, second, first) = (third?, second?, first?);
            self.set_global(third, self.global_value(second));
            self.set_global(second, self.global_value(first));
            self.set_global(first, new);
        }
        let slash = self.installed_name("/")?;
        self.set_global(slash, values);
        Ok(())
    }

    /// Formats the last error: class, message, form and backtrace.
    pub(crate) fn error_report(&mut self) -> String {
        let error = self.fixed(Fixed::Error);
        let of = self.world.class_of(error);
        if of.is_nil() {
            return "error".to_owned();
        }
        let message = error.slot(slot::MESSAGE);
        let text = if message.is(ObjectKind::String) { message.text().into_owned() } else { String::new() };
        let mut report = format!("{}: {text}", self.show_name(of.slot(class::slot::NAME)));
        let form = error.slot(slot::FORM);
        if !form.is_nil() {
            report += &format!("\n  in {}", self.show_short(form));
        }
        if let Some(place) = self.failed_at.take() {
            report += &format!("\n  at {place}");
        }
        for (number, call) in self.backtrace().into_iter().enumerate() {
            report += &format!("\n  {number}: at {}", self.show_short(call));
        }
        report
    }

    /// Moves the context to the finished world.
    fn moved_to(mut self, world: Arc<LispWorld>) -> Context {
        self.world = world;
        self.set_fixed(Fixed::Thread, Value::NIL);
        self
    }
}
