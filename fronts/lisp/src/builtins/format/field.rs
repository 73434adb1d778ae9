//! Pads text to fields of a width.

use super::{Directive, Formatter};
use crate::builtins::number::{self, as_float};
use crate::context::Context;
use crate::error::Exit;
use crate::printer::float_text;
use crate::value::ObjectKind;

impl Formatter<'_> {
    pub(super) fn repeat(&mut self, byte: u8, count: Option<i64>) {
        let count = count.unwrap_or(1).clamp(0, 1 << 20) as usize;
        self.out.extend(std::iter::repeat_n(byte, count));
    }

    pub(super) fn padded(&mut self, text: &[u8], width: usize, left: bool, fill: u8) {
        let room = width.saturating_sub(String::from_utf8_lossy(text).chars().count());
        if left {
            self.out.extend_from_slice(text);
        }
        self.out.extend(std::iter::repeat_n(fill, room));
        if !left {
            self.out.extend_from_slice(text);
        }
    }

    pub(super) fn integer(&mut self, cx: &mut Context, base: i64, directive: &Directive) -> Result<(), Exit> {
        let value = self.argument(cx)?;
        let width = directive.parameters.first().copied().flatten().unwrap_or(0).clamp(0, 1 << 20) as usize;
        let fill = directive.parameters.get(1).copied().flatten().unwrap_or(i64::from(b' ')) as u8;
        let mut text = if value.is_fixnum() || value.is(ObjectKind::Bignum) {
            let number = number::integer(cx, value)?;
            number.to_str_radix(base.clamp(2, 36) as u32)
        } else if let Some(number) = as_float(value) {
            float_text(number)
        } else {
            cx.show_short(value)
        };
        if directive.colon {
            let digits = text.trim_start_matches('-').len();
            let sign = text.len() - digits;
            for place in (1..digits).filter(|place| place % 3 == 0) {
                text.insert(sign + digits - place, ',');
            }
        }
        if directive.at && !text.starts_with('-') {
            text.insert(0, '+');
        }
        self.padded(text.as_bytes(), width, false, fill);
        Ok(())
    }
}
