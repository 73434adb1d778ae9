//! Implements hash tables by open addressing in two vectors of the heap.
//!
//! Slots: keys, values, size (the `:size` option), count, filled (count plus removed entries), test. Objects never
//! move, so the address of a key is a stable hash.
//!
//! A table by `equal` finds an instance by its address, as EusLisp does: its slots may change while it is a key. So it
//! does not find an instance that equals a key, but a list that holds an instance equal to one in a key.

use super::compare::{eql, equal};
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("MAKE-HASH-TABLE", 0, MANY, make),
    builtin("HASH-TABLE-P", 1, 1, |cx, args| Ok(cx.truth(is_table(cx, args[0])))),
    builtin("GETHASH", 2, 3, |cx, args| {
        let places = places(cx, args[1])?;
        let place = find(cx, args[1], places, args[0])?;
        Ok(place.map_or(args.or_nil(2), |place| places.values.slot(place)))
    }),
    builtin("SETHASH", 3, 3, |cx, args| {
        // The arguments are (key table value).
        put(cx, args[1], args[0], args[2])?;
        Ok(args[2])
    }),
    builtin("LARGESSE:SET-GETHASH", 3, 4, |cx, args| {
        let value = args[args.len() - 1];
        put(cx, args[1], args[0], value)?;
        Ok(value)
    }),
    builtin("REMHASH", 2, 2, |cx, args| {
        let places = places(cx, args[1])?;
        let Some(place) = find(cx, args[1], places, args[0])? else { return Ok(Value::NIL) };
        places.keys.set_slot(place, Value::REMOVED);
        places.values.set_slot(place, Value::NIL);
        let count = args[1].slot(COUNT).as_fixnum().unwrap_or(1);
        args[1].set_slot(COUNT, Value::fixnum(count - 1));
        Ok(cx.truth(true))
    }),
    builtin("CLRHASH", 1, 1, |cx, args| {
        places(cx, args[0])?;
        clear(cx, args[0], SMALLEST)?;
        Ok(args[0])
    }),
    builtin("HASH-TABLE-COUNT", 1, 1, |cx, args| {
        places(cx, args[0])?;
        Ok(args[0].slot(COUNT))
    }),
    builtin("MAPHASH", 2, 2, |cx, args| {
        for (key, value) in pairs(cx, args[1])? {
            cx.apply(args[0], &[key, value])?;
        }
        Ok(Value::NIL)
    }),
    builtin("HASH-LIST", 1, 1, |cx, args| {
        // The result is ((key . value) ...).
        let all = pairs(cx, args[0])?;
        let mark = cx.mark();
        for (key, value) in all {
            let pair = cx.cons(key, value)?;
            cx.push(pair)?;
        }
        cx.stacked(mark)
    }),
    builtin("SXHASH", 1, 2, |_, args| Ok(Value::fixnum((hash_equal(args[0]) >> 3).cast_signed()))),
];

const KEYS: usize = 1;
const VALUES: usize = 2;
const SIZE: usize = 3;
const COUNT: usize = 4;
const FILLED: usize = 5;
const TEST: usize = 6;
const SMALLEST: usize = 16;

fn is_table(cx: &Context, value: Value) -> bool {
    value.is(ObjectKind::Instance) && cx.derives(cx.world.class_of(value), class::HASH_TABLE)
}

/// Holds the two vectors of a table. Another thread, or the table's own test, may replace them at any time; an
/// operation continues with the vectors it read.
#[derive(Clone, Copy)]
struct Places {
    keys: Value,
    values: Value,
}

fn places(cx: &mut Context, table: Value) -> Result<Places, Exit> {
    if is_table(cx, table) {
        let (keys, values) = (table.slot(KEYS), table.slot(VALUES));
        let whole = keys.is(ObjectKind::Vector)
            && values.is(ObjectKind::Vector)
            && keys.length() == values.length()
            && keys.length().is_power_of_two();
        if whole {
            return Ok(Places { keys, values });
        }
    }
    cx.type_error("hash-table", table)
}

