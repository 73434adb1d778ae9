//! Prints values as text that reads back, or for display.

mod array;
mod float;
mod instance;
mod shared;
mod symbol;

pub(crate) use float::{exponent_text, float_text};

use crate::context::Context;
use crate::error::{ErrorClass, Exit};
use crate::value::{Circle, ObjectKind, Value, symbol as slot};
use shared::SharedLabels;

/// Holds the options of printing.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Whether the text reads back: quotes around strings, bars around unusual symbols, package prefixes.
    pub(crate) escape: bool,
    /// Depth from which lists print as `#`.
    level: Option<i64>,
    /// Number of elements after which `...` is printed.
    length: Option<i64>,
    /// Number of bytes of text after which the rest is left out.
    most: usize,
    /// Whether instances are printed by their class's `:prin1`.
    methods: bool,
}

/// Number of bytes that hold at least 200 characters, as a character takes at most four bytes.
const ENOUGH: usize = 800;

struct Printer<'a> {
    style: Style,
    shared: Option<SharedLabels>,
    out: &'a mut Vec<u8>,
}

type Done = Result<(), Exit>;

impl Context {
    /// Appends the text of a value, which the caller keeps alive.
    pub(crate) fn print(&mut self, value: Value, escape: bool, out: &mut Vec<u8>) -> Done {
        let names = self.world.names;
        let style = Style {
            escape,
            level: self.global_value(names.print_level).as_fixnum(),
            length: self.global_value(names.print_length).as_fixnum(),
            most: usize::MAX,
            methods: true,
        };
        let circle = !self.global_value(names.print_circle).is_nil();
        let shared = if circle { Some(SharedLabels::of(value)) } else { None };
        Printer { style, shared, out }.value(self, value, 0)
    }

    /// Returns a text of at most 200 characters for messages; it never fails. The value need not be a root.
    pub(crate) fn show_short(&mut self, value: Value) -> String {
        let mut out = Vec::new();
        let style = Style { escape: true, level: Some(4), length: Some(8), most: ENOUGH, methods: false };
        if (Printer { style, shared: None, out: &mut out }).value(self, value, 0).is_err() {
            out.extend_from_slice(b"...");
        }
        let text = String::from_utf8_lossy(&out);
        if text.chars().count() <= 200 {
            return text.into_owned();
        }
        text.chars().take(200).chain("...".chars()).collect()
    }

    /// Returns a symbol's name in lower case, or an empty string for any other value.
    pub(crate) fn show_name(&self, symbol: Value) -> String {
        if !symbol.is_symbol() {
            return String::new();
        }
        let object = self.world.symbol_object(symbol);
        object.get(slot::NAME).text().to_lowercase()
    }

