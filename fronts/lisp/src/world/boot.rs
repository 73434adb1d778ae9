//! Starts a Lisp on an empty heap, with its builtins and its library.

use super::{LispWorld, Names, Tables, class, package};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit, slot};
use crate::heap::Lisp;
use crate::value::{Value, flag, symbol};
use largesse_gc::Heap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

impl LispWorld {
    /// Creates an empty world.
    pub(crate) fn new(heap: Heap<Lisp>, tables: Arc<Tables>, arguments: Vec<String>) -> LispWorld {
        LispWorld {
            heap,
            tables,
            names: Names::unset(),
            interrupts: AtomicU32::new(0),
            signals: super::PendingSignals::default(),
            collections_told: AtomicU64::new(0),
            signals_handled: AtomicU64::new(0),
            warm: super::library::WarmLibrary::default(),
            method_epoch: AtomicU64::new(1),
            caches_methods: AtomicBool::new(true),
            bindings: Mutex::default(),
            methods: Mutex::default(),
            gensyms: AtomicU64::new(0),
            pool: crate::threads::ThreadPool::default(),
            first_thread: crate::threads::kernel_thread(),
            compiler: Mutex::default(),
            warm_compiler: Mutex::default(),
            bridges: Mutex::default(),
            started: std::time::Instant::now(),
            arguments,
            backing_report: std::sync::OnceLock::new(),
        }
    }
}

impl Context {
    /// Creates packages, classes and the symbols known to the runtime: the first half of the start.
    pub(crate) fn found_world(&mut self) -> Result<Names, Exit> {
        for (name, nicknames) in package::FIRST {
            let names = std::iter::once(name).chain(nicknames.iter().copied()).map(str::to_owned).collect();
            let uses = if self.packages().is_empty() || name == "KEYWORD" {
                Vec::new()
            } else {
                vec![self.package_numbered(package::LISP)]
            };
            self.make_package(names, &uses)?;
        }
        let user = self.package_numbered(package::USER);
        user.use_package(&self.package_numbered(package::GEOMETRY));
        let lisp = self.package_numbered(package::LISP);
        let name = self.string("NIL")?;
        let nil = self.new_symbol(name)?;
        self.world.tables.pin(nil);
        nil.set(symbol::VALUE, Value::NIL);
        nil.set(symbol::PACKAGE, lisp.object);
        nil.add_flag(flag::CONSTANT);
        lisp.import("NIL", Value::NIL, true);
        self.first_classes()?;
        let keywords = self.package_numbered(package::KEYWORD);
        let mut names = Names::find(|name| match name.strip_prefix(':') {
            Some(name) => self.intern_in(&keywords, name, true),
            None => self.installed_name(name),
        })?;
        for symbol in names.symbols() {
            self.world.tables.pin(symbol);
        }
        names.nil = nil;
        names.spare_error =
            self.spare_error(ErrorClass::Memory, &" ".repeat(crate::signal::SPARE_MESSAGE))?;
        names.spare_message = names.spare_error.slot(slot::MESSAGE);
        self.world.tables.pin(names.spare_message);
        names.spare_overflow = self.spare_error(ErrorClass::Stack, "stack overflow")?;
        Ok(names)
    }

    /// Creates an error in advance.
    fn spare_error(&mut self, class: ErrorClass, message: &str) -> Answer {
        let error = self.new_instance(self.world.class_object(class::ERRORS + class as u16))?;
        self.world.tables.pin(error);
        let text = self.string(message)?;
        error.set_slot(slot::CODE, Value::fixnum(class.code()));
        error.set_slot(slot::MESSAGE, text);
        Ok(error)
    }

    /// Sets flags of known symbols, variables, builtins and the Lisp library: the second half of the start.
    pub(crate) fn furnish_world(&mut self) -> Result<(), Exit> {
        let names = self.world.names;
        names.t.set(symbol::VALUE, names.t);
        names.t.add_flag(flag::CONSTANT);
        for keyword in [names.optional, names.rest, names.key, names.aux, names.body, names.allow_other_keys]
        {
            keyword.add_flag(flag::LAMBDA_KEYWORD);
        }
        let user = self.package_numbered(package::USER).object;
        self.define_special(names.package, user);
        for variable in [
            names.error_handler,
            names.gc_hook,
            names.evalhook,
            names.modules,
            names.print_circle,
            names.print_length,
            names.print_level,
            names.debug,
            names.loading,
            names.readtable,
            names.signal_handlers,
        ] {
            self.define_special(variable, Value::NIL);
        }
        let ten = Value::fixnum(10);
        self.define_special(names.read_base, ten);
        self.define_special(names.print_base, ten);
        self.define_special(names.print_case, names.downcase);
        self.define_special(names.compile_after, Value::fixnum(super::library::MUCH));
        crate::eval::special::install(self)?;
        crate::builtins::install(self)?;
        crate::library::load(self)?;
        self.note_library(true);
        Ok(())
    }
}