fn make(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let [test, size, _hash, _rehash, _fold] = cx
        .keywords(args, [names.test, names.size, names.hash, names.rehash_size, names.not_found])?
        .map(Value::given_or_nil);
    let wanted = if size.is_nil() { 10 } else { cx.size(size)? };
    let class = cx.world.class_object(class::HASH_TABLE);
    let table = cx.new_instance(class)?;
    cx.push(table)?;
    table.set_slot(SIZE, Value::fixnum(wanted as i64));
    table.set_slot(TEST, test_code(cx, test));
    clear(cx, table, (wanted * 2).next_power_of_two().max(SMALLEST))?;
    Ok(table)
}

/// The numeric test of a table that hashes by identity, for `eq` and `eql`.
const BY_IDENTITY: Value = Value::fixnum(0);
/// The numeric test of a table that hashes by structure, for `equal`.
const BY_STRUCTURE: Value = Value::fixnum(1);
/// The numeric test of a table that hashes strings and the names of symbols, for `string=`.
const BY_NAME: Value = Value::fixnum(2);

/// Returns the number of a known test, or the test function itself, which is called with each key.
fn test_code(cx: &mut Context, test: Value) -> Value {
    let function = if test.is_symbol_object() { test.get(symbol::FUNCTION) } else { test };
    let is = |cx: &mut Context, name: &str| cx.installed_function(name) == Ok(function);
    if test.is_nil() || is(cx, "EQ") || is(cx, "EQL") {
        BY_IDENTITY
    } else if is(cx, "EQUAL") {
        BY_STRUCTURE
    } else if is(cx, "STRING=") {
        BY_NAME
    } else {
        function
    }
}

/// Replaces the vectors of a table by empty ones.
fn clear(cx: &mut Context, table: Value, size: usize) -> Result<Places, Exit> {
    let keys = cx.new_vector(size)?;
    cx.push(keys)?;
    let values = cx.new_vector(size)?;
    for index in 0..size {
        keys.set_slot(index, Value::EMPTY);
    }
    table.set_slot(KEYS, keys);
    table.set_slot(VALUES, values);
    table.set_slot(COUNT, Value::fixnum(0));
    table.set_slot(FILLED, Value::fixnum(0));
    Ok(Places { keys, values })
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^ bits >> 29
}

/// Returns equal hashes for values that are `eql`.
pub(super) fn hash_eql(key: Value) -> u64 {
    if key.is_object() {
        match key.header().kind() {
            ObjectKind::Float => return mix(key.get(1).0),
            ObjectKind::Bignum | ObjectKind::Ratio => return hash_equal(key),
            _ => {}
        }
    }
    mix(key.0)
}

/// Hashes by structure, so that equal values have equal hashes.
fn hash_equal(key: Value) -> u64 {
    StructuralHash { left: 256 }.of(key, 0)
}

/// A structural hash reads at most eight levels and 16 elements of each, and a bounded number of values altogether.
struct StructuralHash {
    /// Number of values that may still be read.
    left: u32,
}

impl StructuralHash {
    fn of(&mut self, key: Value, depth: u32) -> u64 {
        if depth > 8 || self.left == 0 {
            return 1;
        }
        self.left -= 1;
        if key.is_cons() {
            return key.iter().take(16).fold(7, |hash, item| mix(hash ^ self.of(item, depth + 1)));
        }
        match key.kind() {
            Some(ObjectKind::String) => hash_bytes(key.bytes()),
            Some(ObjectKind::FloatVector) => {
                key.floats().iter().take(16).fold(11, |hash, x| mix(hash ^ (x + 0.0).to_bits()))
            }
            Some(ObjectKind::IntegerVector | ObjectKind::Bignum) => {
                key.integers().iter().take(16).fold(13, |hash, x| mix(hash ^ x.cast_unsigned()))
            }
            Some(ObjectKind::BitVector | ObjectKind::Array) => 17,
            Some(ObjectKind::Vector | ObjectKind::Ratio) => (0..key.length().min(16))
                .fold(19, |hash, index| mix(hash ^ self.of(key.slot(index), depth + 1))),
            Some(ObjectKind::Instance) => mix(u64::from(key.header().class())),
            _ => hash_eql(key),
        }
    }
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(5, |hash, byte| mix(hash ^ u64::from(*byte)))
}

/// Returns the string of a key that is a string or a symbol.
fn name_of(cx: &Context, key: Value) -> Value {
    if key.is_symbol() { cx.world.symbol_object(key).get(symbol::NAME) } else { key }
}

