//! Runs random programs on the heap and on a simple model of it, and compares the two.

use super::{Make, NIL, Tiny, number, object, set_slot, slot, value, word};
use largesse_gc::{Mutator, Word};
use std::collections::{BTreeSet, HashMap};

/// Number of variables of a program. They are on the root stack.
pub(crate) const VARIABLES: usize = 6;

/// A step of a program. Variables and slots are taken modulo their number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramStep {
    Pair { to: u8, first: u8, rest: u8 },
    Weak { to: u8, first: u8, rest: u8 },
    Vector { to: u8, len: u16 },
    Number { to: u8, value: u8 },
    Set { object: u8, slot: u16, from: u8 },
    Get { to: u8, object: u8, slot: u16 },
    Finalize { object: u8 },
    Poll,
    Collect,
}

impl ProgramStep {
    /// Decodes a step from any six bytes.
    pub(crate) fn decode([kind, a, b, c, low, high]: [u8; 6]) -> ProgramStep {
        let slot = u16::from_le_bytes([low, high]);
        match kind % 32 {
            0..8 => ProgramStep::Pair { to: a, first: b, rest: c },
            8..10 => ProgramStep::Weak { to: a, first: b, rest: c },
            10..13 => ProgramStep::Vector { to: a, len: slot % 100 },
            13 => ProgramStep::Vector { to: a, len: slot % 9000 },
            14..16 => ProgramStep::Number { to: a, value: b },
            16..22 => ProgramStep::Set { object: a, slot, from: b },
            22..28 => ProgramStep::Get { to: a, object: b, slot },
            28 => ProgramStep::Finalize { object: a },
            29..31 => ProgramStep::Poll,
            _ => ProgramStep::Collect,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Nil,
    Number(u64),
    Object(usize),
}

#[derive(Debug)]
struct Object {
    weak: bool,
    /// Number of words of the object before its slots.
    header: usize,
    slots: Vec<Value>,
}

/// Runs a program both in the model and in a thread whose heap must agree with it.
pub(crate) struct ModelMachine<'a> {
    thread: &'a mut Mutator<Tiny>,
    /// Index in the root stack of the first variable.
    base: usize,
    variables: [Value; VARIABLES],
    objects: Vec<Object>,
    finalizable: BTreeSet<usize>,
    /// Index of each object that is registered for finalization, by its address.
    addresses: HashMap<u64, usize>,
    /// Whether no other thread runs a program on the same heap.
    alone: bool,
}

impl<'a> ModelMachine<'a> {
    pub(crate) fn new(thread: &'a mut Mutator<Tiny>, alone: bool) -> ModelMachine<'a> {
        let base = thread.roots().len();
        for _ in 0..VARIABLES {
            thread.push(NIL).unwrap();
        }
        ModelMachine {
            thread,
            base,
            variables: [Value::Nil; VARIABLES],
            objects: Vec::new(),
            finalizable: BTreeSet::new(),
            addresses: HashMap::new(),
            alone,
        }
    }

    pub(crate) fn run(&mut self, steps: &[ProgramStep]) {
        for &step in steps {
            self.step(step);
        }
        self.collect();
        self.compare();
    }

    fn step(&mut self, step: ProgramStep) {
        match step {
            ProgramStep::Pair { to, first, rest } | ProgramStep::Weak { to, first, rest } => {
                let (first, rest) = (variable(first), variable(rest));
                let weak = matches!(step, ProgramStep::Weak { .. });
                let (a, b) = (self.root(first), self.root(rest));
                let made = if weak { self.thread.weak(a, b) } else { self.thread.pair(a, b) };
                let slots = vec![self.variables[first], self.variables[rest]];
                self.made(to, made, Object { weak, header: 0, slots });
            }
            ProgramStep::Vector { to, len } => {
                let len = usize::from(len);
                let made = self.thread.vector(len).unwrap();
                self.made(to, made, Object { weak: false, header: 1, slots: vec![Value::Nil; len] });
            }
            ProgramStep::Number { to, value } => {
                self.assign(to, number(value.into()), Value::Number(value.into()));
            }
            ProgramStep::Set { object, slot, from } => {
                let Some((id, index)) = self.place(object, slot) else { return };
                let at = self.root(variable(object));
                set_slot(at, index + self.objects[id].header, self.root(variable(from)));
                self.objects[id].slots[index] = self.variables[variable(from)];
            }
            ProgramStep::Get { to, object, slot: index } => {
                let Some((id, index)) = self.place(object, index) else { return };
                let got = slot(self.root(variable(object)), index + self.objects[id].header);
                let want = self.expect_slot(id, index, got);
                self.assign(to, got, want);
            }
            ProgramStep::Finalize { object: which } => {
                let Value::Object(id) = self.variables[variable(which)] else { return };
                // Otherwise another thread would finalize the object, which would keep those that it refers to alive.
                if self.alone && self.finalizable.insert(id) {
                    let at = self.root(variable(which));
                    self.addresses.insert(at.0, id);
                    self.thread.finalize_later(object(at));
                }
            }
            ProgramStep::Poll => _ = self.thread.poll(),
            ProgramStep::Collect => {
                self.collect();
                self.compare();
            }
        }
    }

    /// Returns the index of the object in a variable and the index of one of its slots, or `None` if it has no slots.
    fn place(&self, which: u8, slot: u16) -> Option<(usize, usize)> {
        let Value::Object(id) = self.variables[variable(which)] else { return None };
        let slots = self.objects[id].slots.len();
        (slots > 0).then(|| (id, usize::from(slot) % slots))
    }

    fn root(&self, variable: usize) -> Word {
        self.thread.roots()[self.base + variable]
    }

    fn assign(&mut self, to: u8, word: Word, value: Value) {
        self.thread.roots_mut()[self.base + variable(to)] = word;
        self.variables[variable(to)] = value;
    }

    fn made(&mut self, to: u8, word: Word, object: Object) {
        self.objects.push(object);
        self.assign(to, word, Value::Object(self.objects.len() - 1));
    }

    /// Returns the value that the model expects in a slot in which the heap has `got`: nil is right in a weak slot
    /// whose object died.
    fn expect_slot(&mut self, id: usize, index: usize, got: Word) -> Value {
        let known = self.objects[id].slots[index];
        if let Value::Object(target) = known
            && self.objects[id].weak
            && got == NIL
        {
            assert!(!self.reachable().contains(&target), "a weak slot lost an object that is alive");
            self.objects[id].slots[index] = Value::Nil;
        }
        self.objects[id].slots[index]
    }

    fn reachable(&self) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut stack = self.variables.to_vec();
        while let Some(value) = stack.pop() {
            let Value::Object(id) = value else { continue };
            if seen.insert(id) && !self.objects[id].weak {
                stack.extend(&self.objects[id].slots);
            }
        }
        seen
    }

