//! Implements `format`, which expands a text with directives.

mod control;
mod field;

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::printer::float_text;
use crate::value::Value;

pub(super) const BUILTINS: &[Builtin] = &[builtin("FORMAT", 2, MANY, format)];

/// Implements `(format stream text . arguments)`, which returns a string when the stream is nil.
fn format(cx: &mut Context, args: Args<'_>) -> Answer {
    let out = formatted(cx, args[1], args.from(2))?;
    if args[0].is_nil() {
        return cx.string_from(&out);
    }
    cx.write_bytes(args[0], &out)?;
    Ok(Value::NIL)
}

struct Directive {
    letter: u8,
    parameters: Vec<Option<i64>>,
    colon: bool,
    at: bool,
}

struct Formatter<'a> {
    text: &'a [u8],
    position: usize,
    arguments: Vec<Value>,
    next: usize,
    out: Vec<u8>,
}

/// Formats a string and its arguments, which the caller keeps alive.
pub(super) fn formatted(cx: &mut Context, text: Value, arguments: Args<'_>) -> Result<Vec<u8>, Exit> {
    let text = super::string::bytes(cx, text)?;
    let mut formatter =
        Formatter { text: &text, position: 0, arguments: arguments.to_vec(), next: 0, out: Vec::new() };
    formatter.run(cx, &[])?;
    Ok(formatter.out)
}

