//! Reads symbols and numbers.

use super::{Item, Reader};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::Value;
use crate::world::Package;
use std::sync::Arc;

/// A token has bytes with letters in upper case, and may be quoted.
#[derive(Default)]
struct Token {
    bytes: Vec<u8>,
    quoted: bool,
    /// Position of the first colon outside of bars, and the number of colons.
    colon: Option<usize>,
    colons: usize,
}

impl Reader<'_> {
    fn scan(&mut self, cx: &mut Context, first: Option<u8>) -> Result<Token, Exit> {
        let mut token = Token::default();
        let mut bars = false;
        let mut ahead = first;
        loop {
            let byte = match ahead.take() {
                Some(byte) => byte,
                None => match self.peek(cx)? {
                    None if bars => return self.early_end(cx),
                    None => return Ok(token),
                    Some(byte) if !bars && self.delimits(byte) => return Ok(token),
                    Some(byte) => {
                        self.next(cx)?;
                        byte
                    }
                },
            };
            match byte {
                b'|' => {
                    bars = !bars;
                    token.quoted = true;
                }
                b'\\' => {
                    token.quoted = true;
                    match self.next(cx)? {
                        None => return self.early_end(cx),
                        Some(byte) => token.bytes.push(byte),
                    }
                }
                b':' if !bars => {
                    token.colon.get_or_insert(token.bytes.len());
                    token.colons += 1;
                    token.bytes.push(byte);
                }
                _ if bars => token.bytes.push(byte),
                _ => token.bytes.push(byte.to_ascii_uppercase()),
            }
        }
    }

    pub(super) fn token(&mut self, cx: &mut Context, first: u8) -> Result<Item, Exit> {
        let (table, closer) = (self.table, self.closer);
        let delimits = |byte| closer == Some(byte) || table.delimits(byte);
        if let Some(plain) = self.source.plain_token(delimits) {
            return self.plain(cx, plain);
        }
        let token = self.scan(cx, Some(first))?;
        if !token.quoted && token.bytes == b"." {
            return Ok(Item::Dot);
        }
        let text = self.text(cx, token.bytes)?;
        if !token.quoted {
            let base = cx.global_value(cx.world.names.read_base).as_fixnum().unwrap_or(10);
            if let Some(number) = number(cx, &text, base)? {
                return Ok(Item::Value(number));
            }
        }
        let Some(at) = token.colon else { return cx.intern(&text).map(Item::Value) };
        // Two separate colons can end inside a character.
        let name = text.get(at + token.colons..).filter(|name| !name.contains(':') && token.colons <= 2);
        let Some(name) = name else {
            return cx.error(ErrorClass::Reader, format!("too many colons in {text}"));
        };
        let package = &text[..at];
        self.qualified(cx, package, name).map(Item::Value)
    }

    /// Returns the value of a token without quotes and colons.
    fn plain(&mut self, cx: &mut Context, token: &[u8]) -> Result<Item, Exit> {
        if token == b"." {
            return Ok(Item::Dot);
        }
        let base = cx.global_value(cx.world.names.read_base).as_fixnum().unwrap_or(10);
        if base == 10
            && let Some(number) = small_integer(token)
        {
            return Ok(Item::Value(Value::fixnum(number)));
        }
        let text = String::from_utf8_lossy(token).to_uppercase();
        match number(cx, &text, base)? {
            Some(number) => Ok(Item::Value(number)),
            None => cx.intern(&text).map(Item::Value),
        }
    }

    /// Returns the symbol of `package:name`, which EusLisp's own programs also write for symbols that are not external.
    /// A name that the package lacks becomes a symbol of it, so that only its use is an error.
    fn qualified(&mut self, cx: &mut Context, package: &str, name: &str) -> Answer {
        if package.is_empty() {
            return cx.keyword(name);
        }
        let Some(found): Option<Arc<Package>> = cx.package_named(package) else {
            return cx.fail(ErrorClass::Reader, format!("there is no package {package}"));
        };
        cx.intern_in(&found, name, false)
    }

    /// Reads a token; returns its text with letters in upper case.
    pub(super) fn word(&mut self, cx: &mut Context) -> Result<String, Exit> {
        let token = self.scan(cx, None)?;
        self.text(cx, token.bytes)
    }

    /// Returns the bytes of a token as text. Fails where they are not UTF-8: with replacement characters, different
    /// names would become the same symbol.
    fn text(&self, cx: &mut Context, bytes: Vec<u8>) -> Result<String, Exit> {
        String::from_utf8(bytes).or_else(|refused| {
            let place = self.source.line().map_or(String::new(), |line| format!(" in line {line}"));
            let shown = refused.as_bytes().escape_ascii();
            cx.error(
                ErrorClass::Reader,
                format!("{shown}{place} is not UTF-8; only strings may hold any bytes"),
            )
        })
    }
}

/// Returns the integer of decimal digits that a word surely holds.
fn small_integer(token: &[u8]) -> Option<i64> {
    const MOST_DIGITS: usize = 18;
    let (negative, digits) = match token {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > MOST_DIGITS {
        return None;
    }
    let add = |sum: i64, byte: &u8| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0'));
    let number = digits.iter().try_fold(0, add)?;
    Some(if negative { -number } else { number })
}

/// Returns whether a name would read as a number.
pub(crate) fn looks_like_number(name: &str) -> bool {
    let digits = name.strip_prefix(['+', '-']).unwrap_or(name);
    let integer = digits.strip_suffix('.').unwrap_or(digits);
    (!integer.is_empty() && integer.bytes().all(|byte| byte.is_ascii_digit()))
        || ratio(digits).is_some()
        || is_float(digits)
}

fn ratio(digits: &str) -> Option<(&str, &str)> {
    let (top, bottom) = digits.split_once('/')?;
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (all(top) && all(bottom)).then_some((top, bottom))
}

/// Returns whether digits have a decimal point, an exponent, or both.
fn is_float(digits: &str) -> bool {
    let (mantissa, exponent) = match digits.split_once(['E', 'D', 'F', 'S', 'L']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
    }
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !mantissa.contains('.') && exponent.is_none() {
        return false;
    }
    let all = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    all(whole) && all(part) && !(whole.is_empty() && part.is_empty())
}

/// Returns the number that a token denotes, if it is one.
pub(crate) fn number(cx: &mut Context, text: &str, base: i64) -> Result<Option<Value>, Exit> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let integer = digits.strip_suffix('.').unwrap_or(digits);
    let is_digit = |byte: u8| char::from(byte).is_digit(base.clamp(2, 36) as u32);
    if !integer.is_empty() && integer.bytes().all(is_digit) {
        return cx.integer_from_text(integer, negative, base as u32).map(Some);
    }
    if let Some((top, bottom)) = ratio(digits) {
        let top = cx.integer_from_text(top, negative, 10)?;
        cx.push(top)?;
        let bottom = cx.integer_from_text(bottom, false, 10)?;
        cx.push(bottom)?;
        return cx.ratio(top, bottom).map(Some);
    }
    if is_float(digits) {
        let plain = text.replace(['D', 'F', 'S', 'L'], "E");
        return match plain.parse() {
            Ok(number) => cx.float(number).map(Some),
            Err(_) => Ok(None),
        };
    }
    Ok(None)
}