    fn collect(&mut self) {
        let mut finalized = BTreeSet::new();
        loop {
            self.thread.collect();
            let before = finalized.len();
            while let Some(object) = self.thread.next_finalizable() {
                let id = self.addresses.remove(&word(object).0);
                assert!(finalized.insert(id.expect("registered for finalization")), "finalized twice");
            }
            // Finalizable objects may have kept others alive.
            if finalized.len() == before {
                break;
            }
        }
        let reachable = self.reachable();
        let gone: BTreeSet<usize> = self.finalizable.difference(&reachable).copied().collect();
        assert_eq!(finalized, gone, "finalized objects, and unreachable ones");
        self.finalizable.retain(|id| reachable.contains(id));
        for object in self.objects.iter_mut().filter(|object| object.weak) {
            for slot in &mut object.slots {
                if matches!(*slot, Value::Object(id) if !reachable.contains(&id)) {
                    *slot = Value::Nil;
                }
            }
        }
    }

    /// Compares all objects of the heap that variables reach with those of the model.
    fn compare(&mut self) {
        let mut known: HashMap<usize, Word> = HashMap::new();
        let mut stack: Vec<(Word, Value)> =
            (0..VARIABLES).map(|which| (self.root(which), self.variables[which])).collect();
        while let Some((got, want)) = stack.pop() {
            match want {
                Value::Nil => assert_eq!(got, NIL),
                Value::Number(number) => assert_eq!(value(got), number),
                Value::Object(id) => {
                    if let Some(&before) = known.get(&id) {
                        assert_eq!(got, before, "object {id} is in two places");
                        continue;
                    }
                    known.insert(id, got);
                    for index in 0..self.objects[id].slots.len() {
                        let there = slot(got, index + self.objects[id].header);
                        let want = self.expect_slot(id, index, there);
                        stack.push((there, want));
                    }
                }
            }
        }
        let places: BTreeSet<u64> = known.values().map(|word| word.0).collect();
        assert_eq!(places.len(), known.len(), "two objects in one place");
    }
}

fn variable(which: u8) -> usize {
    usize::from(which) % VARIABLES
}
