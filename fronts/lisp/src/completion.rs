//! Completes names at the prompt.

use crate::context::Context;
use crate::interpreter::Interpreter;
use crate::value::{Value, symbol};
use crate::world::class;

impl Interpreter {
    /// Returns the names with which a line may go on after `head`, the part of the line before the cursor, and the
    /// index in `head` at which they begin. Names are in lower case.
    #[must_use]
    pub fn completions(&self, head: &str) -> (usize, Vec<String>) {
        let start =
            head.rfind(|it: char| it.is_whitespace() || "()'`,\"#".contains(it)).map_or(0, |at| at + 1);
        let wanted = head[start..].to_lowercase();
        let cx = self.context();
        let names = match receiver(&head[..start]) {
            Some(receiver) if wanted.starts_with(':') => selectors(cx, receiver),
            _ => visible(cx, &wanted),
        };
        let mut names: Vec<String> = names.into_iter().filter(|name| name.starts_with(&wanted)).collect();
        names.sort_unstable();
        names.dedup();
        (start, names)
    }
}

/// Returns the name of the receiver in a text that ends in `(send RECEIVER `.
fn receiver(text: &str) -> Option<&str> {
    let call = &text[text.rfind('(')? + 1..];
    let mut words = call.split_whitespace();
    let sends = words.next().is_some_and(|word| word.eq_ignore_ascii_case("send"));
    let name = words.next().filter(|_| sends)?;
    words.next().is_none().then_some(name)
}

/// Returns the selectors that a variable's value understands, or those of every class if it is not bound.
fn selectors(cx: &Context, name: &str) -> Vec<String> {
    let found = cx.current_package().find(&name.to_uppercase()).map(|(symbol, _)| symbol);
    let value = found.map_or(Value::UNBOUND, |symbol| cx.global_value(cx.world.symbol_object(symbol)));
    let classes: Vec<Value> = if value == Value::UNBOUND {
        cx.world.tables.all_classes().collect()
    } else {
        let lineage = |of: &Value| Some(of.slot(class::slot::SUPER)).filter(|of| !of.is_nil());
        let own = Some(cx.world.class_of(value)).filter(|of| !of.is_nil());
        std::iter::successors(own, lineage).collect()
    };
    let methods = classes.into_iter().flat_map(|of| of.slot(class::slot::METHODS).iter());
    methods.map(|method| format!(":{}", cx.show_name(method.car()))).collect()
}

/// Returns the symbols that programs in the current package can name: its own, the external ones of packages that it
/// uses, and after `PACKAGE:` the external ones of that package.
fn visible(cx: &Context, wanted: &str) -> Vec<String> {
    if let Some((prefix, _)) = wanted.split_once(':')
        && let Some(package) = cx.package_named(&prefix.to_uppercase())
        && !prefix.is_empty()
    {
        let external = package.symbols().into_iter().filter(|(_, external)| *external);
        return external.map(|(symbol, _)| format!("{prefix}:{}", cx.show_name(symbol))).collect();
    }
    let package = cx.current_package();
    let used = package.uses().into_iter().flat_map(|used| used.symbols()).filter(|(_, external)| *external);
    let all = package.symbols().into_iter().chain(used).filter(|(symbol, _)| has_meaning(cx, *symbol));
    all.map(|(symbol, _)| cx.show_name(symbol)).collect()
}

/// Returns whether a symbol has a value or a function: others were only read.
fn has_meaning(cx: &Context, name: Value) -> bool {
    let object = cx.world.symbol_object(name);
    cx.global_value(object) != Value::UNBOUND || object.get(symbol::FUNCTION) != Value::UNBOUND
}
