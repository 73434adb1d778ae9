//! Tests that programs that cannot be served are not started, with a message that says what to do.

use crate::{Folder, largesse, stderr, write_program};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Returns the first 20 bytes of an ELF file.
fn elf_start(class: u8, machine: u16) -> Vec<u8> {
    let mut bytes = b"\x7fELF\0\x01\x01\0\0\0\0\0\0\0\0\0\x02\0".to_vec();
    bytes[4] = class;
    bytes.extend_from_slice(&machine.to_le_bytes());
    bytes
}

#[track_caller]
fn refused(program: &Path, code: i32, words: &[&str]) {
    let output = largesse().arg("--").arg(program).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty());
    assert!(message.starts_with("largesse: "), "{message}");
    for words in words {
        assert!(message.contains(words), "no '{words}' in: {message}");
    }
}

#[track_caller]
fn not_understood(options: &[&str], words: &str) {
    let output = largesse().args(options).args(["--", "true"]).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(words), "no '{words}' in: {message}");
}

#[test]
fn absent_program_exits_with_127() {
    refused(Path::new("no-such-program"), 127, &["no-such-program: not found in PATH"]);
    refused(Path::new("/nowhere/x"), 127, &["/nowhere/x: no such file"]);
}

#[test]
fn non_program_exits_with_126() {
    let folder = Folder::new();
    let path = folder.path("text");
    std::fs::write(&path, "hello\n").unwrap();
    refused(&path, 126, &["no permission to execute it"]);
    write_program(&path, b"\0\x01\x02");
    refused(&path, 126, &["neither an ELF program nor a script"]);
    refused(&folder.0, 126, &["is a directory"]);
}

#[test]
fn static_program_is_refused() {
    let folder = Folder::new();
    for options in [["-static"], ["-static-pie"]] {
        if let Some(path) = folder.compiled("hello", "int main(void) { return 0; }", &options) {
            refused(&path, 126, &["statically linked", "-static"]);
        }
    }
}

#[test]
fn set_id_program_is_refused() {
    let folder = Folder::new();
    let path = folder.path("copy");
    for (mode, words) in [(0o4755, "is setuid"), (0o2755, "is setgid")] {
        std::fs::copy("/bin/true", &path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        refused(&path, 126, &[words, "ignores LD_PRELOAD", "chmod"]);
    }
}

#[test]
fn file_capabilities_are_refused() {
    let folder = Folder::new();
    let path = folder.path("copy");
    std::fs::copy("/bin/true", &path).unwrap();
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // The value is struct vfs_cap_data, revision 2, with CAP_NET_RAW permitted.
    let value: Vec<u8> =
        [0x0200_0000_u32, 1 << 13, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let key = c"security.capability".as_ptr();
    // SAFETY: both strings end with a zero, and `value` has `value.len()` bytes.
    let rc = unsafe { libc::setxattr(name.as_ptr(), key, value.as_ptr().cast(), value.len(), 0) };
    if rc != 0 {
        eprintln!("skipped: this user may not set file capabilities");
        return;
    }
    refused(&path, 126, &["has file capabilities", "getcap"]);
}

#[test]
fn foreign_code_is_refused() {
    let folder = Folder::new();
    let path = folder.path("foreign");
    write_program(&path, &elf_start(1, 3));
    refused(&path, 126, &["is a 32-bit program"]);
    write_program(&path, &elf_start(2, 22));
    refused(&path, 126, &["another processor (s390x;"]);
    write_program(&path, b"\x7fELF\x02\x01");
    refused(&path, 126, &["ends within its ELF header"]);
}

#[test]
fn script_with_unserved_interpreter_is_refused() {
    let folder = Folder::new();
    let (inner, middle, outer) = (folder.path("inner"), folder.path("middle"), folder.path("outer"));
    write_program(&inner, &elf_start(1, 3));
    write_program(&middle, format!("#!{}\n", inner.display()).as_bytes());
    write_program(&outer, format!("#! {} -x\n", middle.display()).as_bytes());
    let through = format!("(which runs {})", middle.display());
    refused(&outer, 126, &["inner", &through, "32-bit"]);
    write_program(&outer, b"#!/usr/bin/env no-such-program\n");
    refused(&outer, 127, &["no-such-program: not found in PATH"]);
    write_program(&outer, b"#!/nowhere/interpreter\n");
    refused(&outer, 127, &["its interpreter /nowhere/interpreter: no such file"]);
    write_program(&outer, format!("#!{}\n", outer.display()).as_bytes());
    refused(&outer, 126, &["too many scripts"]);
}

#[test]
fn sanitized_program_is_refused() {
    let folder = Folder::new();
    let source = "int main(void) { return 0; }";
    if let Some(path) = folder.compiled("watched", source, &["-fsanitize=address"]) {
        refused(&path, 126, &["sanitizer", "libasan"]);
    }
}

#[test]
fn bad_values_name_accepted_ones() {
    not_understood(
        &["--pages", "4K"],
        "--pages 4K is not understood; it accepts auto, thp, hugetlb, hugetlb-1g, 64k, 4k",
    );
    not_understood(&["--min-kb", "-1"], "--min-kb -1 is not a size; type a whole number of KiB");
    not_understood(&["--min-kb", "999999999999999"], "is above the most, 1P");
    not_understood(&["--min-kb", "2048", "--max-kb", "1024"], "is above --max-kb");
    not_understood(&["--header", "47"], "a multiple of 16");
    not_understood(&["--header", "8192"], "above the most, 4K");
    not_understood(
        &["--local", "4"],
        "--local 4 is 4 bytes without a unit, and the least is 1M; did you mean 4G or 4M?",
    );
    not_understood(&["--local", "1G", "--page-size", "64"], "did you mean 64K?");
    not_understood(&["--local", "1G", "--far", "mpi:4"], "did you mean 4G or 4M?");
    not_understood(&["--node", "4000000"], "a NUMA node that has memory, on this machine: 0");
    not_understood(&["--node", "1", "--interleave"], "cannot be used with");
    not_understood(&["--children", "maybe"], "on, off");
    not_understood(&["--unknown"], "unexpected argument");
}

#[test]
fn missing_program_is_usage_error() {
    let output = largesse().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("PROGRAM"), "{}", stderr(&output));
}

#[test]
fn inherited_variables_are_checked() {
    let output = largesse().args(["--", "true"]).env("LARGESSE_PAGES", "4K").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("LARGESSE_PAGES=4K is not understood"), "{}", stderr(&output));
}

