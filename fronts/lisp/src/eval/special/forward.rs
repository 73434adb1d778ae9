//! Defines the methods that pass messages on to the value of a slot.

use crate::context::Context;
use crate::error::Exit;
use crate::value::Value;

impl Context {
    /// Defines the methods for `(slot :forward (selector ...))`: each sends its own selector and arguments to the value
    /// of the slot. The caller keeps the class and the slot's description alive.
    pub(super) fn define_forwards(&mut self, class: Value, description: Value) -> Result<(), Exit> {
        let mut rest = description.cdr();
        while rest.is_cons() {
            if rest.get(0).is_symbol_object()
                && rest.get(0).get(crate::value::symbol::NAME).bytes() == b"FORWARD"
            {
                for selector in rest.cadr().iter() {
                    self.define_forward(class, description.get(0), selector)?;
                }
            }
            rest = rest.cddr();
        }
        Ok(())
    }

    fn define_forward(&mut self, class: Value, slot: Value, selector: Value) -> Result<(), Exit> {
        let mark = self.mark();
        let arguments = self.installed_name("LARGESSE::ARGUMENTS")?;
        let send = self.installed_name("SEND*")?;
        let body = self.list(&[send, slot, selector, arguments])?;
        self.push(body)?;
        let parameters = self.list(&[self.world.names.rest, arguments])?;
        self.push(parameters)?;
        let definition = self.list(&[parameters, body])?;
        self.push(definition)?;
        self.add_method(class, selector, definition)?;
        self.release(mark);
        Ok(())
    }
}