impl Formatter<'_> {
    fn argument(&mut self, cx: &mut Context) -> Answer {
        match self.arguments.get(self.next) {
            Some(value) => {
                self.next += 1;
                Ok(*value)
            }
            None => cx.fail(ErrorClass::Arguments, "format: not enough arguments".to_owned()),
        }
    }

    fn directive(&mut self, cx: &mut Context) -> Result<Directive, Exit> {
        let mut directive = Directive { letter: 0, parameters: Vec::new(), colon: false, at: false };
        let mut current: Option<i64> = None;
        let mut any = false;
        loop {
            let Some(&byte) = self.text.get(self.position) else {
                return cx
                    .error(ErrorClass::Arguments, "format: the text ends inside a directive".to_owned());
            };
            self.position += 1;
            match byte {
                b'0'..=b'9' => {
                    let digit = i64::from(byte - b'0');
                    current = Some(current.unwrap_or(0).saturating_mul(10).saturating_add(digit));
                    any = true;
                }
                b'-' => {}
                b',' => {
                    directive.parameters.push(current.take());
                    any = true;
                }
                b'\'' => {
                    current = self.text.get(self.position).map(|byte| i64::from(*byte));
                    self.position += 1;
                    any = true;
                }
                b'v' | b'V' => {
                    current = self.argument(cx)?.as_fixnum();
                    any = true;
                }
                b'#' => {
                    current = Some(self.arguments.len().saturating_sub(self.next) as i64);
                    any = true;
                }
                b':' => directive.colon = true,
                b'@' => directive.at = true,
                _ => {
                    if any {
                        directive.parameters.push(current);
                    }
                    directive.letter = byte.to_ascii_lowercase();
                    return Ok(directive);
                }
            }
        }
    }

    /// Runs to the end or to one of the closing directives, which it returns.
    fn run(&mut self, cx: &mut Context, until: &[u8]) -> Result<Option<u8>, Exit> {
        cx.check_stack()?;
        while let Some(&byte) = self.text.get(self.position) {
            self.position += 1;
            if byte != b'~' {
                self.out.push(byte);
                continue;
            }
            let directive = self.directive(cx)?;
            if until.contains(&directive.letter) {
                return Ok(Some(directive.letter));
            }
            if directive.letter == b'^' {
                if self.next >= self.arguments.len() {
                    self.skip(cx, until)?;
                    return Ok(Some(b'^'));
                }
                continue;
            }
            self.one(cx, &directive)?;
        }
        if until.is_empty() {
            Ok(None)
        } else {
            cx.error(ErrorClass::Arguments, "format: a bracket is not closed".to_owned())
        }
    }

    fn one(&mut self, cx: &mut Context, directive: &Directive) -> Result<(), Exit> {
        let parameter = |index: usize| directive.parameters.get(index).copied().flatten();
        let width = parameter(0).unwrap_or(0).clamp(0, 1 << 20) as usize;
        match directive.letter {
            b'a' | b's' => {
                let value = self.argument(cx)?;
                let mut text = Vec::new();
                cx.print(value, directive.letter == b's', &mut text)?;
                self.padded(&text, width, !directive.at, b' ');
            }
            b'd' => self.integer(cx, 10, directive)?,
            b'x' => self.integer(cx, 16, directive)?,
            b'o' => self.integer(cx, 8, directive)?,
            b'b' => self.integer(cx, 2, directive)?,
            b'r' => {
                let base = parameter(0).unwrap_or(10);
                let shifted = Directive {
                    letter: b'r',
                    parameters: directive.parameters.get(1..).unwrap_or(&[]).to_vec(),
                    colon: directive.colon,
                    at: directive.at,
                };
                self.integer(cx, base, &shifted)?;
            }
            b'f' => {
                let value = self.argument(cx)?;
                let text = if !cx.is_number(value) {
                    cx.show_short(value)
                } else {
                    let number = cx.number(value)?;
                    match parameter(1) {
                        Some(decimals) => format!("{number:.*}", decimals.clamp(0, 100) as usize),
                        None => float_text(number),
                    }
                };
                self.padded(text.as_bytes(), width, false, b' ');
            }
            b'e' => {
                let value = self.argument(cx)?;
                let number = cx.number(value)?;
                let text = match parameter(1) {
                    Some(decimals) => crate::printer::exponent_text(number, decimals.clamp(0, 100) as usize),
                    None => shortest_exponent(number),
                };
                self.padded(text.as_bytes(), width, false, b' ');
            }
            b'g' => {
                let value = self.argument(cx)?;
                let number = cx.number(value)?;
                self.padded(float_text(number).as_bytes(), width, false, b' ');
            }
            b'c' => {
                let value = self.argument(cx)?;
                match value.as_fixnum() {
                    Some(code) => self.out.push(code as u8),
                    None => return cx.type_error("character", value),
                }
            }
            b'%' => self.repeat(b'\n', parameter(0)),
            b'~' => self.repeat(b'~', parameter(0)),
            b'|' => self.repeat(b'\x0c', parameter(0)),
            b'&' => {
                if !matches!(self.out.last(), None | Some(b'\n')) {
                    self.out.push(b'\n');
                }
                self.repeat(b'\n', Some(parameter(0).unwrap_or(1) - 1));
            }
            // EusLisp writes one tab, wherever the column is.
            b't' if directive.at => self.repeat(b' ', Some(parameter(0).unwrap_or(1))),
            b't' => self.out.push(b'\t'),
            b'\n' => {
                while self.text.get(self.position).is_some_and(u8::is_ascii_whitespace) {
                    self.position += 1;
                }
            }
            b'*' => {
                let by = parameter(0).unwrap_or(if directive.at { 0 } else { 1 }).max(0) as usize;
                self.next = if directive.at {
                    by
                } else if directive.colon {
                    self.next.saturating_sub(by)
                } else {
                    self.next.saturating_add(by)
                };
            }
            b'(' => {
                let start = self.out.len();
                self.run(cx, b")")?;
                let part = &mut self.out[start..];
                match (directive.colon, directive.at) {
                    (true, true) => part.make_ascii_uppercase(),
                    (true, false) | (false, true) => {
                        let mut inside = false;
                        for byte in part {
                            if inside {
                                byte.make_ascii_lowercase()
                            } else {
                                byte.make_ascii_uppercase()
                            }
                            inside = byte.is_ascii_alphanumeric() || (directive.at && inside);
                        }
                    }
                    (false, false) => part.make_ascii_lowercase(),
                }
            }
            b'[' => self.choice(cx, directive)?,
            b'{' => self.loop_over(cx, directive)?,
            b'?' => {
                let (text, list) = (self.argument(cx)?, self.argument(cx)?);
                let items = cx.alive(list)?;
                let part = formatted(cx, text, Args::new(&items))?;
                self.out.extend(part);
            }
            other => {
                return cx
                    .error(ErrorClass::Arguments, format!("format: no directive ~{}", char::from(other)));
            }
        }
        Ok(())
    }
}

/// Formats a number as `2.5e+00`, with the fewest decimals, at most 6, that read back.
fn shortest_exponent(number: f64) -> String {
    let text = format!("{number:e}");
    let decimals =
        text.split_once('e').and_then(|(digits, _)| digits.split_once('.')).map_or(1, |(_, part)| part.len());
    crate::printer::exponent_text(number, decimals.min(6))
}
