//! Implements conses, lists, association lists.

mod copy;
mod sets;
mod tree;
mod walk;

use super::compare::equal;
use super::search::Matcher;
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value};
use crate::world::class;
use copy::{append, butlast, copy_alist, copy_tree, nconc};
pub(crate) use copy::{copy, copy_onto, reverse_onto};
use sets::{
    adjoin, assoc, assoc_if, difference, exclusive_or, intersection, member, member_if, subsetp, union,
};
use tree::{flatten, sublis, subst};
pub(crate) use walk::{along, circular, nth_tail, proper_length};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("CONS", 2, 2, |cx, args| cx.cons(args[0], args[1])),
    builtin("CAR", 1, 1, |cx, args| path(cx, args[0], b"a")),
    builtin("CDR", 1, 1, |cx, args| path(cx, args[0], b"d")),
    builtin("CAAR", 1, 1, |cx, args| path(cx, args[0], b"aa")),
    builtin("CADR", 1, 1, |cx, args| path(cx, args[0], b"da")),
    builtin("CDAR", 1, 1, |cx, args| path(cx, args[0], b"ad")),
    builtin("CDDR", 1, 1, |cx, args| path(cx, args[0], b"dd")),
    builtin("CAAAR", 1, 1, |cx, args| path(cx, args[0], b"aaa")),
    builtin("CAADR", 1, 1, |cx, args| path(cx, args[0], b"daa")),
    builtin("CADAR", 1, 1, |cx, args| path(cx, args[0], b"ada")),
    builtin("CADDR", 1, 1, |cx, args| path(cx, args[0], b"dda")),
    builtin("CDAAR", 1, 1, |cx, args| path(cx, args[0], b"aad")),
    builtin("CDADR", 1, 1, |cx, args| path(cx, args[0], b"dad")),
    builtin("CDDAR", 1, 1, |cx, args| path(cx, args[0], b"add")),
    builtin("CDDDR", 1, 1, |cx, args| path(cx, args[0], b"ddd")),
    builtin("CADDDR", 1, 1, |cx, args| path(cx, args[0], b"ddda")),
    builtin("FIRST", 1, 1, |cx, args| path(cx, args[0], b"a")),
    builtin("REST", 1, 1, |cx, args| path(cx, args[0], b"d")),
    builtin("SECOND", 1, 1, |cx, args| path(cx, args[0], b"da")),
    builtin("THIRD", 1, 1, |cx, args| path(cx, args[0], b"dda")),
    builtin("FOURTH", 1, 1, |cx, args| path(cx, args[0], b"ddda")),
    builtin("FIFTH", 1, 1, |cx, args| path(cx, args[0], b"dddda")),
    builtin("SIXTH", 1, 1, |cx, args| path(cx, args[0], b"ddddda")),
    builtin("SEVENTH", 1, 1, |cx, args| path(cx, args[0], b"dddddda")),
    builtin("EIGHTH", 1, 1, |cx, args| path(cx, args[0], b"ddddddda")),
    builtin("RPLACA", 2, 2, |cx, args| replace(cx, args, 0, 0)),
    builtin("RPLACD", 2, 2, |cx, args| replace(cx, args, 1, 0)),
    builtin("RPLACA2", 2, 2, |cx, args| replace(cx, args, 0, 1)),
    builtin("RPLACD2", 2, 2, |cx, args| replace(cx, args, 1, 1)),
    builtin("LIST", 0, MANY, |cx, args| cx.list(&args)),
    builtin("VALUES", 0, MANY, |cx, args| cx.list(&args)),
    builtin("LIST*", 1, MANY, |cx, args| cx.list_star(&args[..args.len() - 1], args[args.len() - 1])),
    builtin("MAKE-LIST", 1, MANY, make_list),
    builtin("CONSP", 1, 1, |cx, args| Ok(cx.truth(args[0].is_cons()))),
    builtin("LISTP", 1, 1, |cx, args| Ok(cx.truth(args[0].is_list()))),
    builtin("ATOM", 1, 1, |cx, args| Ok(cx.truth(!args[0].is_cons()))),
    builtin("ENDP", 1, 1, |cx, args| Ok(cx.truth(!args[0].is_cons()))),
    builtin("NTH", 2, 2, |cx, args| {
        args.size(cx, 0).and_then(|index| nth_tail(cx, index, args[1])).map(Value::car)
    }),
    builtin("NTHCDR", 2, 2, |cx, args| args.size(cx, 0).and_then(|index| nth_tail(cx, index, args[1]))),
    builtin("LARGESSE:SET-NTH", 3, 3, |cx, args| {
        let index = args.size(cx, 0)?;
        if !args[1].is_list() {
            return cx.type_error("list", args[1]);
        }
        super::sequence::set_elt(cx, args[1], index, args[2])?;
        Ok(args[2])
    }),
    builtin("LAST", 1, 2, last),
    builtin("BUTLAST", 1, 2, butlast),
    builtin("NBUTLAST", 1, 2, butlast),
    builtin("LIST-LENGTH", 1, 1, list_length),
    builtin("APPEND", 0, MANY, append),
    builtin("NCONC", 0, MANY, nconc),
    builtin("REVAPPEND", 2, 2, |cx, args| reverse_onto(cx, args[0], args[1])),
    builtin("COPY-LIST", 1, 1, |cx, args| copy(cx, args[0])),
    builtin("COPY-TREE", 1, 1, |cx, args| copy_tree(cx, args[0])),
    builtin("COPY-ALIST", 1, 1, copy_alist),
    builtin("ACONS", 3, 3, |cx, args| {
        let pair = cx.cons(args[0], args[1])?;
        cx.cons(pair, args[2])
    }),
    builtin("ASSOC", 2, MANY, |cx, args| assoc(cx, args, Value::car)),
    builtin("ASSOC-IF", 2, MANY, |cx, args| assoc_if(cx, args, Value::car)),
    builtin("RASSOC", 2, MANY, |cx, args| assoc(cx, args, Value::cdr)),
    builtin("ASSQ", 2, 2, |_, args| {
        Ok(args[1].iter().find(|pair| pair.is_cons() && pair.get(0) == args[0]).unwrap_or(Value::NIL))
    }),
    builtin("MEMBER", 2, MANY, member),
    builtin("MEMBER-IF", 2, MANY, member_if),
    builtin("MEMQ", 2, 2, |_, args| {
        Ok(args[1].tails().find(|tail| tail.get(0) == args[0]).unwrap_or(Value::NIL))
    }),
    builtin("ADJOIN", 2, MANY, adjoin),
    builtin("UNION", 2, MANY, union),
    builtin("INTERSECTION", 2, MANY, intersection),
    builtin("SET-DIFFERENCE", 2, MANY, difference),
    builtin("SET-EXCLUSIVE-OR", 2, MANY, exclusive_or),
    builtin("SUBSETP", 2, MANY, subsetp),
    builtin("SUBST", 3, MANY, |cx, args| {
        let mut matcher = Matcher::of(cx, args.from(3))?;
        if args.len() == 3 {
            // Without a test, EusLisp finds equal trees.
            matcher.test = cx.installed_function("EQUAL")?;
        }
        subst(cx, &matcher, args[0], args[1], args[2])
    }),
    builtin("SUBLIS", 2, MANY, |cx, args| {
        let matcher = Matcher::of(cx, args.from(2))?;
        sublis(cx, &matcher, args[0], args[1])
    }),
    builtin("TREE-EQUAL", 2, 2, |cx, args| {
        let same = equal(cx, args[0], args[1], false)?;
        Ok(cx.truth(same))
    }),
    builtin("LDIFF", 2, 2, ldiff),
    builtin("TAILP", 2, 2, |cx, args| {
        let mut end = args[1];
        let found = args[1].tails().any(|tail| {
            end = tail.get(1);
            tail == args[0]
        });
        Ok(cx.truth(found || end == args[0]))
    }),
    builtin("FLATTEN", 1, 1, |cx, args| {
        let mark = cx.mark();
        flatten(cx, args[0])?;
        cx.stacked(mark)
    }),
    builtin("LIST-INSERT", 3, 3, list_insert),
];

