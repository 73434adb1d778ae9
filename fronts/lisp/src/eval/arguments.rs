//! Parses the keyword arguments of builtins.

use crate::builtin::Args;
use crate::context::Context;
use crate::error::{ErrorClass, Exit};
use crate::value::Value;

impl Context {
    /// Returns the values of the known keywords, `MISSING` where one is absent. Unknown keywords are an error.
    pub(crate) fn keywords<const N: usize>(
        &mut self,
        given: Args<'_>,
        known: [Value; N],
    ) -> Result<[Value; N], Exit> {
        let mut values = [Value::MISSING; N];
        if given.len() % 2 == 1 {
            let shown = self.show_short(given[given.len() - 1]);
            return self.error(ErrorClass::Arguments, format!("a keyword without a value: {shown}"));
        }
        for pair in given.chunks_exact(2) {
            match known.iter().position(|keyword| *keyword == pair[0]) {
                Some(index) if values[index] == Value::MISSING => values[index] = pair[1],
                Some(_) => {}
                None => {
                    let shown = self.show_short(pair[0]);
                    return self.error_about(
                        ErrorClass::Arguments,
                        format!("unknown keyword {shown}"),
                        pair[0],
                    );
                }
            }
        }
        Ok(values)
    }
}

impl Value {
    /// Returns the value, or nil for `MISSING`.
    pub(crate) fn given_or_nil(self) -> Value {
        if self == Value::MISSING { Value::NIL } else { self }
    }

    pub(crate) fn given(self) -> Option<Value> {
        (self != Value::MISSING).then_some(self)
    }
}