    /// Returns a text that reads back as the value.
    pub(crate) fn show(&mut self, value: Value) -> Result<String, Exit> {
        let mut out = Vec::new();
        self.print(value, true, &mut out)?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

impl Printer<'_> {
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Returns whether the text exceeds the number of bytes after which the rest is left out.
    fn is_full(&self) -> bool {
        self.out.len() > self.style.most
    }

    /// Appends the text of a value. It keeps the value alive, as a method that prints a part of it may remove it from where
    /// it was.
    fn value(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        cx.check_stack()?;
        if self.is_full() {
            return Ok(());
        }
        if let Some(number) = value.as_fixnum() {
            self.integer(cx, number);
        } else if let Some(number) = value.word_float() {
            self.text(&float_text(number));
        } else if value.is_symbol() {
            if !self.labelled(value) {
                self.symbol(cx, value);
            }
        } else if value.is_cons() || value.is_object() {
            let mark = cx.mark();
            cx.push(value)?;
            self.compound(cx, value, level)?;
            cx.release(mark);
        } else {
            self.text("#<unbound>");
        }
        Ok(())
    }

    fn integer(&mut self, cx: &Context, number: i64) {
        let base = cx.global_value(cx.world.names.print_base).as_fixnum().unwrap_or(10);
        let text =
            if base == 10 { number.to_string() } else { crate::builtins::number::in_base(number, base) };
        self.text(&text);
    }

    /// Prints the label of a value that is printed more than once. Returns whether that stands for the value.
    fn labelled(&mut self, value: Value) -> bool {
        let Some(shared) = &mut self.shared else { return false };
        match shared.label(value) {
            shared::Label::None => false,
            shared::Label::First(number) => {
                self.text(&format!("#{number}="));
                false
            }
            shared::Label::Again(number) => {
                self.text(&format!("#{number}#"));
                true
            }
        }
    }

    fn compound(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        if self.labelled(value) {
            return Ok(());
        }
        if value.is_cons() {
            return self.list(cx, value, level);
        }
        match value.header().kind() {
            ObjectKind::String => self.string(value.bytes()),
            ObjectKind::Vector => self.vector(cx, value, level)?,
            ObjectKind::FloatVector => self.floats(value.floats()),
            ObjectKind::IntegerVector => {
                self.text("#i(");
                for (index, number) in value.integers().iter().enumerate() {
                    if self.is_full() {
                        break;
                    }
                    if index > 0 {
                        self.text(" ");
                    }
                    self.text(&number.to_string());
                }
                self.text(")");
            }
            ObjectKind::BitVector => {
                self.text("#*");
                for index in 0..value.length() {
                    if self.is_full() {
                        break;
                    }
                    self.text(if crate::builtins::vector::bit(value, index) { "1" } else { "0" });
                }
            }
            ObjectKind::Array => return self.array(cx, value, level),
            ObjectKind::Float => self.text(&float_text(f64::from_bits(value.get(1).0))),
            ObjectKind::Bignum => {
                let base = cx.global_value(cx.world.names.print_base).as_fixnum().unwrap_or(10);
                self.text(&crate::builtins::number::big(value).to_str_radix(base.clamp(2, 36) as u32));
            }
            ObjectKind::Ratio => {
                self.value(cx, value.slot(0), level)?;
                self.text("/");
                self.value(cx, value.slot(1), level)?;
            }
            ObjectKind::Closure => return self.closure(cx, value, level),
            ObjectKind::Builtin | ObjectKind::Compiled => {
                self.text(&format!("#<compiled-code #X{:x}>", value.address()))
            }
            _ => return self.instance(cx, value, level),
        }
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(self.style.most)];
        if !self.style.escape {
            self.out.extend_from_slice(bytes);
            return;
        }
        self.out.push(b'"');
        for byte in bytes {
            if matches!(byte, b'"' | b'\\') {
                self.out.push(b'\\');
            }
            self.out.push(*byte);
        }
        self.out.push(b'"');
    }

    /// Prints `(quote x)` as `'x` and `(function x)` as `#'x`; returns false for other lists.
    fn abbreviated(&mut self, cx: &mut Context, value: Value, level: i64) -> Result<bool, Exit> {
        let names = cx.world.names;
        let (head, rest) = (value.get(0), value.get(1));
        if !rest.is_cons() || !rest.get(1).is_nil() {
            return Ok(false);
        }
        let prefix = if head == names.quote {
            "'"
        } else if head == names.function {
            "#'"
        } else {
            return Ok(false);
        };
        self.text(prefix);
        self.value(cx, rest.get(0), level)?;
        Ok(true)
    }

    fn list(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        if self.style.level.is_some_and(|most| level >= most) {
            self.text("#");
            return Ok(());
        }
        if self.abbreviated(cx, value, level)? {
            return Ok(());
        }
        self.text("(");
        let (mut rest, mut count, mut circle) = (value, 0, Circle::new());
        // A method that prints an element may modify the list.
        let mark = cx.mark();
        cx.push(rest)?;
        loop {
            cx.put_root(mark, rest);
            if self.style.length.is_none() && circle.closes_at(rest) {
                return cx
                    .error(ErrorClass::Type, "a circular list prints only with *print-circle*".to_owned());
            }
            if self.style.length.is_some_and(|most| count >= most) {
                self.text("...");
                break;
            }
            self.value(cx, rest.get(0), level + 1)?;
            rest = rest.get(1);
            count += 1;
            if rest.is_nil() {
                break;
            }
            self.text(" ");
            if !rest.is_cons() || self.shared.as_ref().is_some_and(|shared| shared.is_labelled(rest)) {
                self.text(". ");
                self.value(cx, rest, level + 1)?;
                break;
            }
            if count % 1024 == 0 {
                cx.poll()?;
            }
        }
        cx.release(mark);
        self.text(")");
        Ok(())
    }
}
