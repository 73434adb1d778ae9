//! Unpacks a saved machine below a directory of its own for one test.
//!
//! A `.tree` file is text: `==> PATH` begins a file, `base NAME` unpacks another machine first, `remove PATH` removes a
//! file or a directory, and lines with `#` before the first of these are remarks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// A machine below a directory that is removed when this value is dropped.
pub(crate) struct SavedMachine {
    pub(crate) root: PathBuf,
}

pub(crate) const ALL: [&str; 10] = [
    "virtual-machine",
    "healthy",
    "thp-never",
    "size-never",
    "container",
    "killing-filter",
    "no-thp",
    "pool",
    "empty-pool",
    "strict",
];

impl SavedMachine {
    pub(crate) fn new(name: &str) -> SavedMachine {
        // Relaxed: the numbers only have to be distinct.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("largesse-doctor-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        unpack(name, &root);
        SavedMachine { root }
    }

    pub(crate) fn doctor(&self, arguments: &[&str]) -> Output {
        doctor().arg("--root").arg(&self.root).args(arguments).output().unwrap()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let target = self.root.join(path.trim_start_matches('/'));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path.trim_start_matches('/'))).unwrap()
    }

    /// Returns every path below the root with its text, or `None` for directories.
    pub(crate) fn everything(&self) -> BTreeMap<String, Option<String>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.root.clone()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = format!("/{}", path.strip_prefix(&self.root).unwrap().display());
                if path.is_dir() {
                    found.insert(name, None);
                    left.push(path);
                } else {
                    found.insert(name, Some(fs::read_to_string(path).unwrap()));
                }
            }
        }
        found
    }
}

impl Drop for SavedMachine {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.root));
    }
}

pub(crate) fn doctor() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse"));
    command.arg("doctor");
    command
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn unpack(name: &str, root: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/machines/{name}.tree"));
    let at = |path: &str| root.join(path.trim_start_matches('/'));
    let mut file: Option<(PathBuf, String)> = None;
    let close = |file: &mut Option<(PathBuf, String)>| {
        let Some((path, text)) = file.take() else { return };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for line in fs::read_to_string(source).unwrap().lines() {
        if let Some(path) = line.strip_prefix("==> ") {
            close(&mut file);
            file = Some((at(path), String::new()));
        } else if let Some(base) = line.strip_prefix("base ") {
            unpack(base, root);
        } else if let Some(path) = line.strip_prefix("remove ") {
            close(&mut file);
            fs::remove_dir_all(at(path)).unwrap();
        } else if let Some((_, text)) = &mut file {
            text.push_str(line);
            text.push('\n');
        }
    }
    close(&mut file);
}
