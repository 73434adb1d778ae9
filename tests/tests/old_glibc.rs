//! Checks that all programs can be linked with glibc 2.28, for which the packages are built.

use largesse_tests::{built_command, built_companion, built_library, has_program};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The version of glibc for which the packages are built.
const OLDEST: (u32, u32) = (2, 28);

/// Functions that older versions have under another name, or in a part that is linked statically.
const ELSEWHERE: [&str; 9] =
    ["stat", "fstat", "lstat", "stat64", "fstat64", "lstat64", "fstatat", "fstatat64", "__tls_get_addr"];

/// A function of a shared library, with the version of glibc that has it.
struct Symbol {
    name: String,
    version: (u32, u32),
    is_wanted: bool,
}

/// Returns the symbols of glibc that a file has or wants. Weak ones, which a program can do without, are left out.
fn symbols(file: &Path) -> Vec<Symbol> {
    let listed = Command::new("objdump").arg("-T").arg(file).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let symbol = |line: &str| {
        let is_wanted = line.contains("*UND*");
        let is_weak = line.get(18..19) == Some("w");
        let mut words = line.split_whitespace().rev();
        let (name, version) = (words.next()?.to_owned(), words.next()?);
        let version = version.trim_matches(['(', ')']).strip_prefix("GLIBC_")?;
        let mut numbers = version.split('.').filter_map(|number| number.parse().ok());
        let version = (numbers.next()?, numbers.next()?);
        (!is_wanted || !is_weak).then_some(Symbol { name, version, is_wanted })
    };
    text.lines().filter_map(symbol).collect()
}

#[test]
fn programs_use_no_newer_function_than_the_oldest_glibc_has() {
    if !has_program("objdump", &["--version"]) {
        return;
    }
    let mut oldest: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for library in ["libc.so.6", "libm.so.6"] {
        let file = format!("/lib/{}-linux-gnu/{library}", std::env::consts::ARCH);
        for Symbol { name, version, is_wanted } in symbols(Path::new(&file)) {
            let known = oldest.entry(name).or_insert(version);
            *known = if is_wanted { *known } else { version.min(*known) };
        }
    }
    assert_eq!(oldest.get("gettid"), Some(&(2, 30)), "the C library's list was not understood");
    for file in [
        built_command(),
        built_companion("largesse-lisp"),
        built_companion("largesse-bench"),
        built_library(),
    ] {
        let wanted: Vec<String> =
            symbols(&file).into_iter().filter(|it| it.is_wanted).map(|it| it.name).collect();
        assert!(wanted.iter().any(|name| name == "memcpy"), "{}: {wanted:?}", file.display());
        let is_new = |name: &&String| oldest.get(*name).is_some_and(|&version| version > OLDEST);
        let new: Vec<_> =
            wanted.iter().filter(is_new).filter(|name| !ELSEWHERE.contains(&name.as_str())).collect();
        assert!(new.is_empty(), "{} needs {new:?} of a newer glibc", file.display());
    }
}
