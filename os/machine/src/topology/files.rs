//! Reads the kernel's files below a root directory.
//!
//! A file that does not exist means that the kernel does not know its contents. A file that exists and cannot be read,
//! or that another mount hides, says nothing: it is recorded, so that callers can name it.

use super::unreadable::{Unreadable, Why};
use crate::Bitmap;
use crate::unread::{self, Unread};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Files<'a> {
    root: &'a Path,
    unread: RefCell<Vec<PathBuf>>,
}

impl<'a> Files<'a> {
    pub(super) fn below(root: &'a Path) -> Files<'a> {
        Files { root, unread: RefCell::default() }
    }

    /// Returns the files that may exist and could not be read.
    pub(super) fn unread(self) -> Vec<PathBuf> {
        self.unread.into_inner()
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns the text of a file, or `None` if it does not exist, cannot be read, or is empty. White space and zero
    /// bytes at its end are removed.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        self.remember(unread::trimmed(self.root, path)).filter(|text| !text.is_empty())
    }

    /// Returns the names in a directory, or `None` if it does not exist or cannot be read.
    pub(super) fn names(&self, path: &str) -> Option<Vec<String>> {
        self.remember(unread::names(self.root, path))
    }

    /// Returns what was read, and records the file that could not be.
    fn remember<T>(&self, read: Result<Option<T>, Unread>) -> Option<T> {
        let unread = match read {
            Ok(read) => return read,
            Err(unread) => unread.file().to_owned(),
        };
        let mut all = self.unread.borrow_mut();
        if !all.contains(&unread) {
            all.push(unread);
        }
        None
    }

    /// Returns whether a file or directory is absent, in the sense of [`Unread::hidden`].
    pub(super) fn is_absent(&self, path: &str) -> bool {
        !self.path(path).exists() && Unread::hidden(self.root, path).is_none()
    }

    pub(super) fn list(&self, path: &str) -> Result<Option<Bitmap>, Unreadable> {
        let Some(text) = self.text(path) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.unlike(path, &text))
    }

    pub(super) fn mask(&self, path: &str) -> Result<Option<Bitmap>, Unreadable> {
        let Some(text) = self.text(path) else { return Ok(None) };
        Bitmap::from_mask(&text).map(Some).map_err(|_| self.unlike(path, &text))
    }

    /// Returns the number in a file, with a unit of K or M applied, or 0 if there is no such file.
    pub(super) fn number(&self, path: &str) -> Result<u64, Unreadable> {
        let Some(text) = self.text(path) else { return Ok(0) };
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let scale = match unit.trim() {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return Err(self.unlike(path, &text)),
        };
        digits.parse::<u64>().map(|number| number * scale).map_err(|_| self.unlike(path, &text))
    }

    /// Returns the numbers of the entries in `folder` that consist of `name` and a number, such as `node3`.
    pub(super) fn numbered(&self, folder: &str, name: &str) -> Bitmap {
        let number = |entry: &String| {
            let number: u32 = entry.strip_prefix(name)?.parse().ok()?;
            (number < crate::bitmap::END).then_some(number)
        };
        self.names(folder).unwrap_or_default().iter().filter_map(number).collect()
    }

    pub(super) fn unlike(&self, path: &str, text: &str) -> Unreadable {
        Unreadable { path: self.path(path), why: Why::Text(text.to_owned()) }
    }

    pub(super) fn missing(&self, path: &str) -> Unreadable {
        Unreadable { path: self.path(path), why: Why::Io(io::ErrorKind::NotFound.into()) }
    }
}
