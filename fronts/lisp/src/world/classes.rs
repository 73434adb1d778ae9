//! Creates the predefined classes, and defines new ones.

use super::class::{
    BIT_VECTOR, COMPILED_CODE, CONDITION, ERROR, FLOAT_VECTOR, INTEGER_VECTOR, METACLASS, MUTEX, OBJECT,
    PACKAGE, PROPERTIED, SEMAPHORE, STREAM, STRING, THREAD, VECTOR, VECTORCLASS, number, slot,
};
use super::package::LISP;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::threads::worker_slot;
use crate::value::{ObjectKind, Value};
use std::ops::Range;

/// A predefined class has a name, the numbers of its superclass and metaclass, and its own slots.
type First = (&'static str, u16, u16, &'static [&'static str]);

const FIRST: [First; 33] = [
    ("OBJECT", OBJECT, METACLASS, &[]),
    ("CONS", OBJECT, METACLASS, &["CAR", "CDR"]),
    ("PROPERTIED-OBJECT", OBJECT, METACLASS, &["PLIST"]),
    ("SYMBOL", PROPERTIED, METACLASS, &["VALUE", "FUNCTION", "PNAME", "HOMEPKG"]),
    ("PACKAGE", PROPERTIED, METACLASS, &["NUMBER", "NAME"]),
    ("METACLASS", PROPERTIED, METACLASS, &["NAME", "SUPER", "CIX", "VARS", "TYPES", "FORWARDS", "METHODS"]),
    ("VECTORCLASS", METACLASS, METACLASS, &["ELEMENT-TYPE", "SIZE"]),
    ("VECTOR", OBJECT, VECTORCLASS, &[]),
    ("STRING", VECTOR, VECTORCLASS, &[]),
    ("FLOAT-VECTOR", VECTOR, VECTORCLASS, &[]),
    ("INTEGER-VECTOR", VECTOR, VECTORCLASS, &[]),
    ("BIT-VECTOR", VECTOR, VECTORCLASS, &[]),
    (
        "ARRAY",
        PROPERTIED,
        METACLASS,
        &["ENTITY", "RANK", "FILL-POINTER", "OFFSET", "DIM0", "DIM1", "DIM2", "DIM3", "DIM4", "DIM5", "DIM6"],
    ),
    ("STREAM", PROPERTIED, METACLASS, &["DIRECTION", "BUFFER", "COUNT", "TAIL"]),
    ("FILE-STREAM", STREAM, METACLASS, &["FD", "FNAME"]),
    ("IO-STREAM", PROPERTIED, METACLASS, &["INSTREAM", "OUTSTREAM"]),
    ("STRING-STREAM", STREAM, METACLASS, &[]),
    ("HASH-TABLE", PROPERTIED, METACLASS, &["KEY", "VALUE", "SIZE", "COUNT", "FILLED", "TEST"]),
    ("COMPILED-CODE", OBJECT, METACLASS, &["CODE", "NAME"]),
    ("CLOSURE", COMPILED_CODE, METACLASS, &["ENVIRONMENT", "PARAMETERS", "BODY"]),
    ("EXTENDED-NUMBER", OBJECT, METACLASS, &[]),
    ("RATIO", 20, METACLASS, &["NUMERATOR", "DENOMINATOR"]),
    ("BIGNUM", 20, METACLASS, &["DIGITS"]),
    (
        "THREAD",
        PROPERTIED,
        METACLASS,
        &["ID", "FUNCTION", "ARGUMENTS", "RESULT", "BINDINGS", "STATE", "NATIVE"],
    ),
    ("MUTEX", PROPERTIED, METACLASS, &["NATIVE"]),
    ("CONDITION", PROPERTIED, METACLASS, &["NATIVE"]),
    ("SEMAPHORE", PROPERTIED, METACLASS, &["NATIVE"]),
    ("BROADCAST-STREAM", STREAM, METACLASS, &["DESTINATIONS"]),
    ("FOREIGN-CODE", COMPILED_CODE, METACLASS, &["ENTRY", "PARAMTYPES", "RESULTTYPE"]),
    ("FOREIGN-POD", PROPERTIED, METACLASS, &["FUNCTION", "PARAMTYPES", "RESULTTYPE", "PODCODE", "RETURNED"]),
    ("FOREIGN-STRING", OBJECT, METACLASS, &["ADDRESS", "SIZE"]),
    ("SOCKET-PORT", OBJECT, METACLASS, &["ID", "ADDRESS"]),
    ("ERROR", PROPERTIED, METACLASS, &["CODE", "MESSAGE", "FORM", "OBJECT"]),
];

impl Context {
    /// Creates the predefined classes. They refer to each other, so all objects are created first.
    pub(super) fn first_classes(&mut self) -> Result<(), Exit> {
        let lisp = self.package_numbered(LISP);
        let errors = ErrorClass::ALL.map(|class| (class.name(), ERROR, METACLASS, &[][..]));
        let table: Vec<First> = FIRST.into_iter().chain(errors).collect();
        for (number, (_, _, meta, _)) in table.iter().enumerate() {
            let slots = if *meta == VECTORCLASS { 10 } else { 8 };
            let class = self.new_slots(ObjectKind::Instance, *meta, slots)?;
            let given = self.world.tables.number_class();
            debug_assert_eq!(given.map(usize::from), Some(number));
            self.world.tables.set_class(number as u16, class);
        }
        for (number, (name, above, _, own)) in table.iter().enumerate() {
            let class = self.world.class_object(number as u16);
            let symbol = self.intern_in(&lisp, name, true)?;
            let above = if number == 0 { Value::NIL } else { self.world.class_object(*above) };
            let mut variables = Vec::new();
            if !above.is_nil() {
                let inherited = above.slot(slot::VARIABLES);
                variables.extend((0..inherited.length()).map(|index| inherited.slot(index)));
            }
            for variable in *own {
                variables.push(self.intern_in(&lisp, variable, false)?);
            }
            let variables = self.vector_from(&variables)?;
            class.set_slot(slot::NAME, symbol);
            class.set_slot(slot::SUPER, above);
            class.set_slot(slot::NUMBER, Value::fixnum(number as i64));
            class.set_slot(slot::VARIABLES, variables);
            self.define_special(symbol, class);
        }
        for (number, elements) in [
            (VECTOR, "T"),
            (STRING, "CHARACTER"),
            (FLOAT_VECTOR, "FLOAT"),
            (INTEGER_VECTOR, "INTEGER"),
            (BIT_VECTOR, "BIT"),
        ] {
            let keyword = self.keyword(elements)?;
            self.world.class_object(number).set_slot(slot::ELEMENTS, keyword);
        }
        Ok(())
    }

    /// Declares a symbol a special variable and sets its value.
    pub(crate) fn define_special(&mut self, symbol: Value, value: Value) {
        symbol.add_flag(crate::value::flag::SPECIAL);
        symbol.set(crate::value::symbol::VALUE, value);
    }

    /// Defines a class, or redefines the one of that name. The caller keeps all arguments alive.
    pub(crate) fn make_class(
        &mut self,
        name: Value,
        above: Value,
        meta: Value,
        own: &[Value],
        elements: Value,
    ) -> Answer {
        let mark = self.mark();
        let inherited = above.slot(slot::VARIABLES);
        let mut variables: Vec<Value> = (0..inherited.length()).map(|index| inherited.slot(index)).collect();
        variables.extend_from_slice(own);
        let variables = self.vector_from(&variables)?;
        self.push(variables)?;
        let old = self.global_value(name);
        let same_shape = old != Value::UNBOUND
            && self.is_class(old)
            && old.slot(slot::SUPER) == above
            && same_elements(old.slot(slot::VARIABLES), variables);
        let class = if same_shape { old } else { self.new_instance(meta)? };
        self.push(class)?;
        if !same_shape {
            let Some(number) = self.world.tables.number_class() else {
                return self.fail(ErrorClass::Memory, "no more class numbers: 65536 are in use".to_owned());
            };
            class.set_slot(slot::NAME, name);
            class.set_slot(slot::SUPER, above);
            class.set_slot(slot::NUMBER, Value::fixnum(i64::from(number)));
            class.set_slot(slot::VARIABLES, variables);
            class.set_slot(slot::TYPES, Value::NIL);
            if self.is_vector_class(above) && class.length() > slot::ELEMENTS {
                let inherited = above.slot(slot::ELEMENTS);
                class.set_slot(slot::ELEMENTS, if elements.is_nil() { inherited } else { elements });
            }
            self.world.tables.set_class(number, class);
        }
        self.define_special(name, class);
        self.methods_changed();
        self.release(mark);
        Ok(class)
    }

    pub(crate) fn is_class(&self, value: Value) -> bool {
        value.is(ObjectKind::Instance) && self.derives(self.world.class_of(value), METACLASS)
    }

    /// Returns whether only the runtime may assign a slot: it reads it unchecked.
    pub(crate) fn is_of_runtime(&self, object: Value, index: usize) -> bool {
        self.runtime_slots(self.world.class_of(object)).contains(&index)
    }

    /// Returns the indices of the slots that only the runtime assigns in a class's instances: those of class objects, the
    /// bindings of a thread, and the number by which a package, a thread or a lock refers to the runtime's part of it.
    pub(crate) fn runtime_slots(&self, class: Value) -> Range<usize> {
        let mut at = class;
        while !at.is_nil() {
            match number(at) {
                METACLASS => return 0..slot::ELEMENTS,
                PACKAGE | MUTEX | CONDITION | SEMAPHORE => return 1..2,
                THREAD => return worker_slot::BINDINGS..worker_slot::NATIVE + 1,
                _ => at = at.slot(slot::SUPER),
            }
        }
        0..0
    }

    /// Returns whether instances of the class are vectors.
    pub(crate) fn is_vector_class(&self, class: Value) -> bool {
        self.derives(class, VECTOR)
    }

    /// Returns whether a class is the numbered one or a subclass of it.
    pub(crate) fn derives(&self, class: Value, from: u16) -> bool {
        self.is_subclass(class, self.world.class_object(from))
    }

    pub(crate) fn is_subclass(&self, class: Value, from: Value) -> bool {
        let mut at = class;
        while !at.is_nil() {
            if at == from {
                return true;
            }
            at = at.slot(slot::SUPER);
        }
        false
    }

    /// Returns the index of a slot in a class's instances.
    pub(crate) fn slot_index(&self, class: Value, name: Value) -> Option<usize> {
        let variables = class.slot(slot::VARIABLES);
        (0..variables.length()).find(|&index| variables.slot(index) == name)
    }
}

fn same_elements(a: Value, b: Value) -> bool {
    a.length() == b.length() && (0..a.length()).all(|index| a.slot(index) == b.slot(index))
}
