//! Implements searching, counting and removing, with `:test`, `:test-not`, `:key`, `:start`, `:end`, `:count` and
//! `:from-end`.

use super::compare::eql;
use super::hash::hash_eql;
use super::sequence::{VectorSlice, build_like, copy_seq, in_heap, items, joined, set_elt, written_back};
use super::vector::set_element;
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("FIND", 2, MANY, |cx, args| find(cx, args, Sort::Item, Give::Item)),
    builtin("FIND-IF", 2, MANY, |cx, args| find(cx, args, Sort::If, Give::Item)),
    builtin("FIND-IF-NOT", 2, MANY, |cx, args| find(cx, args, Sort::IfNot, Give::Item)),
    builtin("POSITION", 2, MANY, |cx, args| find(cx, args, Sort::Item, Give::Index)),
    builtin("POSITION-IF", 2, MANY, |cx, args| find(cx, args, Sort::If, Give::Index)),
    builtin("POSITION-IF-NOT", 2, MANY, |cx, args| find(cx, args, Sort::IfNot, Give::Index)),
    builtin("COUNT", 2, MANY, |cx, args| find(cx, args, Sort::Item, Give::Count)),
    builtin("COUNT-IF", 2, MANY, |cx, args| find(cx, args, Sort::If, Give::Count)),
    builtin("COUNT-IF-NOT", 2, MANY, |cx, args| find(cx, args, Sort::IfNot, Give::Count)),
    builtin("REMOVE", 2, MANY, |cx, args| remove(cx, args, Sort::Item)),
    builtin("REMOVE-IF", 2, MANY, |cx, args| remove(cx, args, Sort::If)),
    builtin("REMOVE-IF-NOT", 2, MANY, |cx, args| remove(cx, args, Sort::IfNot)),
    builtin("DELETE", 2, MANY, delete),
    builtin("DELETE-IF", 2, MANY, |cx, args| remove(cx, args, Sort::If)),
    builtin("DELETE-IF-NOT", 2, MANY, |cx, args| remove(cx, args, Sort::IfNot)),
    builtin("SUBSTITUTE", 3, MANY, |cx, args| substituted_copy(cx, args, Sort::Item)),
    builtin("SUBSTITUTE-IF", 3, MANY, |cx, args| substituted_copy(cx, args, Sort::If)),
    builtin("SUBSTITUTE-IF-NOT", 3, MANY, |cx, args| substituted_copy(cx, args, Sort::IfNot)),
    builtin("NSUBSTITUTE", 3, MANY, |cx, args| {
        written_back(cx, args, 2, |cx, args| substitute(cx, args, Sort::Item))
    }),
    builtin("NSUBSTITUTE-IF", 3, MANY, |cx, args| {
        written_back(cx, args, 2, |cx, args| substitute(cx, args, Sort::If))
    }),
    builtin("NSUBSTITUTE-IF-NOT", 3, MANY, |cx, args| {
        written_back(cx, args, 2, |cx, args| substitute(cx, args, Sort::IfNot))
    }),
    builtin("REMOVE-DUPLICATES", 1, MANY, remove_duplicates),
    builtin("DELETE-DUPLICATES", 1, MANY, remove_duplicates),
    builtin("MISMATCH", 2, MANY, mismatch),
    builtin("SEARCH", 2, MANY, search),
];

/// Holds the comparison of items, and the part of a sequence that is searched.
pub(super) struct Matcher {
    pub(super) test: Value,
    negated: bool,
    key: Value,
    start: usize,
    end: Option<usize>,
    count: Option<usize>,
    from_end: bool,
}

impl Matcher {
    pub(super) fn of(cx: &mut Context, options: Args<'_>) -> Result<Matcher, Exit> {
        let names = cx.world.names;
        let known =
            [names.test, names.test_not, names.key_key, names.start, names.end, names.count, names.from_end];
        let [test, test_not, key, start, end, count, from_end] =
            cx.keywords(options, known)?.map(Value::given_or_nil);
        let mut sizes = [None; 3];
        for (size, value) in sizes.iter_mut().zip([start, end, count]) {
            if !value.is_nil() {
                *size = Some(cx.size(value)?);
            }
        }
        Ok(Matcher {
            test: if test_not.is_nil() { test } else { test_not },
            negated: !test_not.is_nil(),
            key,
            start: sizes[0].unwrap_or(0),
            end: sizes[1],
            count: sizes[2],
            from_end: !from_end.is_nil(),
        })
    }

    pub(super) fn key(&self, cx: &mut Context, item: Value) -> Answer {
        if self.key.is_nil() { Ok(item) } else { cx.apply(self.key, &[item]) }
    }

