//! Prints vectors and arrays.

use super::{Done, Printer, float_text};
use crate::builtins::vector::{Shape, element};
use crate::context::Context;
use crate::value::{ObjectKind, Value};

impl Printer<'_> {
    pub(super) fn vector(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        if self.style.level.is_some_and(|most| level >= most) {
            self.text("#");
            return Ok(());
        }
        self.text("#(");
        for index in 0..value.length() {
            if index > 0 {
                self.text(" ");
            }
            if self.style.length.is_some_and(|most| index as i64 >= most) {
                self.text("...");
                break;
            }
            self.value(cx, value.slot(index), level + 1)?;
        }
        self.text(")");
        Ok(())
    }

    pub(super) fn floats(&mut self, values: &[f64]) {
        self.text("#f(");
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.text(" ");
            }
            if self.style.length.is_some_and(|most| index as i64 >= most) {
                self.text("...");
                break;
            }
            self.text(&float_text(*value));
        }
        self.text(")");
    }

    /// Prints an array, such as `#2a((1 2) (3 4))` or `#2f(...)`.
    pub(super) fn array(&mut self, cx: &mut Context, value: Value, level: i64) -> Done {
        let Some(shape) = Shape::of(value) else {
            return self.instance(cx, value, level);
        };
        let letter = match shape.entity.kind() {
            Some(ObjectKind::FloatVector) => 'f',
            Some(ObjectKind::IntegerVector) => 'i',
            Some(ObjectKind::String) if shape.dimensions.len() == 1 => {
                let range = shape.offset..shape.offset + shape.filled;
                self.string(&shape.entity.bytes()[range]);
                return Ok(());
            }
            _ => 'a',
        };
        if shape.dimensions.len() == 1 {
            self.text("#");
            if letter != 'a' {
                self.text(&letter.to_string());
            }
        } else {
            self.text(&format!("#{}{letter}", shape.dimensions.len()));
        }
        let mut index = shape.offset;
        // A method that prints an element may give the array another vector.
        let mark = cx.mark();
        cx.push(shape.entity)?;
        self.axis(cx, &shape, 0, &mut index, level)?;
        cx.release(mark);
        Ok(())
    }

    fn axis(&mut self, cx: &mut Context, shape: &Shape, axis: usize, index: &mut usize, level: i64) -> Done {
        let Some(&size) = shape.dimensions.get(axis) else {
            let value = element(cx, shape.entity, *index)?;
            *index += 1;
            return self.value(cx, value, level + 1);
        };
        self.text("(");
        for at in 0..size {
            if self.is_full() {
                break;
            }
            if at > 0 {
                self.text(" ");
            }
            self.axis(cx, shape, axis + 1, index, level)?;
        }
        self.text(")");
        Ok(())
    }
}
