//! Saves and restores the state of a thread around code that may exit.

use crate::context::{Context, RootMark};
use crate::value::Value;

/// Holds the state of a thread that the catcher of an exit restores.
#[derive(Clone, Copy)]
pub(crate) struct Saved {
    mark: RootMark,
    environment: Value,
    local_functions: bool,
    specials: usize,
}

impl Saved {
    /// Returns the saved height of the root stack.
    pub(crate) fn mark(&self) -> RootMark {
        self.mark
    }

    /// Returns the saved link to the innermost environment entry.
    pub(super) fn environment(&self) -> Value {
        self.environment
    }
}

impl Context {
    #[inline]
    pub(crate) fn save(&self) -> Saved {
        Saved {
            mark: self.mark(),
            environment: self.environment,
            local_functions: self.local_functions,
            specials: self.specials(),
        }
    }

    pub(crate) fn restore(&mut self, saved: &Saved) {
        self.restore_bindings(saved);
        self.release(saved.mark);
    }

    /// Restores environment and dynamic bindings, but not the stack.
    #[inline]
    pub(crate) fn restore_bindings(&mut self, saved: &Saved) {
        self.unbind(saved.specials);
        self.environment = saved.environment;
        self.local_functions = saved.local_functions;
    }
}
