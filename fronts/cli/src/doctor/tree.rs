//! Reads and writes the files of a machine, live or saved, below one root.

use largesse_machine::unread::{self, Unread};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files of this machine below `/`, or a saved copy of another machine's.
#[derive(Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    /// Paths that were read, for `--save`.
    seen: RefCell<BTreeSet<String>>,
}

impl Tree {
    pub(crate) fn new(root: &Path) -> Self {
        Tree { root: root.to_path_buf(), seen: RefCell::default() }
    }

    /// Returns whether this is a saved copy, on which no command is run.
    pub(crate) fn is_saved(&self) -> bool {
        self.root != Path::new("/")
    }

    /// Returns the text of a file without trailing white space, or `None` if it cannot be read.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        let text = fs::read(self.at(path)).ok()?;
        if text.is_empty() && Unread::hidden(&self.root, path).is_some() {
            return None;
        }
        self.seen.borrow_mut().insert(path.to_owned());
        Some(String::from_utf8_lossy(&text).trim_end().to_owned())
    }

    /// Returns why a file or directory cannot be read, or `None` if it can be read or is absent.
    pub(crate) fn unread(&self, path: &str) -> Option<Unread> {
        let target = self.at(path);
        if target.is_dir() {
            return unread::names(&self.root, path).err();
        }
        // Some files are endless, and some can only be read in multiples of 8 bytes.
        let start = |target| io::Read::read(&mut fs::File::open(target)?, &mut [0; 64]);
        match start(target) {
            Ok(1..) => None,
            Ok(0) => Unread::hidden(&self.root, path),
            Err(error) => Unread::of(&self.root, path, &error),
        }
    }

    /// Returns the number in a file.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// Returns the names in a directory, sorted; an empty list if it cannot be read.
    pub(crate) fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        let there = fs::symlink_metadata(self.at(path)).is_ok();
        if there && !self.at(path).is_dir() {
            self.seen.borrow_mut().insert(path.to_owned());
        }
        there
    }

    pub(crate) fn is_link(&self, path: &str) -> bool {
        fs::symlink_metadata(self.at(path)).is_ok_and(|data| data.is_symlink())
    }

    /// Replaces a file atomically.
    pub(crate) fn replace(&self, path: &str, text: &str) -> io::Result<()> {
        let target = self.at(path);
        if let Some(parent) = target.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
        }
        let beside = target.with_extension("largesse-new");
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside)?;
        let written = io::Write::write_all(&mut file, text.as_bytes()).and_then(|()| file.sync_all());
        let done = written.and_then(|()| fs::rename(&beside, &target));
        if done.is_err() {
            drop(fs::remove_file(&beside));
        }
        done
    }

    pub(crate) fn remove(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_empty(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.at(path))
    }

    /// Writes a value to a kernel file. In a saved copy a choice such as `always [never]` keeps its brackets, as in the
    /// kernel's file.
    pub(crate) fn set(&self, path: &str, value: &str) -> io::Result<()> {
        let target = self.at(path);
        if !self.is_saved() {
            return fs::OpenOptions::new()
                .write(true)
                .open(target)
                .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
        }
        let old = fs::read_to_string(&target)?;
        fs::write(target, format!("{}\n", choose(old.trim_end(), value)))
    }

    /// Returns the path in this file system of a path of the machine.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Copies all files that were read to `to`.
    pub(crate) fn save(&self, to: &Path) -> io::Result<()> {
        for path in self.seen.borrow().iter() {
            let target = to.join(path.trim_start_matches('/'));
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            // A device is saved as an empty file, which shows that it exists.
            let source = self.at(path);
            let text = if source.is_file() { fs::read(source)? } else { Vec::new() };
            fs::write(target, text)?;
        }
        Ok(())
    }
}

/// Returns the choices with the brackets around `value`.
fn choose(choices: &str, value: &str) -> String {
    if !choices.contains('[') {
        return value.to_owned();
    }
    let words = choices.split_whitespace().map(|word| word.trim_matches(['[', ']']));
    let marked = words.map(|word| if word == value { format!("[{word}]") } else { word.to_owned() });
    marked.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn choice_keeps_brackets() {
        assert_eq!(choose("always madvise [never]", "madvise"), "always [madvise] never");
        assert_eq!(choose("0", "1024"), "1024");
    }
}
