//! Implements functions on lists and vectors alike.

mod build;
mod change;
mod elements;
mod slice;
mod walk;

use super::list::copy_onto;
use super::vector::slot;
use crate::builtin::{Builtin, MANY, builtin};
use crate::value::{ObjectKind, Value};
pub(super) use build::{build_like, copy_seq, copy_vector, joined};
use build::{coerce, concatenate, nreverse, reverse, subseq};
pub(super) use change::bounds;
use change::{fill, replace, vector_pop, vector_push};
pub(crate) use elements::{elt, in_heap, items, length, set_elt, written_back};
pub(super) use slice::VectorSlice;
use walk::{map, quantify, reduce};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("LENGTH", 1, 1, |cx, args| {
        let count = length(cx, args[0])?;
        Ok(Value::fixnum(count as i64))
    }),
    builtin("ELT", 2, 2, |cx, args| {
        let index = args.size(cx, 1)?;
        elt(cx, args[0], index)
    }),
    builtin("SETELT", 3, 3, |cx, args| {
        let index = args.size(cx, 1)?;
        set_elt(cx, args[0], index, args[2])?;
        Ok(args[2])
    }),
    builtin("SUBSEQ", 2, 3, subseq),
    builtin("COPY-SEQ", 1, 1, |cx, args| {
        // A value after a dot is no element.
        if args[0].is_list() { copy_onto(cx, args[0], Value::NIL) } else { copy_seq(cx, args[0]) }
    }),
    builtin("REVERSE", 1, 1, reverse),
    builtin("NREVERSE", 1, 1, |cx, args| written_back(cx, args, 0, nreverse)),
    builtin("CONCATENATE", 1, MANY, concatenate),
    builtin("COERCE", 2, 2, coerce),
    builtin("FILL", 2, MANY, |cx, args| written_back(cx, args, 0, fill)),
    builtin("REPLACE", 2, MANY, |cx, args| written_back(cx, args, 0, replace)),
    builtin("REDUCE", 2, MANY, reduce),
    builtin("EVERY", 2, MANY, |cx, args| quantify(cx, args, |value| value.is_nil(), false, true)),
    builtin("SOME", 2, MANY, |cx, args| quantify(cx, args, |value| !value.is_nil(), true, false)),
    builtin("NOTANY", 2, MANY, |cx, args| quantify(cx, args, |value| !value.is_nil(), false, true)),
    builtin("NOTEVERY", 2, MANY, |cx, args| {
        let every = quantify(cx, args, |value| value.is_nil(), false, true)?;
        Ok(cx.truth(every.is_nil()))
    }),
    builtin("MAP", 3, MANY, map),
    builtin("VECTOR-PUSH", 2, 2, |cx, args| vector_push(cx, args, false)),
    builtin("VECTOR-PUSH-EXTEND", 2, 3, |cx, args| vector_push(cx, args, true)),
    builtin("VECTOR-POP", 1, 1, vector_pop),
    builtin("FILL-POINTER", 1, 1, |_, args| {
        Ok(if args[0].is(ObjectKind::Array) { args[0].slot(slot::FILL_POINTER) } else { Value::NIL })
    }),
];