    /// Returns whether an item of a sequence matches the wanted one.
    pub(super) fn matches(&self, cx: &mut Context, wanted: Value, item: Value) -> Result<bool, Exit> {
        let key = self.key(cx, item)?;
        let same = if self.test.is_nil() {
            eql(wanted, key)
        } else {
            !cx.apply(self.test, &[wanted, key])?.is_nil()
        };
        Ok(same != self.negated)
    }

    pub(super) fn satisfies(&self, cx: &mut Context, predicate: Value, item: Value) -> Result<bool, Exit> {
        let key = self.key(cx, item)?;
        Ok(!cx.apply(predicate, &[key])?.is_nil())
    }

    /// Returns whether items are compared by `eql`, as they are.
    fn is_plain(&self) -> bool {
        self.test.is_nil() && self.key.is_nil() && !self.negated
    }

    /// Returns whether all items of the sequence that are `eql` match.
    fn is_whole(&self) -> bool {
        self.is_plain() && self.start == 0 && self.end.is_none() && self.count.is_none()
    }

    /// Returns the searched part of a sequence, as EusLisp: an end after the last element is that of the sequence, and
    /// a part that starts after its end is empty.
    fn range(&self, length: usize) -> std::ops::Range<usize> {
        let end = self.end.unwrap_or(length).min(length);
        self.start.min(end)..end
    }
}

/// Tells the role of the first argument: an item to match, or a predicate.
#[derive(Clone, Copy)]
enum Sort {
    Item,
    If,
    IfNot,
}

impl Sort {
    fn holds(self, cx: &mut Context, matcher: &Matcher, wanted: Value, item: Value) -> Result<bool, Exit> {
        match self {
            Sort::Item => matcher.matches(cx, wanted, item),
            Sort::If => matcher.satisfies(cx, wanted, item),
            Sort::IfNot => matcher.satisfies(cx, wanted, item).map(|yes| !yes),
        }
    }
}

#[derive(Clone, Copy)]
enum Give {
    Item,
    Index,
    Count,
}

fn find(cx: &mut Context, args: Args<'_>, sort: Sort, give: Give) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    if matches!(sort, Sort::Item) && matcher.is_plain() && !args[1].is_list() && matcher.count.is_none() {
        return find_in_vector(cx, &matcher, args[0], args[1], give);
    }
    let first = cx.mark();
    let all = items(cx, args[1])?;
    let range = matcher.range(all);
    let mut count = 0_usize;
    // With `:count`, EusLisp finds the n-th match.
    let nth = matcher.count.unwrap_or(1).max(1);
    let turned = matcher.from_end;
    for step in 0..range.len() {
        let index = if turned { range.end - 1 - step } else { range.start + step };
        let item = cx.root(first, index);
        if sort.holds(cx, &matcher, args[0], item)? {
            count += 1;
            match give {
                Give::Item if count == nth => return Ok(item),
                Give::Index if count == nth => return Ok(Value::fixnum(index as i64)),
                _ => {}
            }
        }
    }
    Ok(if matches!(give, Give::Count) { Value::fixnum(count as i64) } else { Value::NIL })
}

/// Finds an item by `eql` in the storage of a vector.
fn find_in_vector(cx: &mut Context, matcher: &Matcher, item: Value, vector: Value, give: Give) -> Answer {
    let vector = in_heap(cx, vector)?;
    let slice = VectorSlice::of(cx, vector)?;
    let range = matcher.range(slice.range.len());
    let start = range.start;
    let part = slice.part(range);
    if matches!(give, Give::Count) {
        return Ok(Value::fixnum(part.count(item) as i64));
    }
    let Some(index) = part.position(item, matcher.from_end) else { return Ok(Value::NIL) };
    Ok(if matches!(give, Give::Item) { item } else { Value::fixnum((start + index) as i64) })
}

/// Marks the matching items, at most `:count` of them, from the end with `:from-end`.
fn marked(
    cx: &mut Context,
    matcher: &Matcher,
    sort: Sort,
    wanted: Value,
    first: crate::context::RootMark,
    length: usize,
) -> Result<Vec<bool>, Exit> {
    let range = matcher.range(length);
    let mut holds = vec![false; length];
    let mut left = matcher.count.unwrap_or(usize::MAX);
    for step in 0..range.len() {
        if left == 0 {
            break;
        }
        let index = if matcher.from_end { range.end - 1 - step } else { range.start + step };
        if sort.holds(cx, matcher, wanted, cx.root(first, index))? {
            holds[index] = true;
            left -= 1;
        }
    }
    Ok(holds)
}

