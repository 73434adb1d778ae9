//! Implements the directives of `format` that select, skip or repeat text.

use super::{Directive, Formatter};
use crate::context::Context;
use crate::error::{ErrorClass, Exit};
use crate::value::Value;

impl Formatter<'_> {
    /// Skips text up to a closing directive of this level.
    pub(super) fn skip(&mut self, cx: &mut Context, until: &[u8]) -> Result<Option<u8>, Exit> {
        let mut depth = 0;
        while let Some(&byte) = self.text.get(self.position) {
            self.position += 1;
            if byte != b'~' {
                continue;
            }
            // Parameters that take an argument do not consume it here.
            while self
                .text
                .get(self.position)
                .is_some_and(|byte| byte.is_ascii_digit() || b",:@vV#".contains(byte))
            {
                self.position += 1;
            }
            let Some(&letter) = self.text.get(self.position) else { break };
            self.position += 1;
            if depth == 0 && until.contains(&letter) {
                return Ok(Some(letter));
            }
            match letter {
                b'{' | b'[' | b'(' => depth += 1,
                b'}' | b']' | b')' => depth -= 1,
                _ => {}
            }
        }
        if until.is_empty() {
            Ok(None)
        } else {
            cx.error(ErrorClass::Arguments, "format: a bracket is not closed".to_owned())
        }
    }

    /// Runs `~[zero~;one~:;other~]`, `~:[nil~;other~]` or `~@[present~]`.
    pub(super) fn choice(&mut self, cx: &mut Context, directive: &Directive) -> Result<(), Exit> {
        if directive.at {
            let value = self.argument(cx)?;
            if value.is_nil() {
                self.skip(cx, b"]")?;
            } else {
                self.next -= 1;
                self.run(cx, b"]")?;
            }
            return Ok(());
        }
        let value = self.argument(cx)?;
        let wanted = if directive.colon {
            i64::from(!value.is_nil())
        } else {
            match value.as_fixnum() {
                Some(number) => number,
                None => return cx.type_error("integer", value),
            }
        };
        let mut index = 0;
        loop {
            if index == wanted || self.is_default() {
                if self.run(cx, b";]")? == Some(b';') {
                    self.skip(cx, b"]")?;
                }
                return Ok(());
            }
            if self.skip(cx, b";]")? == Some(b']') {
                return Ok(());
            }
            index += 1;
        }
    }

    /// Returns whether the clause that begins here follows `~:;`.
    pub(super) fn is_default(&self) -> bool {
        self.position >= 3 && &self.text[self.position - 3..self.position] == b"~:;"
    }

    /// Runs `~{...~}` over a list, `~@{...~}` over the remaining arguments, or `~:{` over a list of lists.
    pub(super) fn loop_over(&mut self, cx: &mut Context, directive: &Directive) -> Result<(), Exit> {
        let start = self.position;
        let items: Vec<Value> = if directive.at {
            let rest = self.arguments[self.next.min(self.arguments.len())..].to_vec();
            self.next = self.arguments.len();
            rest
        } else {
            let list = self.argument(cx)?;
            cx.alive(list)?
        };
        let most = directive.parameters.first().copied().flatten().unwrap_or(i64::MAX);
        let groups: Vec<Vec<Value>> = if directive.colon {
            items.into_iter().map(|item| cx.alive(item)).collect::<Result<_, _>>()?
        } else {
            vec![items]
        };
        let mut turns = 0;
        for group in groups {
            let outer = std::mem::replace(&mut self.arguments, group);
            let before = std::mem::replace(&mut self.next, 0);
            while self.next < self.arguments.len() && turns < most {
                self.position = start;
                let taken = self.next;
                self.run(cx, b"}")?;
                turns += 1;
                if directive.colon || self.next == taken {
                    break;
                }
                cx.poll()?;
            }
            self.arguments = outer;
            self.next = before;
        }
        self.position = start;
        self.skip(cx, b"}")?;
        Ok(())
    }
}
