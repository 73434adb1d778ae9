//! Provides space for results.

use crate::context::{Answer, Context};

/// Provides space for `count` elements of a result, without a heap allocation up to 16 (a 4 x 4 matrix).
pub(super) fn with_room(
    cx: &mut Context,
    count: usize,
    f: impl FnOnce(&mut Context, &mut [f64]) -> Answer,
) -> Answer {
    const SMALL: usize = 16;
    if count <= SMALL {
        return f(cx, &mut [0.0; SMALL][..count]);
    }
    let mut room = Vec::new();
    if room.try_reserve_exact(count).is_err() {
        return cx.out_of_memory(count);
    }
    room.resize(count, 0.0);
    f(cx, &mut room)
}
