//! Checks the names that the library exports: each is in its header, or in a table here with its reason.

use largesse_tests::{built_library, has_program, workspace};
use std::collections::BTreeSet;
use std::process::Command;

/// Names of the C library that our library defines instead, each with its reason.
const TAKEN_OVER: &[(&str, &str)] = &[
    ("malloc", "large blocks come from the heap"),
    ("calloc", "as malloc; fresh memory is not cleared twice"),
    ("realloc", "blocks of the heap grow by moving pages"),
    ("free", "blocks of the heap are known by their address"),
    ("reallocarray", "the C library's own would call its own realloc with a block of ours"),
    ("memalign", "numerical libraries ask for aligned blocks with it"),
    ("aligned_alloc", "as memalign; C11, and C++'s aligned new"),
    ("posix_memalign", "as memalign; NumPy, OpenBLAS"),
    ("valloc", "as memalign"),
    ("pvalloc", "as memalign"),
    ("malloc_usable_size", "the C library would read a header that blocks of ours do not have"),
    ("malloc_trim", "returns the heap's free memory as well"),
    ("mmap", "large anonymous mappings of other libraries are advised, or far"),
    ("mmap64", "the name of mmap in objects that were compiled for large files"),
    ("munmap", "the store has the room of far mappings again"),
    ("mremap", "pages of far memory have their places in the store"),
    ("mprotect", "reserved memory becomes far when it becomes usable"),
    ("pkey_mprotect", "as mprotect"),
    ("madvise", "far pages that are dropped must not come back from the store"),
    ("mlock", "far memory cannot be locked"),
    ("mlock2", "as mlock"),
    ("mlockall", "as mlock"),
    ("syscall", "SBCL maps its heap with it; as mmap, munmap, mprotect and their kin"),
    ("process_vm_readv", "far pages stay resident while the kernel copies from them"),
    ("process_vm_writev", "far pages are not evicted while the kernel copies to them"),
    ("pthread_attr_setstack", "the kernel cannot put a signal on a stack whose pages are far"),
    (
        "dlopen",
        "a library opened with RTLD_DEEPBIND frees blocks of ours in the C library unless it is patched",
    ),
    ("dlsym", "as pthread_create, for libraries that look it up by its name"),
    ("pthread_create", "a limit's filter of system calls must be there before the first thread"),
    ("pthread_setaffinity_np", "a main thread that is bound alone does not confine the process"),
    ("__register_atfork", "fork handlers of other libraries use far memory: ours stand around them"),
];

#[test]
fn library_exports_exactly_its_header_and_the_table() {
    if !has_program("nm", &["--version"]) {
        return;
    }
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(built_library()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let defined: BTreeSet<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(plain).collect();
    let header = std::fs::read_to_string(workspace().join("fronts/preload/include/largesse.h")).unwrap();
    let mut wanted = declared(&header);
    wanted.extend(TAKEN_OVER.iter().map(|(name, _)| *name));
    let more: Vec<_> = defined.difference(&wanted).collect();
    let less: Vec<_> = wanted.difference(&defined).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "defined and not listed: {more:?}; listed and not defined: {less:?}"
    );
}

/// Returns one of our own names without the version that `liblargesse.map` gives to it in packages. Other names keep
/// their version, because a versioned `malloc` would not replace the C library's.
fn plain(name: &str) -> &str {
    let stem = name.split_once("@@LARGESSE_").map_or(name, |(stem, _)| stem);
    if stem.starts_with("largesse_") { stem } else { name }
}

/// The number in the library's file name equals `LARGESSE_ABI` in the header, which callers compare with
/// `largesse_version()`.
#[test]
fn name_has_the_abi_of_the_header() {
    if !has_program("readelf", &["--version"]) {
        return;
    }
    let output = Command::new("readelf").arg("-d").arg(built_library()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let header = std::fs::read_to_string(workspace().join("fronts/preload/include/largesse.h")).unwrap();
    let abi = header.lines().find_map(|line| line.strip_prefix("#define LARGESSE_ABI ")).unwrap();
    assert!(text.contains(&format!("[liblargesse.so.{abi}]")), "{text}");
}

/// `liblargesse_pin.so` is preloaded into programs that do not use the heap, so that it may replace one name only.
#[test]
fn pin_library_exports_one_name() {
    if !has_program("nm", &["--version"]) {
        return;
    }
    let library = built_library().with_file_name("liblargesse_pin.so");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let defined: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(defined, ["pthread_create"]);
}

#[test]
fn declarations_are_found_and_mentions_are_not() {
    let header = "/* largesse_mentioned(x) */\nint largesse_a(void);\nconst char *largesse_b(uint32_t c);\n\
                  typedef struct { int n; } largesse_c_t;\nint largesse_d(\n    int n);\n";
    assert_eq!(declared(header), BTreeSet::from(["largesse_a", "largesse_b", "largesse_d"]));
}

/// Returns the names that a header declares as functions.
fn declared(header: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut rest = header;
    while let Some((code, comment)) = rest.split_once("/*") {
        collect(code, &mut names);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    collect(rest, &mut names);
    names
}

fn collect<'a>(code: &'a str, names: &mut BTreeSet<&'a str>) {
    for (at, _) in code.match_indices("largesse_") {
        let end =
            code[at..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(code.len(), |end| at + end);
        if code[end..].starts_with('(') {
            names.insert(&code[at..end]);
        }
    }
}
