//! Calls a program's functions for characters, and reads lists up to any character.

use super::{Item, Reader, Source};
use crate::context::{Answer, Context};
use crate::value::Value;

impl Reader<'_> {
    /// Calls a program's function with the stream, the character, and for a character after `#` its number.
    pub(super) fn call_macro(
        &mut self,
        cx: &mut Context,
        function: Value,
        byte: u8,
        number: Option<Option<i64>>,
    ) -> Answer {
        let byte = Value::fixnum(i64::from(byte));
        let mark = cx.mark();
        let stream = match &self.source {
            Source::Stream(stream) => *stream,
            Source::Text { bytes, at } => cx.input_from_text(&bytes[*at..])?,
        };
        cx.push(stream)?;
        let value = match number {
            None => cx.apply(function, &[stream, byte])?,
            Some(number) => {
                let number = number.map_or(Value::NIL, Value::fixnum);
                cx.apply(function, &[stream, byte, number])?
            }
        };
        if let Source::Text { at, .. } = &mut self.source {
            *at += cx.consumed_of_text(stream);
        }
        cx.release(mark);
        Ok(value)
    }

    /// Returns the values up to the character `closer`, which is read, too.
    pub(crate) fn read_delimited(&mut self, cx: &mut Context, closer: u8) -> Answer {
        let mark = cx.mark();
        self.begin(cx)?;
        self.closer = Some(closer);
        let first = cx.mark();
        loop {
            while self.peek(cx)?.is_some_and(|byte| byte.is_ascii_whitespace()) {
                self.next(cx)?;
            }
            if self.peek(cx)? == Some(closer) {
                self.next(cx)?;
                break;
            }
            let item_mark = cx.mark();
            let item = self.item(cx)?;
            cx.release(item_mark);
            match item {
                Item::Value(value) => cx.push(value)?,
                Item::Nothing | Item::Close | Item::Dot => {}
                Item::End => return self.early_end(cx),
            }
        }
        let count = cx.above(first);
        let list = cx.list_of_roots(first, 0..count, Value::NIL)?;
        cx.release(mark);
        Ok(list)
    }
}
