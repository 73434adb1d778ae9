//! Whether a counter may be used as a clock.

use super::Fallback;
use std::path::Path;

const AVAILABLE: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

/// What the processor says about its counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// There is one.
    pub(super) known: bool,
    /// It runs at one rate, and can be read in order.
    pub(super) invariant: bool,
    /// What the kernel calls it.
    pub(super) clock_source: Option<&'static str>,
    /// This process may not read it.
    pub(super) forbidden: bool,
}

/// Why it may not, or `None`. The kernel takes a counter that it found wrong out of its list.
pub(super) fn of(root: &Path, facts: &Facts) -> Option<Fallback> {
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
    fn check(facts: Facts, offered: Option<&str>, want: Option<Fallback>) {
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
    fn a_counter_is_used_only_if_nobody_speaks_against_it() {
        let good = Facts { known: true, invariant: true, clock_source: Some("tsc"), forbidden: false };
        check(good, Some("kvm-clock tsc hpet\n"), None);
        check(good, None, None);
        check(good, Some("kvm-clock hpet\n"), Some(Fallback::Distrusted));
        check(Facts { invariant: false, ..good }, Some("tsc"), Some(Fallback::NotInvariant));
        check(Facts { forbidden: true, ..good }, Some("tsc"), Some(Fallback::Forbidden));
        check(Facts { known: false, ..good }, Some("tsc"), Some(Fallback::NoCounter));
    }
}