/// Returns the index of a key.
fn find(cx: &mut Context, table: Value, places: Places, key: Value) -> Result<Option<usize>, Exit> {
    let keys = places.keys;
    let test = table.slot(TEST);
    let own_test = !test.is_fixnum();
    if own_test {
        cx.push(keys)?;
        cx.push(places.values)?;
    }
    let mask = keys.length() - 1;
    let mut place = start(cx, test, key) & mask;
    for _ in 0..=mask {
        let own = keys.slot(place);
        if own == Value::EMPTY && !own_test {
            break;
        }
        let same = if own == Value::REMOVED || own == Value::EMPTY {
            false
        } else if own_test {
            !cx.apply(test, &[key, own])?.is_nil()
        } else if test == BY_STRUCTURE {
            equal(cx, own, key, false)?
        } else if test == BY_NAME {
            equal(cx, name_of(cx, own), name_of(cx, key), false)?
        } else {
            eql(own, key)
        };
        if same {
            return Ok(Some(place));
        }
        place = (place + 1) & mask;
    }
    Ok(None)
}

/// Returns the hash at which the search for a key starts, before it is reduced to the table's size.
fn start(cx: &Context, test: Value, key: Value) -> usize {
    let hash = if !test.is_fixnum() {
        0
    } else if test == BY_IDENTITY || (test == BY_STRUCTURE && key.is(ObjectKind::Instance)) {
        hash_eql(key)
    } else if test == BY_NAME {
        hash_equal(name_of(cx, key))
    } else {
        hash_equal(key)
    };
    hash as usize
}

fn put(cx: &mut Context, table: Value, key: Value, value: Value) -> Result<(), Exit> {
    let here = places(cx, table)?;
    if let Some(place) = find(cx, table, here, key)? {
        here.values.set_slot(place, value);
        return Ok(());
    }
    // Read again, as the table's own test may have replaced the vectors.
    let mut here = places(cx, table)?;
    let filled = table.slot(FILLED).as_fixnum().and_then(|filled| usize::try_from(filled).ok());
    if (filled.unwrap_or(0) + 1) * 4 > here.keys.length() * 3 {
        here = grow(cx, table, here)?;
    }
    while !enter(cx, table, here, key, value) {
        here = grow(cx, table, here)?;
    }
    Ok(())
}

/// Stores a new key in a free entry; returns false when there is none. The counts may be too low when threads update
/// them at the same time.
fn enter(cx: &Context, table: Value, places: Places, key: Value, value: Value) -> bool {
    let mask = places.keys.length() - 1;
    let first = start(cx, table.slot(TEST), key);
    for step in 0..=mask {
        let place = first.wrapping_add(step) & mask;
        let own = places.keys.slot(place);
        if own != Value::EMPTY && own != Value::REMOVED {
            continue;
        }
        places.values.set_slot(place, value);
        places.keys.set_slot(place, key);
        let add = |slot: usize, by: i64| {
            table.set_slot(slot, Value::fixnum(table.slot(slot).as_fixnum().unwrap_or(0) + by))
        };
        add(COUNT, 1);
        add(FILLED, i64::from(own == Value::EMPTY));
        return true;
    }
    false
}

/// Replaces the vectors by larger ones, or by equally large ones without removed entries.
fn grow(cx: &mut Context, table: Value, old: Places) -> Result<Places, Exit> {
    let mark = cx.mark();
    cx.push(old.keys)?;
    cx.push(old.values)?;
    let live = |place: &usize| !matches!(old.keys.slot(*place), Value::EMPTY | Value::REMOVED);
    let all = 0..old.keys.length();
    let wanted = ((all.clone().filter(live).count() + 1) * 2).next_power_of_two().max(SMALLEST);
    let new = clear(cx, table, wanted)?;
    for place in all.filter(live) {
        enter(cx, table, new, old.keys.slot(place), old.values.slot(place));
    }
    cx.release(mark);
    Ok(new)
}

/// Returns the current entries of a table, and keeps them alive on the root stack.
fn pairs(cx: &mut Context, table: Value) -> Result<Vec<(Value, Value)>, Exit> {
    let Places { keys, values } = places(cx, table)?;
    let mut all = Vec::new();
    for place in 0..keys.length() {
        let key = keys.slot(place);
        if key != Value::EMPTY && key != Value::REMOVED {
            let value = values.slot(place);
            cx.push(key)?;
            cx.push(value)?;
            all.push((key, value));
        }
    }
    Ok(all)
}
