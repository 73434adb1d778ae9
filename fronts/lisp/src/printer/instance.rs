//! Prints closures, and instances by their class's `:prin1` or in the default form.

use super::{Done, Printer, Style};
use crate::context::Context;
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use crate::world::class;
use std::io::Write as _;

impl Printer<'_> {
    pub(super) fn closure(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        self.text("(lambda-closure ");
        self.value(cx, value.slot(0), level + 1)?;
        self.text(&format!(" {} 0 ", value.slot(1).address()));
        self.value(cx, value.slot(2), level + 1)?;
        for form in value.slot(3).iter() {
            self.text(" ");
            self.value(cx, form, level + 1)?;
        }
        self.text(")");
        Ok(())
    }

    pub(super) fn instance(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        let class = cx.world.class_of(value);
        if class.is_nil() {
            self.text("#<object>");
            return Ok(());
        }
        if self.style.methods
            && let Some(text) = cx.printed_by_method(value, class)?
        {
            self.out.extend_from_slice(&text);
            return Ok(());
        }
        self.plain_instance(cx, value, class, level)
    }

    fn plain_instance(&mut self, cx: &mut Context, value: Value, class: Value, level: i64) -> Done {
        self.text("#<");
        let escape = std::mem::replace(&mut self.style.escape, false);
        self.value(cx, class.slot(class::slot::NAME), level)?;
        self.text(&format!(" #X{:x}", value.address()));
        let number = value.header().class();
        let detail = if number == class::PACKAGE {
            cx.package_of_object(value).map(|package| package.name())
        } else if number == class::HASH_TABLE {
            let (size, count) = (value.slot(3).as_fixnum(), value.slot(4).as_fixnum());
            Some(format!("{}/{}", count.unwrap_or(0), size.unwrap_or(0)))
        } else if cx.is_class(value) {
            Some(cx.show_name(value.slot(class::slot::NAME)))
        } else if cx.derives(class, class::ERROR) {
            let message = value.slot(crate::error::slot::MESSAGE);
            message.is(ObjectKind::String).then(|| message.text().into_owned())
        } else {
            None
        };
        if let Some(detail) = detail {
            self.text(&format!(" {detail}"));
        }
        self.style.escape = escape;
        self.text(">");
        Ok(())
    }
}

impl Context {
    /// Returns the text that the class's own `:prin1` writes, if it has that method.
    fn printed_by_method(&mut self, value: Value, class: Value) -> Result<Option<Vec<u8>>, Exit> {
        let selector = self.world.names.prin1;
        let Some(_) = self.find_method(class, selector) else { return Ok(None) };
        let mark = self.mark();
        self.push(value)?;
        let stream = self.string_output()?;
        self.push(stream)?;
        self.send(value, selector, &[stream])?;
        let text = self.string_output_bytes(stream);
        self.release(mark);
        Ok(Some(text))
    }

    /// Prints `#<class #Xaddress words>`, the output of `:prin1` of `object`.
    pub(crate) fn print_plain(&mut self, value: Value, words: &[u8], out: &mut Vec<u8>) -> Done {
        let class = self.world.class_of(value);
        if class.is_nil() {
            return self.type_error("object", value).map(|_: Value| ());
        }
        let style = Style { escape: false, level: None, length: None, most: usize::MAX, methods: false };
        let value = self.world.symbol_object(value);
        Printer { style, shared: None, out }.plain_instance(self, value, class, 0)?;
        if !words.is_empty() {
            out.pop();
            let _ = out.write_all(b" ");
            out.extend_from_slice(words);
            out.push(b'>');
        }
        Ok(())
    }
}
