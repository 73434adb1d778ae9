//! Parses any text as a setting: the result is a value or an error that says what is accepted, never a panic.
#![no_main]

#[path = "../../fronts/preload/src/options.rs"]
mod options;

use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 15] = [
    "LARGESSE_PAGES",
    "LARGESSE_LOCK",
    "LARGESSE_MIN_KB",
    "LARGESSE_MAX_KB",
    "LARGESSE_HEADER",
    "LARGESSE_ALIGN",
    "LARGESSE_NODE",
    "LARGESSE_CHILDREN",
    "LARGESSE_PID",
    "LARGESSE_AHEAD",
    "LARGESSE_LIMIT",
    "LARGESSE_LOCAL",
    "LARGESSE_FAR",
    "LARGESSE_PAGE_SIZE",
    "LARGESSE_FAULT_ENGINE",
];

fuzz_target!(|values: [Option<String>; 15]| {
    let get = |name: &str| {
        let place = NAMES.iter().position(|known| *known == name)?;
        values[place].clone()
    };
    match options::Options::parse(&get) {
        Ok(options) => {
            assert!(options.min >= 64 << 10 && options.min <= options.max);
            assert!(options.header.is_none_or(|header| header <= 4096 && header % 16 == 0));
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(error.name) && text.contains("it accepts") && NAMES.contains(&error.name));
        }
    }
});