impl Context {
    /// Returns the car (index 0) or cdr (1) of a value that is no cons: nil of nil, and a slot of an instance of a class
    /// below `cons`, such as a queue.
    #[cold]
    pub(crate) fn list_part(&mut self, value: Value, index: usize) -> Answer {
        if value.is_nil() {
            return Ok(value);
        }
        if value.is(ObjectKind::Instance) && self.derives(self.world.class_of(value), class::CONS) {
            return Ok(value.slot(index));
        }
        self.type_error("list", value)
    }
}

/// Follows `a` and `d` steps; nil ends the path.
#[inline]
fn path(cx: &mut Context, value: Value, steps: &[u8]) -> Answer {
    let mut at = value;
    for step in steps {
        let index = usize::from(*step == b'd');
        at = if at.is_cons() { at.get(index) } else { cx.list_part(at, index)? };
    }
    Ok(at)
}

fn replace(cx: &mut Context, args: Args<'_>, word: usize, give: usize) -> Answer {
    if !args[0].is_cons() {
        return cx.type_error("cons", args[0]);
    }
    args[0].set(word, args[1]);
    Ok(args[give])
}

fn make_list(cx: &mut Context, args: Args<'_>) -> Answer {
    let size = args.size(cx, 0)?;
    let [initial] = cx.keywords(args.from(1), [cx.world.names.initial_element])?;
    let mark = cx.mark();
    cx.push(Value::NIL)?;
    for count in 1..=size {
        let longer = cx.cons(initial.given_or_nil(), cx.root(mark, 0))?;
        cx.put_root(mark, longer);
        if count % (1 << 16) == 0 {
            cx.poll()?;
        }
    }
    Ok(cx.root(mark, 0))
}

fn list_length(cx: &mut Context, args: Args<'_>) -> Answer {
    if !args[0].is_list() {
        return cx.type_error("list", args[0]);
    }
    proper_length(cx, args[0]).map(|count| Value::fixnum(count as i64))
}

fn last(cx: &mut Context, args: Args<'_>) -> Answer {
    let count = if args.len() > 1 { args.size(cx, 1)? } else { 1 };
    let drop = proper_length(cx, args[0])?.saturating_sub(count);
    let mut rest = args[0];
    for _ in 0..drop {
        rest = rest.cdr();
    }
    Ok(rest)
}

fn ldiff(cx: &mut Context, args: Args<'_>) -> Answer {
    let mark = cx.mark();
    let mut rest = args[0];
    while rest.is_cons() && rest != args[1] {
        cx.push(rest.get(0))?;
        rest = rest.get(1);
    }
    cx.stacked(mark)
}

/// Implements `(list-insert item position list)`.
fn list_insert(cx: &mut Context, args: Args<'_>) -> Answer {
    let at = args.size(cx, 1)?;
    let mark = cx.mark();
    let items: Vec<Value> = args[2].iter().collect();
    for (index, item) in items.iter().enumerate() {
        if index == at {
            cx.push(args[0])?;
        }
        cx.push(*item)?;
    }
    if at >= items.len() {
        cx.push(args[0])?;
    }
    cx.stacked(mark)
}
