//! Implements equality: `eq`, `eql`, `equal`, `equalp`.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{Circle, ObjectKind, Value};
use std::collections::HashSet;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("EQ", 2, 2, |cx, args| Ok(cx.truth(eql(args[0], args[1])))),
    builtin("EQL", 2, 2, |cx, args| Ok(cx.truth(eql(args[0], args[1])))),
    builtin("NEQ", 2, 2, |cx, args| Ok(cx.truth(!eql(args[0], args[1])))),
    builtin("EQUAL", 2, 2, equal_builtin),
    builtin("EQUALP", 2, 2, equalp_builtin),
    builtin("NOT", 1, 1, |cx, args| Ok(cx.truth(args[0].is_nil()))),
    builtin("NULL", 1, 1, |cx, args| Ok(cx.truth(args[0].is_nil()))),
];

/// Returns whether two values are the same object, or numbers of one type and value. EusLisp's floats are stored in
/// the word, so its `eq` behaves like this, too.
#[inline]
pub(crate) fn eql(a: Value, b: Value) -> bool {
    a == b || (a.is_object() && b.is_object() && same_number(a, b))
}

fn same_number(a: Value, b: Value) -> bool {
    let (ha, hb) = (a.header(), b.header());
    if ha.kind() != hb.kind() {
        return false;
    }
    match ha.kind() {
        ObjectKind::Float => a.get(1) == b.get(1),
        ObjectKind::Bignum => ha.flags() == hb.flags() && a.integers() == b.integers(),
        ObjectKind::Ratio => eql(a.slot(0), b.slot(0)) && eql(a.slot(1), b.slot(1)),
        _ => false,
    }
}

/// Compares floats, a group at a time, which the processor does with vectors.
fn same_floats(a: &[f64], b: &[f64]) -> bool {
    const GROUP: usize = 64;
    let same = |(a, b): (&[f64], &[f64])| a.iter().zip(b).fold(true, |same, (a, b)| same & (a == b));
    a.len() == b.len() && a.chunks(GROUP).zip(b.chunks(GROUP)).all(same)
}

fn equal_builtin(cx: &mut Context, args: Args<'_>) -> Answer {
    let same = equal(cx, args[0], args[1], false)?;
    Ok(cx.truth(same))
}

fn equalp_builtin(cx: &mut Context, args: Args<'_>) -> Answer {
    let same = equal(cx, args[0], args[1], true)?;
    Ok(cx.truth(same))
}

/// Compares two values by structure; `loose` also equates numbers of one value and letters of either case. Objects of
/// one class are compared slot by slot.
pub(crate) fn equal(cx: &mut Context, a: Value, b: Value, loose: bool) -> Result<bool, Exit> {
    Comparison { loose, met: HashSet::new() }.same(cx, a, b)
}

/// A comparison that is under way.
struct Comparison {
    loose: bool,
    /// Pairs of objects that are compared already, so that the comparison of circular structures ends.
    met: HashSet<(Value, Value)>,
}

impl Comparison {
    fn same(&mut self, cx: &mut Context, a: Value, b: Value) -> Result<bool, Exit> {
        let (mut a, mut b) = (a, b);
        cx.check_stack()?;
        let mut circle = Circle::new();
        while a.is_cons() && b.is_cons() {
            if a == b || circle.closes_at((a, b)) {
                return Ok(true);
            }
            if !self.same(cx, a.get(0), b.get(0))? {
                return Ok(false);
            }
            (a, b) = (a.get(1), b.get(1));
        }
        if eql(a, b) {
            return Ok(true);
        }
        if self.loose && cx.is_number(a) && cx.is_number(b) {
            return super::number::compare(cx, a, b).map(std::cmp::Ordering::is_eq);
        }
        if !a.is_object() || !b.is_object() || a.header().kind() != b.header().kind() {
            return Ok(false);
        }
        Ok(match a.header().kind() {
            ObjectKind::String if self.loose => a.bytes().eq_ignore_ascii_case(b.bytes()),
            ObjectKind::String => a.bytes() == b.bytes(),
            ObjectKind::FloatVector => same_floats(a.floats(), b.floats()),
            ObjectKind::IntegerVector => a.integers() == b.integers(),
            ObjectKind::BitVector => super::vector::same_bits(a, b),
            ObjectKind::Vector => self.same_slots(cx, a, b, 0)?,
            // The property list is not compared.
            ObjectKind::Array => self.same_slots(cx, a, b, 1)?,
            ObjectKind::Instance => {
                a.header().class() == b.header().class()
                    && !cx.is_class(a)
                    && (!self.met.insert((a, b)) || self.same_slots(cx, a, b, 0)?)
            }
            _ => false,
        })
    }

    /// Compares the slots or elements from an index on.
    fn same_slots(&mut self, cx: &mut Context, a: Value, b: Value, from: usize) -> Result<bool, Exit> {
        if a.length() != b.length() {
            return Ok(false);
        }
        for index in from..a.length() {
            let (a, b) = (a.slot(index), b.slot(index));
            if a != b && !self.same(cx, a, b)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
