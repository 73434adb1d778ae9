//! Implements random numbers: the sequence of EusLisp, which is that of `erand48` (POSIX), so that programs that depend on
//! it get the same numbers.

use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use std::sync::{Mutex, PoisonError};

pub(super) const BUILTINS: &[Builtin] = &[builtin("RANDOM", 1, 2, random)];

/// The first state. Only the low 48 bits of the first element count.
const SEED: [i64; 2] = [123_456, 789_012];
const MULTIPLIER: u64 = 0x5_deec_e66d;
const INCREMENT: u64 = 0xb;
const BITS: u32 = 48;

/// Held while a state advances, so that threads that share one do not draw the same number.
static ADVANCE: Mutex<()> = Mutex::new(());

/// Defines `*random-state*`.
pub(super) fn variables(cx: &mut Context) -> Result<(), Exit> {
    let state = cx.new_integers(SEED.len())?;
    state.integers_mut().copy_from_slice(&SEED);
    cx.define_special(cx.world.names.random_state, state);
    Ok(())
}

/// Advances a state and returns its new 48 bits.
fn advance(state: Value) -> u64 {
    let _guard = ADVANCE.lock().unwrap_or_else(PoisonError::into_inner);
    let word = &mut state.integers_mut()[0];
    let mask = (1 << BITS) - 1;
    let next = (word.cast_unsigned() & mask).wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & mask;
    *word = (word.cast_unsigned() & !mask | next).cast_signed();
    next
}

/// Implements `(random limit state)`: an integer or a float that is not negative and below the limit.
fn random(cx: &mut Context, args: Args<'_>) -> Answer {
    let state = if args.or_nil(1).is_nil() { cx.global_value(cx.world.names.random_state) } else { args[1] };
    if !state.is(ObjectKind::IntegerVector) || state.length() == 0 {
        return cx.type_error("random state, an integer-vector", state);
    }
    let Some(limit) = args[0].as_fixnum() else {
        let limit = args.float(cx, 0)?;
        return cx.float(limit * (advance(state) as f64 / (1_u64 << BITS) as f64));
    };
    if limit <= 0 {
        return cx.type_error("positive number", args[0]);
    }
    let high = u128::from(advance(state));
    // A limit of more than 32 bits needs more bits than one draw has.
    let (draw, bits) = if limit < 1 << 32 {
        (high, BITS)
    } else {
        (high << 16 | u128::from(advance(state)) >> 32, BITS + 16)
    };
    let below = (draw * u128::from(limit.cast_unsigned())) >> bits;
    Ok(Value::fixnum((below as u64).cast_signed()))
}
