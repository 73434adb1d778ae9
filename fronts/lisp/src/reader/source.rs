//! Provides text from a byte slice or a stream.

use crate::context::Context;
use crate::error::Exit;
use crate::value::Value;

/// A source is a byte slice or a Lisp stream.
pub(crate) enum Source<'a> {
    Text { bytes: &'a [u8], at: usize },
    Stream(Value),
}

impl<'a> Source<'a> {
    pub(crate) fn text(bytes: &'a [u8]) -> Source<'a> {
        Source::Text { bytes, at: 0 }
    }

    /// Returns the number of bytes of a text that were read, and 0 for a stream.
    pub(super) fn position(&self) -> usize {
        if let Source::Text { at, .. } = self { *at } else { 0 }
    }

    /// Returns the line of the byte at a position of a text, counted from 1, or `None` for a stream.
    pub(super) fn line_at(&self, position: usize) -> Option<usize> {
        let Source::Text { bytes, .. } = self else { return None };
        let before = &bytes[..position.min(bytes.len())];
        Some(before.iter().filter(|&&byte| byte == b'\n').count() + 1)
    }

    /// Returns the text from a position to the end of its line, or nothing for a stream.
    pub(super) fn text_from(&self, position: usize) -> String {
        let Source::Text { bytes, .. } = self else { return String::new() };
        let rest = &bytes[position.min(bytes.len())..];
        String::from_utf8_lossy(rest.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned()
    }

    /// Returns the line of a text that was read last, counted from 1, or `None` for a stream.
    pub(super) fn line(&self) -> Option<usize> {
        self.line_at(self.position().saturating_sub(1))
    }

    /// Returns the token of a text whose first byte was read, and goes to its end. `None` for a stream, or if
    /// the token has quotes, colons or bytes that are not ASCII.
    pub(super) fn plain_token(&mut self, delimits: impl Fn(u8) -> bool) -> Option<&'a [u8]> {
        let Source::Text { bytes, at } = self else { return None };
        let (bytes, start): (&'a [u8], usize) = (bytes, *at - 1);
        let length = bytes[start..].iter().position(|byte| delimits(*byte)).unwrap_or(bytes.len() - start);
        let token = &bytes[start..start + length];
        if token.is_empty() || token.iter().any(|byte| matches!(byte, b'|' | b'\\' | b':' | 0x80..)) {
            return None;
        }
        *at = start + length;
        Some(token)
    }

    pub(super) fn peek(&mut self, cx: &mut Context) -> Result<Option<u8>, Exit> {
        match self {
            Source::Text { bytes, at } => Ok(bytes.get(*at).copied()),
            Source::Stream(stream) => cx.peek_byte(*stream),
        }
    }

    pub(super) fn next(&mut self, cx: &mut Context) -> Result<Option<u8>, Exit> {
        match self {
            Source::Text { bytes, at } => {
                let byte = bytes.get(*at).copied();
                *at += usize::from(byte.is_some());
                Ok(byte)
            }
            Source::Stream(stream) => cx.read_byte(*stream),
        }
    }
}
