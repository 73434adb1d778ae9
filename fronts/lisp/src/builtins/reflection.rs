//! Implements functions that change classes: the runtime reads a class's slots unchecked, so only builtins write them.
//! Also implements the counters of the method cache.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::Value;
use std::sync::atomic::Ordering;

pub(super) const BUILTINS: &[Builtin] =
    &[builtin("DELETE-METHOD", 2, 2, delete_method), builtin("SYSTEM:METHOD-CACHE", 0, 1, method_cache)];

/// Removes a class's own method; returns whether there was one.
fn delete_method(cx: &mut Context, args: Args<'_>) -> Answer {
    if !cx.is_class(args[0]) {
        return cx.type_error("class", args[0]);
    }
    let found = cx.remove_method(args[0], args[1])?;
    Ok(cx.truth(found))
}

/// Implements `(sys::method-cache [enabled])`: returns `(hits misses)`, the numbers of methods that the calling thread
/// found in its cache and did not find there. An argument empties the caches of all threads; with nil they remain
/// empty.
fn method_cache(cx: &mut Context, args: Args<'_>) -> Answer {
    if let Some(enabled) = args.given(0) {
        // Relaxed: a thread that still adds methods of the old epoch does not use them.
        cx.world.caches_methods.store(!enabled.is_nil(), Ordering::Relaxed);
        cx.methods_changed();
    }
    let [hits, misses] = [cx.method_hits, cx.method_misses].map(|count| Value::fixnum(count.cast_signed()));
    cx.list(&[hits, misses])
}