fn remove(cx: &mut Context, args: Args<'_>, sort: Sort) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    if matches!(sort, Sort::Item) && matcher.is_whole() && !args[1].is_list() {
        return without(cx, args[0], args[1]);
    }
    let first = cx.mark();
    let length = items(cx, args[1])?;
    let gone = marked(cx, &matcher, sort, args[0], first, length)?;
    let kept = cx.mark();
    for (index, gone) in gone.into_iter().enumerate() {
        if !gone {
            cx.push(cx.root(first, index))?;
        }
    }
    let count = cx.above(kept);
    // The rest of a list after a dot stays.
    let end = args[1].tails().last().map_or(Value::NIL, Value::cdr);
    if args[1].is_list() && !end.is_nil() {
        return cx.list_of_roots(kept, 0..count, end);
    }
    build_like(cx, args[1], kept, count)
}

/// Copies a vector without the elements that are `eql` to an item.
fn without(cx: &mut Context, item: Value, vector: Value) -> Answer {
    let vector = in_heap(cx, vector)?;
    let slice = VectorSlice::of(cx, vector)?;
    // An array may get another vector during the allocation.
    cx.push(slice.vector)?;
    let (mut kept, mut start, count) = (Vec::new(), 0, slice.range.len());
    if let (ObjectKind::BitVector, gone @ 1..) = (slice.kind(), slice.count(item)) {
        // The bits that stay are all the other one.
        kept.push(slice.part(gone..count));
        let rest = joined(cx, slice.kind(), slice.vector.header().class(), &kept)?;
        let other = Value::fixnum(i64::from(item == Value::fixnum(0)));
        VectorSlice::of(cx, rest)?.fill(cx, other)?;
        return Ok(rest);
    }
    while let Some(at) = slice.part(start..count).position(item, false) {
        if at > 0 {
            kept.push(slice.part(start..start + at));
        }
        start += at + 1;
    }
    kept.push(slice.part(start..count));
    joined(cx, slice.kind(), slice.vector.header().class(), &kept)
}

/// Removes the elements that are `eql` to an item; a list keeps its other conses.
fn delete(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(2))?;
    if !matcher.is_whole() {
        return remove(cx, args, Sort::Item);
    }
    if !args[1].is_list() {
        let vector = in_heap(cx, args[1])?;
        return match VectorSlice::of(cx, vector)?.position(args[0], false) {
            Some(_) => without(cx, args[0], vector),
            None => Ok(args[1]),
        };
    }
    let (mut first, mut before) = (args[1], Value::NIL);
    for tail in args[1].tails() {
        if !eql(args[0], tail.get(0)) {
            before = tail;
        } else if before.is_nil() {
            first = tail.get(1);
        } else {
            before.set(1, tail.get(1));
        }
    }
    Ok(first)
}

/// Implements `(substitute new old sequence)` and its kind by changing a copy.
fn substituted_copy(cx: &mut Context, args: Args<'_>, sort: Sort) -> Answer {
    let copied = copy_seq(cx, args[2])?;
    let first = cx.mark();
    for (index, value) in args.iter().enumerate() {
        cx.push(if index == 2 { copied } else { *value })?;
    }
    let changed = cx.arguments(first, args.len());
    substitute(cx, changed, sort)
}

/// Writes a new item over the matching elements of a sequence.
fn substitute(cx: &mut Context, args: Args<'_>, sort: Sort) -> Answer {
    let matcher = Matcher::of(cx, args.from(3))?;
    let plain = matches!(sort, Sort::Item) && matcher.is_whole();
    if plain && args[2].is_list() {
        for tail in args[2].tails().filter(|tail| eql(args[1], tail.get(0))) {
            tail.set(0, args[0]);
        }
        return Ok(args[2]);
    }
    if plain {
        let slice = VectorSlice::of(cx, args[2])?;
        let (mut start, count) = (0, slice.range.len());
        while let Some(at) = slice.part(start..count).position(args[1], false) {
            start += at + 1;
            set_element(cx, slice.vector, slice.range.start + start - 1, args[0])?;
        }
        return Ok(args[2]);
    }
    let first = cx.mark();
    let length = items(cx, args[2])?;
    let changed = marked(cx, &matcher, sort, args[1], first, length)?;
    if args[2].is_list() {
        for (tail, _) in args[2].tails().zip(changed).filter(|(_, changed)| *changed) {
            tail.set(0, args[0]);
        }
        return Ok(args[2]);
    }
    for index in changed.into_iter().enumerate().filter_map(|(index, changed)| changed.then_some(index)) {
        set_elt(cx, args[2], index, args[0])?;
    }
    Ok(args[2])
}

/// An item of a set whose items are compared by `eql`.
struct ByEql(Value);

