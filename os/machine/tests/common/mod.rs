//! Unfolds saved machines into folders, for the tests of several crates.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the folder of the saved machines, from any crate of the workspace.
pub(crate) fn machines() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.map(|it| it.join("os/machine/tests/machines")).find(|it| it.is_dir()).expect("saved machines")
}

/// The folder of a saved machine's files, which is removed when this is dropped.
pub(crate) struct Unfolded(PathBuf);

impl Unfolded {
    pub(crate) fn of(name: &str) -> Unfolded {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Thousands of small files: in memory where that can be had.
        let folder =
            Some(PathBuf::from("/dev/shm")).filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
        let root = folder.join(format!("largesse-machine-{}-{number}", std::process::id()));
        let tree = Unfolded(root);
        let text = std::fs::read_to_string(machines().join(format!("{name}.tree"))).unwrap();
        for line in text.lines() {
            let (path, holds) = line.split_once('\t').unwrap();
            for path in unfold(path) {
                let (path, text) = (tree.0.join(path), format!("{}\n", holds.replace('|', "\n")));
                if std::fs::write(&path, &text).is_err() {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
            }
        }
        tree
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfolded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn unfold(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (numbers, after) = rest.split_once('}').unwrap();
    let numbers: largesse_machine::Bitmap = numbers.parse().unwrap();
    numbers.iter().map(|number| format!("{before}{number}{after}")).collect()
}
