//! Translates the tree of a function to machine code.

use super::generate;
use super::jit::{Compiler, EntryPoints};
use super::made::Listing;
use super::tree::Unit;

impl Compiler {
    /// Compiles a function and those inside it; returns the address of its entry and the text of the code.
    pub(super) fn make(&mut self, unit: &Unit, listing: Listing) -> Result<(usize, String), String> {
        let mut entry_points = Vec::new();
        for function in &unit.functions {
            let direct = match function.range {
                Some(_) => None,
                None => {
                    let closure = usize::from(!function.captures.is_empty());
                    Some(self.declare(1 + closure + function.required.len())?)
                }
            };
            entry_points.push(EntryPoints { entry: self.declare(4)?, direct });
        }
        let mut text = String::new();
        for number in 0..unit.functions.len() {
            text += &generate::function(self, unit, &entry_points, number, listing)?;
        }
        self.module.finalize_definitions().map_err(|cause| cause.to_string())?;
        let code = self.module.get_finalized_function(entry_points[0].entry);
        Ok((code.expose_provenance(), text))
    }
}
