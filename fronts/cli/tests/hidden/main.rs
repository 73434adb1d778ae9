//! Files of the kernel that are hidden: what is not known is not called absent.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

use std::process::Command;

/// Runs `largesse` with an empty folder over a folder of the kernel; `None` where that is not permitted.
fn hidden(folder: &str, words: &str) -> Option<(bool, String)> {
    let empty = std::env::temp_dir().join(format!("largesse-hidden-{}", std::process::id()));
    std::fs::create_dir_all(&empty).unwrap();
    let script = format!(
        "mount --bind {} {folder} || exit 99; exec {} {words}",
        empty.display(),
        env!("CARGO_BIN_EXE_largesse")
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output().ok()?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Without rights, `unshare` fails.
    if output.status.code() == Some(99) || said.contains("unshare failed") {
        println!("skipped: no mounts of our own");
        return None;
    }
    Some((output.status.success(), said))
}

#[test]
fn hidden_sys_is_not_absent() {
    const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled cannot be read";
    for (words, wanted) in [
        ("machine", &["packages not known, cores not known, ", "NUMA nodes not known", FILE][..]),
        ("doctor", &[FILE]),
        ("pin --node 0 -- echo placed", &["placed"]),
    ] {
        let Some((_, said)) = hidden("/sys", words) else { return };
        for part in wanted {
            assert!(said.contains(part), "{words}: no '{part}' in\n{said}");
        }
        for wrong in
            ["kernel built with CONFIG", "entity not found", "no transparent huge pages", "no hugetlb pools"]
        {
            assert!(!said.contains(wrong), "{words}: '{wrong}' in\n{said}");
        }
    }
}
