//! Tests of `--fix`, `--dry-run` and `--undo` on copies of saved machines.

use crate::machine::{ALL, SavedMachine, text};

const SYSCTL: &str = "/etc/sysctl.d/60-largesse.conf";
const LIMITS: &str = "/etc/security/limits.d/60-largesse.conf";
const UDEV: &str = "/etc/udev/rules.d/60-largesse.rules";
const TMPFILES: &str = "/etc/tmpfiles.d/60-largesse.conf";
const OURS: [&str; 4] = [SYSCTL, LIMITS, UDEV, TMPFILES];
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const POOL: &str = "/proc/sys/vm/nr_hugepages";

const WISHES: [&[&str]; 4] = [
    &["--fix"],
    &["--fix", "--yes"],
    &["--fix", "--hugetlb-pages", "64"],
    &["--fix", "--yes", "--hugetlb-pages", "600"],
];

/// Returns the files, without directories, that `--fix` with the options `wish` adds to a machine.
fn new_files(machine: &SavedMachine, wish: &[&str]) -> Vec<String> {
    let before = machine.everything();
    assert!(machine.doctor(wish).status.success());
    let after = machine.everything();
    after
        .into_iter()
        .filter(|(path, text)| text.is_some() && !before.contains_key(path))
        .map(|(path, _)| path)
        .collect()
}

#[track_caller]
fn check(machine: &str, wish: &[&str], want: &[&str]) {
    let mut want = want.to_vec();
    want.sort_unstable();
    assert_eq!(new_files(&SavedMachine::new(machine), wish), want);
}

#[test]
fn only_wrong_settings_get_files() {
    check("healthy", &["--fix"], &[]);
    check("healthy", &["--fix", "--yes"], &[]);
    check("thp-never", &["--fix"], &[LIMITS, UDEV, TMPFILES]);
    check("size-never", &["--fix"], &[LIMITS, UDEV, TMPFILES]);
    check("virtual-machine", &["--fix"], &[LIMITS, UDEV]);
    check("virtual-machine", &["--fix", "--hugetlb-pages", "64"], &[LIMITS, UDEV, SYSCTL]);
    check("pool", &["--fix", "--hugetlb-pages", "64"], &[LIMITS, UDEV]);
    check("no-thp", &["--fix"], &[LIMITS]);
    check("no-thp", &["--fix", "--yes"], &[LIMITS, SYSCTL]);
    check("container", &["--fix", "--yes", "--hugetlb-pages", "64"], &[]);
}

#[test]
fn fine_machine_needs_no_fix() {
    assert_eq!(text(&SavedMachine::new("healthy").doctor(&["--fix"])), "Nothing to fix.\n");
    let contained = text(&SavedMachine::new("container").doctor(&["--fix"]));
    assert!(
        contained.starts_with("Nothing was changed.") && contained.contains("on its host"),
        "{contained}"
    );
}

#[test]
fn fix_records_earlier_values() {
    let machine = SavedMachine::new("thp-never");
    machine.doctor(&["--fix"]);
    assert_eq!(machine.read(ENABLED), "always [madvise] never\n");
    let file = machine.read(TMPFILES);
    assert!(file.contains(&format!("# was: {ENABLED} never\n")), "{file}");
    assert!(file.contains(&format!("w {ENABLED} - - - - madvise\n")), "{file}");
    let again = SavedMachine::doctor(&machine, &["--json"]);
    assert!(!text(&again).contains("\"problem\""));
}

#[test]
fn size_setting_becomes_inherit() {
    let machine = SavedMachine::new("size-never");
    machine.doctor(&["--fix"]);
    let own = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    assert_eq!(machine.read(own), "always [inherit] madvise never\n");
    assert_eq!(machine.read(ENABLED), "always [madvise] never\n");
}

#[test]
fn undo_restores_every_byte() {
    for name in ALL {
        for wish in WISHES {
            let machine = SavedMachine::new(name);
            let before = machine.everything();
            assert!(machine.doctor(wish).status.success(), "{name} {wish:?}");
            assert!(machine.doctor(&["--undo"]).status.success(), "{name} {wish:?}");
            assert_eq!(machine.everything(), before, "{name} {wish:?}");
            assert_eq!(text(&machine.doctor(&["--undo"])), "Nothing to undo.\n");
        }
    }
}

#[test]
fn second_fix_changes_nothing() {
    for name in ALL {
        for wish in WISHES {
            let machine = SavedMachine::new(name);
            machine.doctor(wish);
            let once = machine.everything();
            machine.doctor(wish);
            assert_eq!(machine.everything(), once, "{name} {wish:?}");
        }
    }
}