impl PartialEq for ByEql {
    fn eq(&self, other: &ByEql) -> bool {
        eql(self.0, other.0)
    }
}

impl Eq for ByEql {}

impl Hash for ByEql {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(hash_eql(self.0));
    }
}

/// Number of items up to which comparing all takes less time than a hash.
const FEW: usize = 8;

/// Removes duplicates; the last of equal items stays, as in EusLisp.
fn remove_duplicates(cx: &mut Context, args: Args<'_>) -> Answer {
    let matcher = Matcher::of(cx, args.from(1))?;
    let first = cx.mark();
    let length = items(cx, args[0])?;
    let kept = cx.mark();
    if matcher.is_plain() {
        let (mut last, mut later) = (Vec::new(), HashSet::new());
        for index in (0..length).rev() {
            let item = cx.root(first, index);
            let is_known = if last.len() <= FEW {
                last.iter().any(|other| eql(*other, item))
            } else {
                later.contains(&ByEql(item))
            };
            if !is_known {
                last.push(item);
                later.insert(ByEql(item));
            }
        }
        last.reverse();
        for item in &last {
            cx.push(*item)?;
        }
        return build_like(cx, args[0], kept, last.len());
    }
    'items: for index in 0..length {
        let item = cx.root(first, index);
        let key = matcher.key(cx, item)?;
        for later in index + 1..length {
            if matcher.matches(cx, key, cx.root(first, later))? {
                continue 'items;
            }
        }
        cx.push(item)?;
    }
    let count = cx.above(kept);
    build_like(cx, args[0], kept, count)
}

/// Returns the comparison and the bounds for two sequences.
fn pair(cx: &mut Context, options: Args<'_>) -> Result<(Matcher, [Option<usize>; 4]), Exit> {
    let names = cx.world.names;
    let known =
        [names.test, names.key_key, names.start1, names.end1, names.start2, names.end2, names.from_end];
    let [test, key, bounds @ .., from_end] = cx.keywords(options, known)?.map(Value::given_or_nil);
    let mut sizes = [None; 4];
    for (size, value) in sizes.iter_mut().zip(bounds) {
        if !value.is_nil() {
            *size = Some(cx.size(value)?);
        }
    }
    let from_end = !from_end.is_nil();
    Ok((Matcher { test, negated: false, key, start: 0, end: None, count: None, from_end }, sizes))
}

fn same_at(cx: &mut Context, matcher: &Matcher, a: Value, b: Value) -> Result<bool, Exit> {
    let key = matcher.key(cx, a)?;
    cx.push(key)?;
    matcher.matches(cx, key, b)
}

fn mismatch(cx: &mut Context, args: Args<'_>) -> Answer {
    let (matcher, [start1, end1, start2, end2]) = pair(cx, args.from(2))?;
    let one = cx.mark();
    let length1 = items(cx, args[0])?;
    let two = cx.mark();
    let length2 = items(cx, args[1])?;
    let (end1, end2) = (end1.unwrap_or(length1).min(length1), end2.unwrap_or(length2).min(length2));
    let (mut i, mut j) = (start1.unwrap_or(0), start2.unwrap_or(0));
    while i < end1 && j < end2 {
        if !same_at(cx, &matcher, cx.root(one, i), cx.root(two, j))? {
            return Ok(Value::fixnum(i as i64));
        }
        i += 1;
        j += 1;
    }
    Ok(if i < end1 || j < end2 { Value::fixnum(i as i64) } else { Value::NIL })
}

fn search(cx: &mut Context, args: Args<'_>) -> Answer {
    let (matcher, [start1, end1, start2, end2]) = pair(cx, args.from(2))?;
    let one = cx.mark();
    let length1 = items(cx, args[0])?;
    let two = cx.mark();
    let length2 = items(cx, args[1])?;
    let (start1, start2) = (start1.unwrap_or(0), start2.unwrap_or(0));
    let (end1, end2) = (end1.unwrap_or(length1).min(length1), end2.unwrap_or(length2).min(length2));
    let wanted = end1.saturating_sub(start1);
    let mut found = None;
    for at in start2..=end2.saturating_sub(wanted) {
        if at + wanted > end2 {
            break;
        }
        let mut all = true;
        for step in 0..wanted {
            let mark = cx.mark();
            all = same_at(cx, &matcher, cx.root(one, start1 + step), cx.root(two, at + step))?;
            cx.release(mark);
            if !all {
                break;
            }
        }
        if all {
            found = Some(at);
            if !matcher.from_end {
                break;
            }
        }
    }
    Ok(found.map_or(Value::NIL, |at| Value::fixnum(at as i64)))
}
