//! Reads values from text.
//!
//! All values read are on the root stack. Input that ends inside a form is an error that sets
//! [`Reader::incomplete`], so that a prompt can ask for more.

mod backquote;
mod hash;
mod labels;
mod readtable;
mod source;
mod token;
mod user_macro;

pub(crate) use source::Source;
pub(crate) use token::looks_like_number;

use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::Value;
use labels::Labels;
use readtable::{Meaning, Readtable};

/// Reads successive values from a source.
pub(crate) struct Reader<'a> {
    source: Source<'a>,
    labels: Labels,
    table: Readtable,
    /// The character that ends the list of `read-delimited-list`.
    closer: Option<u8>,
    /// Whether the last error was an early end of the input.
    pub(crate) incomplete: bool,
    /// Position where the last outermost form begins, in a text.
    start: usize,
    /// Position after a closing parenthesis outside of all forms.
    extra: Option<usize>,
    /// Whether the end of the input inside a form is left to the caller, without an error of Lisp.
    lenient: bool,
}

/// Result of one step of the reader: a value, or a token that is none.
enum Item {
    Value(Value),
    /// A closing parenthesis was read.
    Close,
    /// A single dot was read.
    Dot,
    /// A comment was read, or a form that `#+` leaves out.
    Nothing,
    End,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: Source<'a>) -> Reader<'a> {
        Reader {
            source,
            labels: Labels::none(),
            table: Readtable::STANDARD,
            closer: None,
            incomplete: false,
            start: 0,
            extra: None,
            lenient: false,
        }
    }

    /// Returns a reader of a text. If that ends inside a form, `read` fails without an error of Lisp, and
    /// [`Reader::incomplete`] says so.
    pub(crate) fn lenient(text: &'a [u8]) -> Reader<'a> {
        Reader { lenient: true, ..Reader::new(Source::text(text)) }
    }

    /// Returns the next value, or none at the end. Restores the root stack.
    pub(crate) fn read(&mut self, cx: &mut Context) -> Result<Option<Value>, Exit> {
        let mark = cx.mark();
        self.begin(cx)?;
        loop {
            self.start = self.source.position();
            match self.item(cx)? {
                Item::Value(value) => {
                    cx.release(mark);
                    return Ok(Some(value));
                }
                Item::End => {
                    cx.release(mark);
                    return Ok(None);
                }
                Item::Nothing => {}
                // EusLisp ignores these.
                Item::Close => self.extra = Some(self.source.position()),
                Item::Dot => return cx.error(ErrorClass::Reader, "a dot outside of a list".to_owned()),
            }
        }
    }

    /// Returns the line in which the last outermost form of a text begins, counted from 1.
    pub(crate) fn form_line(&self) -> Option<usize> {
        self.source.line_at(self.start)
    }

    /// Returns the beginning of the text's last outermost form, up to the end of its line.
    pub(crate) fn form_beginning(&self) -> String {
        self.source.text_from(self.start)
    }

    /// Returns the line of a closing parenthesis that closed no form, once.
    pub(crate) fn take_extra(&mut self) -> Option<usize> {
        self.extra.take().and_then(|at| self.source.line_at(at - 1))
    }

    /// Forgets the last value's labels, and takes the current readtable.
    fn begin(&mut self, cx: &mut Context) -> Result<(), Exit> {
        self.incomplete = false;
        self.labels = Labels::new(cx)?;
        self.table = Readtable::current(cx)?;
        Ok(())
    }

    /// Returns whether a byte ends a token.
    fn delimits(&self, byte: u8) -> bool {
        self.closer == Some(byte) || self.table.delimits(byte)
    }

    fn early_end<T>(&mut self, cx: &mut Context) -> Result<T, Exit> {
        self.incomplete = true;
        if self.lenient {
            return Err(Exit::Error);
        }
        let begin = self.form_line().map_or(String::new(), |line| format!(" that begins in line {line}"));
        cx.error(ErrorClass::Reader, format!("the input ends inside a form{begin}"))
    }

    fn peek(&mut self, cx: &mut Context) -> Result<Option<u8>, Exit> {
        self.source.peek(cx)
    }

    fn next(&mut self, cx: &mut Context) -> Result<Option<u8>, Exit> {
        self.source.next(cx)
    }

    fn item(&mut self, cx: &mut Context) -> Result<Item, Exit> {
        cx.check_stack()?;
        let Some(read) = self.next(cx)? else { return Ok(Item::End) };
        let byte = match self.table.meaning(read) {
            Meaning::Standard(byte) => byte,
            Meaning::Function(function) => {
                return self.call_macro(cx, function, read, None).map(Item::Value);
            }
        };
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => Ok(Item::Nothing),
            b';' => {
                while !matches!(self.next(cx)?, None | Some(b'\n')) {}
                Ok(Item::Nothing)
            }
            b'(' => self.list(cx).map(Item::Value),
            b')' => Ok(Item::Close),
            b'\'' => self.wrapped(cx, cx.world.names.quote).map(Item::Value),
            b'`' => {
                let form = self.value(cx)?;
                cx.push(form)?;
                backquote::expand(cx, form).map(Item::Value)
            }
            b',' => {
                let splice = matches!(self.peek(cx)?, Some(b'@' | b'.'));
                if splice {
                    self.next(cx)?;
                }
                let names = &cx.world.names;
                let marker = if splice { names.splice } else { names.unquote };
                self.wrapped(cx, marker).map(Item::Value)
            }
            b'"' => self.string(cx).map(Item::Value),
            b'#' => self.hash(cx),
            b'%' if self.peek(cx)? == Some(b'(') => {
                self.call_macro(cx, cx.world.names.read_formula, read, None).map(Item::Value)
            }
            _ => self.token(cx, read),
        }
    }

