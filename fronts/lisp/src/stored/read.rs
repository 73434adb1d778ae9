//! Decodes bytes to values.

use super::tag::{TAGS, Tag};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use crate::world::class;

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// The objects of the current entry, by number. All are on the root stack.
    known: Vec<Value>,
}

/// The reason why a value could not be read.
enum Failed {
    /// The bytes are not the output of a `Writer`.
    Damaged,
    /// A Lisp error occurred.
    Exit(Exit),
}

impl From<Exit> for Failed {
    fn from(exit: Exit) -> Failed {
        Failed::Exit(exit)
    }
}

type Read<T> = Result<T, Failed>;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, known: Vec::new() }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next entry. The caller must store it in a root, as the reader no longer keeps it alive.
    pub(super) fn entry(&mut self, cx: &mut Context, path: &str) -> Answer {
        let mark = cx.mark();
        self.known.clear();
        let entry = self.value(cx);
        cx.release(mark);
        match entry {
            Ok(entry) => Ok(entry),
            Err(Failed::Exit(exit)) => Err(exit),
            Err(Failed::Damaged) => {
                cx.fail(ErrorClass::Io, format!("{path} is damaged: compile-file it again"))
            }
        }
    }

    fn value(&mut self, cx: &mut Context) -> Read<Value> {
        cx.check_stack()?;
        let mut first = Value::NIL;
        let mut last = Value::NIL;
        loop {
            let tag = self.tag()?;
            let next = if tag == Tag::Cons {
                let cons = cx.cons(Value::NIL, Value::NIL)?;
                self.meet(cx, cons)?;
                cons
            } else {
                self.atom(cx, tag)?
            };
            if last.is_nil() {
                first = next;
            } else {
                last.set(1, next);
            }
            if tag != Tag::Cons {
                return Ok(first);
            }
            let car = self.value(cx)?;
            next.set(0, car);
            last = next;
        }
    }

    fn atom(&mut self, cx: &mut Context, tag: Tag) -> Read<Value> {
        let value = match tag {
            Tag::Nil => return Ok(Value::NIL),
            Tag::Fixnum => {
                let number = self.word()?.cast_signed();
                return Value::fits_fixnum(number).then(|| Value::fixnum(number)).ok_or(Failed::Damaged);
            }
            Tag::Float => {
                let number = cx.float(f64::from_bits(self.word()?))?;
                if number.word_float().is_some() {
                    return Ok(number);
                }
                number
            }
            Tag::Again => {
                let number = usize::try_from(self.number()?).map_err(|_| Failed::Damaged)?;
                return self.known.get(number).copied().ok_or(Failed::Damaged);
            }
            Tag::Cons => return Err(Failed::Damaged),
            Tag::Symbol => self.symbol(cx)?,
            Tag::Uninterned => {
                let name = self.text()?;
                let name = cx.string_from(name)?;
                cx.new_symbol(name)?
            }
            Tag::String => {
                let text = self.text()?;
                cx.string_from(text)?
            }
            Tag::Floats => {
                let words = self.words()?;
                let vector = cx.new_floats(words.len())?;
                vector.floats_mut().iter_mut().zip(words).for_each(|(to, word)| *to = f64::from_bits(word));
                vector
            }
            Tag::Integers => {
                let words = self.words()?;
                let vector = cx.new_integers(words.len())?;
                vector.integers_mut().iter_mut().zip(words).for_each(|(to, word)| *to = word.cast_signed());
                vector
            }
            Tag::Bits => self.bits(cx)?,
            Tag::Vector | Tag::Array => return self.slots(cx, tag),
            Tag::Bignum => {
                let text = std::str::from_utf8(self.text()?).map_err(|_| Failed::Damaged)?;
                let digits = text.strip_prefix('-').unwrap_or(text);
                cx.integer_from_text(digits, digits.len() < text.len(), 10)?
            }
            Tag::Ratio => return self.ratio(cx),
        };
        self.meet(cx, value)?;
        Ok(value)
    }

    /// Reads a vector or array. Its number precedes those of its elements.
    fn slots(&mut self, cx: &mut Context, tag: Tag) -> Read<Value> {
        let length = self.length(1)?;
        let vector = if tag == Tag::Vector {
            cx.new_vector(length)?
        } else {
            let class = cx.world.class_object(class::ARRAY);
            if length != class.slot(class::slot::VARIABLES).length() {
                return Err(Failed::Damaged);
            }
            cx.new_slots(ObjectKind::Array, class::ARRAY, length)?
        };
        self.meet(cx, vector)?;
        for index in 0..length {
            let element = self.value(cx)?;
            vector.set_slot(index, element);
        }
        Ok(vector)
    }

    fn ratio(&mut self, cx: &mut Context) -> Read<Value> {
        let number = self.known.len();
        self.meet(cx, Value::NIL)?;
        let (top, bottom) = (self.value(cx)?, self.value(cx)?);
        let ratio = cx.ratio(top, bottom)?;
        cx.push(ratio)?;
        self.known[number] = ratio;
        Ok(ratio)
    }

    fn bits(&mut self, cx: &mut Context) -> Read<Value> {
        let length = usize::try_from(self.number()?).map_err(|_| Failed::Damaged)?;
        if length.div_ceil(8) > self.bytes.len() {
            return Err(Failed::Damaged);
        }
        let vector = cx.new_bits(length)?;
        for at in 0..length.div_ceil(64) {
            vector.set(1 + at, Value(self.word()?));
        }
        Ok(vector)
    }

    fn symbol(&mut self, cx: &mut Context) -> Read<Value> {
        let package = String::from_utf8_lossy(self.text()?).into_owned();
        let name = String::from_utf8_lossy(self.text()?).into_owned();
        match cx.package_named(&package) {
            Some(package) => Ok(cx.intern_in(&package, &name, false)?),
            None => Ok(cx.fail(ErrorClass::Reader, format!("there is no package {package}"))?),
        }
    }

    fn meet(&mut self, cx: &mut Context, value: Value) -> Read<()> {
        cx.push(value)?;
        self.known.push(value);
        Ok(())
    }

    fn byte(&mut self) -> Read<u8> {
        let (&first, rest) = self.bytes.split_first().ok_or(Failed::Damaged)?;
        self.bytes = rest;
        Ok(first)
    }

    fn tag(&mut self) -> Read<Tag> {
        TAGS.get(usize::from(self.byte()?)).copied().ok_or(Failed::Damaged)
    }

    fn word(&mut self) -> Read<u64> {
        let (first, rest) = self.bytes.split_first_chunk().ok_or(Failed::Damaged)?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*first))
    }

    fn number(&mut self) -> Read<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Failed::Damaged)
    }

    /// Reads a number of elements of at least `each` bytes, and checks that the input is long enough.
    fn length(&mut self, each: usize) -> Read<usize> {
        let length = usize::try_from(self.number()?).map_err(|_| Failed::Damaged)?;
        if length > self.bytes.len() / each { Err(Failed::Damaged) } else { Ok(length) }
    }

    fn words(&mut self) -> Read<Vec<u64>> {
        let length = self.length(8)?;
        (0..length).map(|_| self.word()).collect()
    }

    fn text(&mut self) -> Read<&'a [u8]> {
        let length = self.length(1)?;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(text)
    }
}
