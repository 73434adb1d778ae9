//! Decides whether a counter may be used as a clock.

use super::fallback::Fallback;
use std::path::Path;

const AVAILABLE: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

/// The known properties of the processor's counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct CounterFacts {
    /// Whether the processor has a counter that this crate can read.
    pub(super) known: bool,
    /// Whether the counter runs at a constant rate and can be read in program order.
    pub(super) invariant: bool,
    /// Name of the counter in the kernel's list of clock sources.
    pub(super) clock_source: Option<&'static str>,
    /// Whether this process may not read the counter.
    pub(super) forbidden: bool,
}

/// Returns why the counter may not be used, or `None` if it may. A counter that is missing from the kernel's list
/// below `root` was found unreliable by the kernel.
pub(super) fn of(root: &Path, facts: &CounterFacts) -> Option<Fallback> {
    if !facts.known {
        return Some(Fallback::NoCounter);
    }
    if facts.forbidden {
        return Some(Fallback::Forbidden);
    }
    if !facts.invariant {
        return Some(Fallback::NotInvariant);
    }
    let offered = std::fs::read_to_string(root.join(AVAILABLE)).ok()?;
    let name = facts.clock_source?;
    (!offered.split_whitespace().any(|word| word == name)).then_some(Fallback::Distrusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(facts: CounterFacts, offered: Option<&str>, want: Option<Fallback>) {
        let root = std::env::temp_dir().join(format!("largesse-judge-{}", std::process::id()));
        let file = root.join(AVAILABLE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        if let Some(text) = offered {
            std::fs::write(&file, text).unwrap();
        }
        let got = of(&root, &facts);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(got, want, "{facts:?} {offered:?}");
    }

    #[test]
    fn unreliable_counters_are_refused() {
        let good = CounterFacts { known: true, invariant: true, clock_source: Some("tsc"), forbidden: false };
        check(good, Some("kvm-clock tsc hpet\n"), None);
        check(good, None, None);
        check(good, Some("kvm-clock hpet\n"), Some(Fallback::Distrusted));
        check(CounterFacts { invariant: false, ..good }, Some("tsc"), Some(Fallback::NotInvariant));
        check(CounterFacts { forbidden: true, ..good }, Some("tsc"), Some(Fallback::Forbidden));
        check(CounterFacts { known: false, ..good }, Some("tsc"), Some(Fallback::NoCounter));
    }
}
