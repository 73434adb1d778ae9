//! Our configuration files: an identifying first line, the earlier values, and the settings.

use crate::doctor::tree::Tree;

pub(crate) const SYSCTL: &str = "/etc/sysctl.d/60-largesse.conf";
pub(crate) const LIMITS: &str = "/etc/security/limits.d/60-largesse.conf";
pub(crate) const UDEV: &str = "/etc/udev/rules.d/60-largesse.rules";
pub(crate) const TMPFILES: &str = "/etc/tmpfiles.d/60-largesse.conf";
pub(crate) const ALL: [&str; 4] = [SYSCTL, LIMITS, UDEV, TMPFILES];

/// The first line of each of our files. A file without it is never changed.
const HEADER: &str = "# Written by `largesse doctor --fix`; `largesse doctor --undo` takes it back.";
const WAS: &str = "# was: ";
const MADE: &str = "# made: ";

/// Entry in a line `# made:` which records that we created the group.
pub(crate) const MADE_GROUP: &str = "group largesse";

/// Holds the text of a file that `doctor --fix` writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnFile {
    /// Kernel files or the device, each with its value before our change.
    pub(crate) was: Vec<(String, String)>,
    /// Directories, and the group, that were created for this file.
    pub(crate) made: Vec<String>,
    lines: Vec<String>,
}

/// A file with our name but without our first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    pub(crate) path: &'static str,
}

impl OwnFile {
    /// Reads our file, or returns `None` if it does not exist.
    pub(crate) fn read(tree: &Tree, path: &'static str) -> Result<Option<OwnFile>, Foreign> {
        if tree.is_link(path) {
            return Err(Foreign { path });
        }
        match tree.read(path) {
            Some(text) => OwnFile::parse(&text).map(Some).ok_or(Foreign { path }),
            None if tree.exists(path) => Err(Foreign { path }),
            None => Ok(None),
        }
    }

    fn parse(text: &str) -> Option<OwnFile> {
        let rest = text.strip_prefix(HEADER)?;
        let mut file = OwnFile::default();
        for line in rest.lines().filter(|line| !line.is_empty()) {
            if let Some((path, value)) = line.strip_prefix(WAS).and_then(|was| was.split_once(' ')) {
                file.was.push((path.to_owned(), value.to_owned()));
            } else if let Some(made) = line.strip_prefix(MADE) {
                file.made.push(made.to_owned());
            } else if !line.starts_with('#') {
                file.lines.push(line.to_owned());
            }
        }
        Some(file)
    }

    pub(crate) fn text(&self) -> String {
        let was = self.was.iter().map(|(path, value)| format!("{WAS}{path} {value}"));
        let made = self.made.iter().map(|made| format!("{MADE}{made}"));
        let lines = self.lines.iter().cloned();
        let all = std::iter::once(HEADER.to_owned()).chain(was).chain(made).chain(lines);
        all.map(|line| line + "\n").collect()
    }

    /// Adds a line with a setting, or replaces the line that differs only in the last word, its value.
    pub(crate) fn set(&mut self, line: &str) {
        let same = |old: &&mut String| about(old) == about(line);
        match self.lines.iter_mut().find(same) {
            Some(old) => line.clone_into(old),
            None => self.lines.push(line.to_owned()),
        }
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.lines.iter().any(|own| own == line)
    }

    /// Records `value` as that of the kernel file `path` before our first change. A later call for this file changes
    /// nothing.
    pub(crate) fn remember(&mut self, path: &str, value: &str) {
        if !self.was.iter().any(|(known, _)| known == path) {
            self.was.push((path.to_owned(), value.to_owned()));
        }
    }

    pub(crate) fn remember_made(&mut self, what: &str) {
        if !self.made.iter().any(|known| known == what) {
            self.made.push(what.to_owned());
        }
    }

    /// Returns the value that our file sets for a kernel file.
    pub(crate) fn value_of(&self, path: &str) -> Option<&str> {
        let sysctl = path.strip_prefix("/proc/sys/").map(|name| name.replace('/', "."));
        let is_about = |line: &&String| {
            line.split(' ').any(|word| word == path || sysctl.as_deref().is_some_and(|name| word == name))
        };
        self.lines.iter().find(is_about)?.rsplit(' ').next()
    }
}

fn about(line: &str) -> &str {
    line.rsplit_once(' ').map_or(line, |(about, _)| about)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> OwnFile {
        let mut file = OwnFile::default();
        file.remember("/proc/sys/vm/nr_hugepages", "0");
        file.remember_made("/etc/sysctl.d");
        file.set("vm.nr_hugepages = 512");
        file
    }

    #[test]
    fn own_file_reads_back() {
        assert_eq!(OwnFile::parse(&some().text()), Some(some()));
    }

    #[test]
    fn foreign_file_is_refused() {
        for text in ["", "vm.nr_hugepages = 1\n", "# Written by hand\n"] {
            assert_eq!(OwnFile::parse(text), None, "{text}");
        }
    }

    #[test]
    fn earliest_value_is_kept() {
        let mut file = some();
        file.remember("/proc/sys/vm/nr_hugepages", "512");
        file.set("vm.nr_hugepages = 1024");
        assert_eq!(file.was, [("/proc/sys/vm/nr_hugepages".to_owned(), "0".to_owned())]);
        assert_eq!(file.value_of("/proc/sys/vm/nr_hugepages"), Some("1024"));
        assert!(!file.has("vm.nr_hugepages = 512"));
    }
}