#[test]
fn unwritable_report_exits_with_125() {
    let folder = Folder::new();
    for path in [folder.path("no/such/folder.json"), folder.0.clone()] {
        let output = largesse().arg("--report").arg(&path).args(["--", "echo", "ran"]).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        assert!(stderr(&output).contains("cannot be written"), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn bad_library_exits_with_125() {
    for (library, words) in [("/nowhere/liblargesse.so", "No such file"), ("/bin/true", "does not define")] {
        let output =
            largesse().args(["--", "echo", "ran"]).env("LARGESSE_LIBRARY", library).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        assert!(stderr(&output).contains(words) && stderr(&output).contains("make"), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

/// Runs a program with one variable and some options, and checks that the message has `words`.
#[track_caller]
fn named(variable: (&str, &str), options: &[&str], code: i32, words: &str) {
    let run = largesse().args(options).args(["--", "true"]).env(variable.0, variable.1).output().unwrap();
    assert_eq!(run.status.code(), Some(code), "{}", stderr(&run));
    assert!(stderr(&run).contains(words), "no '{words}' in: {}", stderr(&run));
}

#[test]
fn messages_name_the_variable_that_was_set() {
    named(("LARGESSE_NODE", "4000000"), &[], 2, "LARGESSE_NODE=4000000 is not understood");
    named(("LARGESSE_NODE", "4000000"), &["--node", "3999999"], 2, "--node 3999999 is not");
    named(
        ("LARGESSE_REPORT", "/nowhere/x.json"),
        &[],
        125,
        "LARGESSE_REPORT=/nowhere/x.json cannot be written",
    );
    named(("LARGESSE_LOCAL", "64M"), &["--lock"], 2, "--lock cannot be combined with LARGESSE_LOCAL");
    named(
        ("LARGESSE_LOCAL", "64M"),
        &["--limit", "8G"],
        2,
        "--limit 8G cannot be combined with LARGESSE_LOCAL",
    );
    named(("LARGESSE_LIMIT", "8G"), &["--lock"], 2, "--lock cannot be combined with LARGESSE_LIMIT");
    named(("LARGESSE_LIMIT", "8G"), &["--far", "memory:"], 2, "it accepts file:PATH with LARGESSE_LIMIT");
    named(("LARGESSE_MIN_KB", "512"), &["--max-kb", "128"], 2, "LARGESSE_MIN_KB (512 KiB) is above --max-kb");
}

#[test]
fn instruction_sets_are_checked() {
    let words = "LARGESSE_ISA=foo is not understood; it accepts auto";
    named(("LARGESSE_ISA", "foo"), &[], 2, words);
    let other = if cfg!(target_arch = "x86_64") { "neon" } else { "sse2" };
    named(("LARGESSE_ISA", other), &[], 2, "is not understood; it accepts auto");
}
