//! Reads the syntax that begins with `#`.

use super::{Item, Meaning, Reader, token};
use crate::builtins::vector::AXES;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};

impl Reader<'_> {
    pub(super) fn hash(&mut self, cx: &mut Context) -> Result<Item, Exit> {
        let mut number: Option<i64> = None;
        while let Some(digit) = self.peek(cx)?.filter(u8::is_ascii_digit) {
            self.next(cx)?;
            let digit = i64::from(digit - b'0');
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        }
        let Some(read) = self.next(cx)? else { return self.early_end(cx) };
        let byte = match self.table.after_hash(read) {
            Meaning::Standard(byte) => byte,
            Meaning::Function(function) => {
                return self.call_macro(cx, function, read, Some(number)).map(Item::Value);
            }
        };
        let value = match (byte.to_ascii_lowercase(), number) {
            (b'\'', None) => self.wrapped(cx, cx.world.names.function)?,
            (b'(', None) => {
                let list = self.list(cx)?;
                let items: Vec<Value> = list.iter().collect();
                cx.push(list)?;
                cx.vector_from(&items)?
            }
            (b'\\', None) => self.character(cx)?,
            (b'f', None) => {
                let list = self.value(cx)?;
                cx.push(list)?;
                cx.floats_from_list(list)?
            }
            (b'i', None) => {
                let list = self.value(cx)?;
                cx.push(list)?;
                cx.integers_from_list(list)?
            }
            (b'*', None) => self.bits(cx)?,
            (b'a' | b'f' | b'i', rank) => {
                let rank = rank.unwrap_or(1);
                if !(1..=AXES as i64).contains(&rank) {
                    return cx.error(ErrorClass::Reader, format!("an array of {rank} axes"));
                }
                let contents = self.value(cx)?;
                cx.push(contents)?;
                let kind = match byte.to_ascii_lowercase() {
                    b'f' => ObjectKind::FloatVector,
                    b'i' => ObjectKind::IntegerVector,
                    _ => ObjectKind::Vector,
                };
                cx.array_from_contents(kind, rank as usize, contents)?
            }
            // As in EusLisp, the number in `#0x1f` means nothing.
            (b'x', _) => self.radix(cx, 16)?,
            (b'o', _) => self.radix(cx, 8)?,
            (b'b', _) => self.radix(cx, 2)?,
            (b'd', _) => self.scaled(cx, std::f64::consts::PI / 180.0)?,
            (b'r', _) => self.scaled(cx, 180.0 / std::f64::consts::PI)?,
            (b's' | b'j' | b'v' | b'p', None) => {
                let contents = self.value(cx)?;
                cx.push(contents)?;
                let maker = match byte.to_ascii_lowercase() {
                    b's' => "LARGESSE:READ-STRUCTURE",
                    b'j' => "LARGESSE:READ-OBJECT",
                    b'v' => "LARGESSE:READ-VECTOR",
                    _ => "PATHNAME",
                };
                let maker = cx.installed_name(maker)?;
                cx.apply(maker, &[contents])?
            }
            (b'.' | b',', None) => {
                let form = self.value(cx)?;
                cx.push(form)?;
                cx.eval(form)?
            }
            (b':', None) => {
                let name = self.word(cx)?;
                let text = cx.string(&name)?;
                cx.new_symbol(text)?
            }
            (b'|', None) => return self.comment(cx),
            (b'!', None) => {
                while !matches!(self.next(cx)?, None | Some(b'\n')) {}
                return Ok(Item::Nothing);
            }
            (b'+' | b'-', None) => return self.conditional(cx, byte == b'+'),
            (b'=', Some(number)) => {
                let placeholder = self.labels.announce(cx, number)?;
                let value = self.value(cx)?;
                self.labels.resolve(cx, number, value, placeholder)?;
                value
            }
            (b'#', Some(number)) => match self.labels.get(number) {
                Some(value) => value,
                None => return cx.error(ErrorClass::Reader, format!("#{number}# before #{number}=")),
            },
            (b'<', _) => return cx.error(ErrorClass::Reader, "#<...> is unreadable".to_owned()),
            _ => {
                return cx.error(ErrorClass::Reader, format!("no # macro for {}", char::from(byte)));
            }
        };
        Ok(Item::Value(value))
    }

    /// Reads a number and multiplies it: `#d180` is an angle in degrees as radians.
    fn scaled(&mut self, cx: &mut Context, factor: f64) -> Answer {
        let value = self.value(cx)?;
        let number = cx.number(value)?;
        cx.float(number * factor)
    }

    /// Reads `#\a` as the code of a: characters are integers.
    fn character(&mut self, cx: &mut Context) -> Answer {
        let Some(first) = self.next(cx)? else { return self.early_end(cx) };
        let mut name = vec![first];
        while let Some(byte) = self.peek(cx)? {
            if self.delimits(byte) || !first.is_ascii_alphanumeric() {
                break;
            }
            self.next(cx)?;
            name.push(byte);
        }
        if name.len() == 1 {
            return Ok(Value::fixnum(i64::from(first)));
        }
        let code = match name.to_ascii_uppercase().as_slice() {
            b"NULL" | b"NUL" => 0,
            b"BELL" | b"BEL" => 7,
            b"BACKSPACE" | b"BS" => 8,
            b"TAB" => 9,
            b"NEWLINE" | b"LINEFEED" | b"LF" | b"NL" => 10,
            b"PAGE" => 12,
            b"RETURN" | b"CR" => 13,
            b"ESCAPE" | b"ESC" => 27,
            b"SPACE" => 32,
            b"LPAREN" => 40,
            b"RPAREN" => 41,
            b"RUBOUT" | b"DELETE" | b"DEL" => 127,
            _ => {
                let name = String::from_utf8_lossy(&name).into_owned();
                return cx.fail(ErrorClass::Reader, format!("no character has the name {name}"));
            }
        };
        Ok(Value::fixnum(code))
    }

    fn bits(&mut self, cx: &mut Context) -> Answer {
        let text = self.word(cx)?;
        if !text.bytes().all(|byte| matches!(byte, b'0' | b'1')) {
            return cx.fail(ErrorClass::Reader, format!("#*{text} is not a bit-vector"));
        }
        let vector = cx.new_bits(text.len())?;
        for (index, byte) in text.bytes().enumerate() {
            crate::builtins::vector::set_bit(vector, index, byte == b'1');
        }
        Ok(vector)
    }

    fn radix(&mut self, cx: &mut Context, base: i64) -> Answer {
        let text = self.word(cx)?;
        match token::number(cx, &text, base)? {
            Some(number) if number.is_fixnum() || number.is(ObjectKind::Bignum) => Ok(number),
            _ => cx.fail(ErrorClass::Reader, format!("{text} is not a number in base {base}")),
        }
    }

    fn comment(&mut self, cx: &mut Context) -> Result<Item, Exit> {
        let mut depth = 1;
        let mut before = 0;
        while depth > 0 {
            let Some(byte) = self.next(cx)? else { return self.early_end(cx) };
            match (before, byte) {
                (b'|', b'#') => depth -= 1,
                (b'#', b'|') => depth += 1,
                _ => {
                    before = byte;
                    continue;
                }
            }
            before = 0;
        }
        Ok(Item::Nothing)
    }

    /// Reads `#+feature form`.
    fn conditional(&mut self, cx: &mut Context, wanted: bool) -> Result<Item, Exit> {
        let feature = self.value(cx)?;
        cx.push(feature)?;
        let have = self.holds(cx, feature)?;
        let form = self.value(cx)?;
        Ok(if have == wanted { Item::Value(form) } else { Item::Nothing })
    }

    fn holds(&mut self, cx: &mut Context, feature: Value) -> Result<bool, Exit> {
        let names = cx.world.names;
        if feature.is_cons() {
            let head = feature.get(0);
            let operator = cx.show_name(head);
            let mut results = Vec::new();
            for part in feature.get(1).iter() {
                results.push(self.holds(cx, part)?);
            }
            return match operator.as_str() {
                "and" => Ok(results.iter().all(|yes| *yes)),
                "or" => Ok(results.iter().any(|yes| *yes)),
                "not" => Ok(!results.first().copied().unwrap_or(false)),
                _ => {
                    let shown = cx.show_short(head);
                    cx.error(ErrorClass::Reader, format!("{shown} is not and, or, not of features"))
                }
            };
        }
        if !feature.is_symbol_object() {
            return Ok(false);
        }
        let name = cx.show_name(feature);
        let features = cx.global_value(names.features);
        Ok(features.iter().any(|own| own.is_symbol() && cx.show_name(own) == name))
    }
}