#[test]
fn undo_restores_first_pool_size() {
    let machine = SavedMachine::new("virtual-machine");
    for pages in ["64", "128", "32"] {
        machine.doctor(&["--fix", "--hugetlb-pages", pages]);
        assert_eq!(machine.read(POOL), format!("{pages}\n"));
    }
    machine.doctor(&["--undo"]);
    assert_eq!(machine.read(POOL), "0\n");
}

#[test]
fn dry_run_names_files_unchanged() {
    for name in ALL {
        for wish in WISHES {
            let machine = SavedMachine::new(name);
            let before = machine.everything();
            let said = text(&machine.doctor(&[wish, &["--dry-run"]].concat()));
            assert_eq!(machine.everything(), before, "{name} {wish:?}");
            for file in new_files(&machine, wish) {
                assert!(said.contains(&format!("would write   {file}\n")), "{name} {wish:?}: {said}");
                for line in machine.read(&file).lines() {
                    assert!(said.contains(&format!("| {line}\n")), "{name} {wish:?}: {line}");
                }
            }
            let fixed = machine.everything();
            machine.doctor(&["--undo", "--dry-run"]);
            assert_eq!(machine.everything(), fixed, "{name} {wish:?}");
        }
    }
}

#[test]
fn new_files_grant_group_only() {
    for name in ALL {
        for wish in WISHES {
            let machine = SavedMachine::new(name);
            for file in new_files(&machine, wish) {
                assert!(OURS.contains(&file.as_str()), "{file}");
                let text = machine.read(&file);
                assert!(text.starts_with("# Written by `largesse doctor --fix`"), "{file}: {text}");
                for line in text.lines().filter(|line| !line.starts_with('#')) {
                    assert!(!line.starts_with('*') && !line.contains("* "), "{file}: {line}");
                    assert!(!line.contains("unlimited"), "{file}: {line}");
                    let for_all = line.contains("unprivileged_userfaultfd") || line.contains("0666");
                    assert!(!for_all || wish.contains(&"--yes"), "{file}: {line}");
                }
            }
        }
    }
}

#[test]
fn lockable_memory_is_half() {
    let machine = SavedMachine::new("virtual-machine");
    machine.doctor(&["--fix"]);
    assert!(machine.read(LIMITS).ends_with("\n@largesse - memlock 12342048\n"));
}

#[test]
fn foreign_file_stops_fix() {
    for (name, path) in [("thp-never", TMPFILES), ("thp-never", UDEV), ("thp-never", LIMITS)] {
        let machine = SavedMachine::new(name);
        machine.write(path, "# by hand\n");
        let before = machine.everything();
        let output = machine.doctor(&["--fix"]);
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(path));
        assert_eq!(machine.everything(), before, "{path}");
        let said = text(&machine.doctor(&["--undo"]));
        assert!(said.contains(path) && said.contains("left alone"), "{said}");
        assert_eq!(machine.everything(), before, "{path}");
    }
}

#[test]
fn link_is_neither_followed_nor_replaced() {
    let other = SavedMachine::new("thp-never");
    other.doctor(&["--fix"]);
    for text in [other.read(TMPFILES), "precious\n".to_owned()] {
        let machine = SavedMachine::new("thp-never");
        machine.write("/etc/other", &text);
        std::fs::create_dir_all(machine.root.join("etc/tmpfiles.d")).unwrap();
        std::os::unix::fs::symlink("../other", machine.root.join(&TMPFILES[1..])).unwrap();
        let before = machine.everything();
        assert_eq!(machine.doctor(&["--fix"]).status.code(), Some(1));
        machine.doctor(&["--undo"]);
        assert_eq!(machine.everything(), before);
    }
}

#[test]
fn undo_keeps_values_changed_since() {
    let machine = SavedMachine::new("thp-never");
    machine.doctor(&["--fix"]);
    machine.write(ENABLED, "[always] madvise never\n");
    let said = text(&machine.doctor(&["--undo"]));
    assert_eq!(machine.read(ENABLED), "[always] madvise never\n");
    assert!(said.contains("which largesse did not set"), "{said}");
}

#[test]
fn pool_beyond_memory_is_refused() {
    let machine = SavedMachine::new("virtual-machine");
    let before = machine.everything();
    let output = machine.doctor(&["--fix", "--hugetlb-pages", "12000"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("three quarters"));
    assert_eq!(machine.everything(), before);
}
