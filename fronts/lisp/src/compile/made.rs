//! Generates the machine code of one function.

use super::analyse::{self, FunctionSource};
use super::jit::{Compiler, Effort};
use super::refused::Refused;
use super::runtime::Helper;
use crate::context::Context;
use crate::value::Value;
use std::sync::Arc;

/// Holds the code of a function: its address, its text, and the list of its constants, which is on the root stack.
pub(super) struct Made {
    pub(super) code: usize,
    /// Empty unless it was requested.
    pub(super) text: String,
    pub(super) constants: Value,
}

/// Tells whether the text of machine code is wanted, which takes a large part of the time of its generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    None,
    Text,
}

/// Generates the code of a function. Pushes the list of its constants.
pub(super) fn make(
    cx: &mut Context,
    source: FunctionSource,
    effort: Effort,
    listing: Listing,
) -> Result<Made, Refused> {
    let unit = analyse::analyse(cx, source)?;
    let world = Arc::clone(&cx.world);
    let made = cx.blocked(|| {
        let compiler = match effort {
            Effort::Low => &world.warm_compiler,
            Effort::High => &world.compiler,
        };
        let mut compiler = crate::threads::lock(compiler);
        let compiler = match &mut *compiler {
            Some(compiler) => compiler,
            none => none.insert(Compiler::new(Helper::ALL, effort)?),
        };
        compiler.make(&unit, listing)
    });
    let (code, text) = made.map_err(Refused::Form)?;
    Ok(Made { code, text, constants: unit.constants })
}
