//! Random programs, run on the heap and on a naive model of it at once.

use super::{Make, NIL, Tiny, number, object, set_slot, slot, value, word};
use largesse_gc::{Mutator, Word};
use std::collections::{BTreeSet, HashMap};

/// Variables of a program: they lie on the root stack.
pub(crate) const VARIABLES: usize = 6;

/// What a program does next; variables and slots are taken modulo what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
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

impl Step {
    /// Any six bytes are a step.
    pub(crate) fn decode([kind, a, b, c, low, high]: [u8; 6]) -> Step {
        let slot = u16::from_le_bytes([low, high]);
        match kind % 32 {
            0..8 => Step::Pair { to: a, first: b, rest: c },
            8..10 => Step::Weak { to: a, first: b, rest: c },
            10..13 => Step::Vector { to: a, len: slot % 100 },
            13 => Step::Vector { to: a, len: slot % 9000 },
            14..16 => Step::Number { to: a, value: b },
            16..22 => Step::Set { object: a, slot, from: b },
            22..28 => Step::Get { to: a, object: b, slot },
            28 => Step::Finalize { object: a },
            29..31 => Step::Poll,
            _ => Step::Collect,
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
    /// Slots start at this word.
    header: usize,
    slots: Vec<Value>,
}

/// The model, and the thread whose heap has to agree with it.
pub(crate) struct Machine<'a> {
    thread: &'a mut Mutator<Tiny>,
    /// First root that is a variable.
    base: usize,
    variables: [Value; VARIABLES],
    objects: Vec<Object>,
    finalizable: BTreeSet<usize>,
    /// Where objects that were to be finalized are.
    addresses: HashMap<u64, usize>,
    /// Other threads run programs on the same heap.
    alone: bool,
}

impl<'a> Machine<'a> {
    pub(crate) fn new(thread: &'a mut Mutator<Tiny>, alone: bool) -> Machine<'a> {
        let base = thread.roots().len();
        for _ in 0..VARIABLES {
            thread.push(NIL).unwrap();
        }
        Machine {
            thread,
            base,
            variables: [Value::Nil; VARIABLES],
            objects: Vec::new(),
            finalizable: BTreeSet::new(),
            addresses: HashMap::new(),
            alone,
        }
    }

    pub(crate) fn run(&mut self, steps: &[Step]) {
        for &step in steps {
            self.step(step);
        }
        self.collect();
        self.compare();
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Pair { to, first, rest } | Step::Weak { to, first, rest } => {
                let (first, rest) = (variable(first), variable(rest));
                let weak = matches!(step, Step::Weak { .. });
                let (a, b) = (self.root(first), self.root(rest));
                let made = if weak { self.thread.weak(a, b) } else { self.thread.pair(a, b) };
                let slots = vec![self.variables[first], self.variables[rest]];
                self.made(to, made, Object { weak, header: 0, slots });
            }
            Step::Vector { to, len } => {
                let len = usize::from(len);
                let made = self.thread.vector(len).unwrap();
                self.made(to, made, Object { weak: false, header: 1, slots: vec![Value::Nil; len] });
            }
            Step::Number { to, value } => {
                self.assign(to, number(value.into()), Value::Number(value.into()));
            }
            Step::Set { object, slot, from } => {
                let Some((id, index)) = self.place(object, slot) else { return };
                let at = self.root(variable(object));
                set_slot(at, index + self.objects[id].header, self.root(variable(from)));
                self.objects[id].slots[index] = self.variables[variable(from)];
            }
            Step::Get { to, object, slot: index } => {
                let Some((id, index)) = self.place(object, index) else { return };
                let got = slot(self.root(variable(object)), index + self.objects[id].header);
                let want = self.expect_slot(id, index, got);
                self.assign(to, got, want);
            }
            Step::Finalize { object: which } => {
                let Value::Object(id) = self.variables[variable(which)] else { return };
                // Others would take it from us, and keep what it leads to.
                if self.alone && self.finalizable.insert(id) {
                    let at = self.root(variable(which));
                    self.addresses.insert(at.0, id);
                    self.thread.finalize_later(object(at));
                }
            }
            Step::Poll => _ = self.thread.poll(),
            Step::Collect => {
                self.collect();
                self.compare();
            }
        }
    }

    /// The slot of an object in a variable, if there is one.
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

    /// What the model has in a slot in which the heap has `got`: a weak one may have been cleared.
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
                assert!(finalized.insert(id.expect("never asked to finalize it")), "finalized twice");
            }
            // What was to be finalized may have kept more of it alive.
            if finalized.len() == before {
                break;
            }
        }
        let reachable = self.reachable();
        let gone: BTreeSet<usize> = self.finalizable.difference(&reachable).copied().collect();
        assert_eq!(finalized, gone, "objects that were finalized, and that should be");
        self.finalizable.retain(|id| reachable.contains(id));
        for object in self.objects.iter_mut().filter(|object| object.weak) {
            for slot in &mut object.slots {
                if matches!(*slot, Value::Object(id) if !reachable.contains(&id)) {
                    *slot = Value::Nil;
                }
            }
        }
    }

    /// The heap has what the model has, as far as variables lead.
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
