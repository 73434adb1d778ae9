//! Prints symbols: in lower case, with bars where they would otherwise read as something else.

use super::Printer;
use crate::context::Context;
use crate::value::{Value, symbol};
use crate::world::{KEYWORD, class};

impl Printer<'_> {
    pub(super) fn symbol(&mut self, cx: &mut Context, value: Value) {
        let object = cx.world.symbol_object(value);
        let name = object.get(symbol::NAME);
        // As in EusLisp, `princ` prints the prefix, too, except for uninterned symbols.
        if self.style.escape || !object.get(symbol::PACKAGE).is_nil() {
            self.prefix(cx, object, value);
        }
        let name = name.text();
        let upper = cx.global_value(cx.world.names.print_case) == cx.world.names.upcase;
        if self.style.escape && is_odd(&name) {
            let quoted = name.replace('\\', "\\\\").replace('|', "\\|");
            self.text(&format!("|{quoted}|"));
        } else if upper {
            self.text(&name);
        } else {
            self.text(&name.to_ascii_lowercase());
        }
    }

    fn prefix(&mut self, cx: &mut Context, object: Value, value: Value) {
        let package = object.get(symbol::PACKAGE);
        if package.is_nil() {
            self.text("#:");
            return;
        }
        let Some(home) = cx.package_of_object(package) else { return };
        if home.number == KEYWORD {
            self.text(":");
            return;
        }
        let name = object.get(symbol::NAME);
        let name = name.text();
        let current = cx.current_package();
        if current.find(&name).is_some_and(|(found, _)| found == value) {
            return;
        }
        let external = home.find(&name).is_some_and(|(_, external)| external);
        let colons = if external { ":" } else { "::" };
        self.text(&format!("{}{colons}", home.name().to_ascii_lowercase()));
        debug_assert_eq!(package.header().class(), class::PACKAGE);
    }
}

/// Returns whether a name must be quoted to read back as this symbol.
fn is_odd(name: &str) -> bool {
    name.is_empty()
        || name
            .bytes()
            .any(|byte| byte.is_ascii_lowercase() || byte <= b' ' || b"()\"';`,|\\:".contains(&byte))
        || name.starts_with('#')
        || name.bytes().all(|byte| byte == b'.')
        || crate::reader::looks_like_number(name)
}
