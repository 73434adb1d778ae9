//! Calls functions of C.

use super::bridge::{Bridges, CSignature, CallCode};
use super::callback;
use super::kinds;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::threads::lock;
use crate::value::Value;

/// Indices of the slots of a foreign function, after code and name.
mod slot {
    pub(super) const NAME: usize = 1;
    pub(super) const ENTRY: usize = 2;
    pub(super) const PARAMETERS: usize = 3;
    pub(super) const RESULT: usize = 4;
}

impl Context {
    /// Calls a function of C with arguments on the root stack. Arguments beyond the declared ones are passed as what
    /// they are.
    pub(crate) fn call_foreign(&mut self, function: Value, arguments: Args<'_>) -> Answer {
        let declared = function.slot(slot::PARAMETERS);
        let count = declared.iter().count();
        if arguments.len() < count {
            let shown = self.show_short(function.slot(slot::NAME));
            let given = arguments.len();
            return self.fail(
                ErrorClass::Arguments,
                format!("{shown} takes at least {count} arguments, not {given}"),
            );
        }
        let Some(target) = function.slot(slot::ENTRY).as_fixnum().filter(|address| *address > 0) else {
            let shown = self.show_short(function.slot(slot::NAME));
            return self.fail(ErrorClass::Undefined, format!("the library has no function {shown}"));
        };
        let result = kinds::kind(self, function.slot(slot::RESULT))?;
        let mut words = Vec::with_capacity(arguments.len());
        let mut passed = Vec::with_capacity(arguments.len());
        let mut types = declared.iter();
        for argument in arguments.iter() {
            let kind = match types.next() {
                Some(name) => kinds::kind(self, name)?,
                None => kinds::natural(self, *argument),
            };
            words.push(kinds::word(self, kind, *argument)?);
            passed.push(kind.passed());
        }
        let signature = CSignature { arguments: passed, result: result.passed() };
        let word = self.call_c(&signature, target.cast_unsigned() as usize, &words)?;
        kinds::value(self, result, word)
    }

    fn call_c(&mut self, signature: &CSignature, target: usize, words: &[u64]) -> Result<u64, Exit> {
        let made = {
            let mut bridges = lock(&self.world.bridges);
            prepare(&mut bridges, signature, target)
        };
        let (code, entry) = match made {
            Ok(made) => made,
            Err(cause) => return self.error(ErrorClass::Control, cause),
        };
        let mut result = 0_u64;
        self.flush_standard_streams();
        callback::outside(self, || {
            // SAFETY: the code is that of the signature, with as many words; the program promises by its declaration
            // that the function at the address has this signature.
            unsafe { code(entry, words.as_ptr(), &raw mut result) }
        })?;
        Ok(result)
    }
}

/// Returns the code for a signature, and the address to call for a function.
fn prepare(
    bridges: &mut Option<Bridges>,
    signature: &CSignature,
    target: usize,
) -> Result<(CallCode, usize), String> {
    let bridges = Bridges::of(bridges)?;
    Ok((bridges.call(signature)?, bridges.entry(target)?))
}