    /// Returns the next value; its absence is an error.
    fn value(&mut self, cx: &mut Context) -> Answer {
        loop {
            match self.item(cx)? {
                Item::Value(value) => return Ok(value),
                Item::Nothing => {}
                Item::End => return self.early_end(cx),
                Item::Close => {
                    return cx
                        .fail(ErrorClass::Reader, "a closing parenthesis where a form should be".to_owned());
                }
                Item::Dot => return cx.fail(ErrorClass::Reader, "a dot where a form should be".to_owned()),
            }
        }
    }

    fn wrapped(&mut self, cx: &mut Context, head: Value) -> Answer {
        let value = self.value(cx)?;
        cx.list(&[head, value])
    }

    /// Pushes the values up to the closing parenthesis; returns the tail after a dot, which is not pushed.
    fn values(&mut self, cx: &mut Context) -> Answer {
        loop {
            let mark = cx.mark();
            let item = self.item(cx)?;
            cx.release(mark);
            match item {
                Item::Value(value) => cx.push(value)?,
                Item::Nothing => {}
                Item::Close => return Ok(Value::NIL),
                Item::End => return self.early_end(cx),
                Item::Dot => {
                    let tail = self.value(cx)?;
                    cx.release(mark);
                    cx.push(tail)?;
                    loop {
                        match self.item(cx)? {
                            Item::Close => {
                                cx.release(mark);
                                return Ok(tail);
                            }
                            Item::Nothing => {}
                            Item::End => return self.early_end(cx),
                            _ => {
                                return cx
                                    .fail(ErrorClass::Reader, "more than one form after a dot".to_owned());
                            }
                        }
                    }
                }
            }
        }
    }

    fn list(&mut self, cx: &mut Context) -> Answer {
        let first = cx.mark();
        let tail = self.values(cx)?;
        let count = cx.above(first);
        if count == 0 && !tail.is_nil() {
            return cx.fail(ErrorClass::Reader, "a list begins with a dot".to_owned());
        }
        let list = cx.list_of_roots(first, 0..count, tail)?;
        cx.release(first);
        Ok(list)
    }

    fn string(&mut self, cx: &mut Context) -> Answer {
        let mut bytes = Vec::new();
        loop {
            match self.next(cx)? {
                None => return self.early_end(cx),
                Some(b'"') => return cx.string_from(&bytes),
                Some(b'\\') => match self.next(cx)? {
                    None => return self.early_end(cx),
                    Some(byte) => bytes.push(byte),
                },
                Some(byte) => bytes.push(byte),
            }
        }
    }
}
