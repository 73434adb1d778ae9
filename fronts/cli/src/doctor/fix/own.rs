//! A file of ours: a first line that says so, what was there before, and the settings.

use crate::doctor::tree::Tree;

pub(crate) const SYSCTL: &str = "/etc/sysctl.d/60-largesse.conf";
pub(crate) const LIMITS: &str = "/etc/security/limits.d/60-largesse.conf";
pub(crate) const UDEV: &str = "/etc/udev/rules.d/60-largesse.rules";
pub(crate) const TMPFILES: &str = "/etc/tmpfiles.d/60-largesse.conf";
pub(crate) const ALL: [&str; 4] = [SYSCTL, LIMITS, UDEV, TMPFILES];

/// The first line of every file of ours. A file without it is never touched.
const HEADER: &str = "# Written by `largesse doctor --fix`; `largesse doctor --undo` takes it back.";
const WAS: &str = "# was: ";
const MADE: &str = "# made: ";

/// What `# made:` says when the group is ours to remove.
pub(crate) const MADE_GROUP: &str = "group largesse";

/// The text of one of our files, in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnFile {
    /// A file of the kernel, or the device, and what it held before us.
    pub(crate) was: Vec<(String, String)>,
    /// What we created for the sake of this file: directories, the group.
    pub(crate) made: Vec<String>,
    lines: Vec<String>,
}

/// A file that has our name and not our first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign(pub(crate) &'static str);

impl OwnFile {
    /// Ours as it is now; `None` when there is none.
    pub(crate) fn read(tree: &Tree, path: &'static str) -> Result<Option<OwnFile>, Foreign> {
        if tree.is_link(path) {
            return Err(Foreign(path));
        }
        match tree.read(path) {
            Some(text) => OwnFile::parse(&text).map(Some).ok_or(Foreign(path)),
            None if tree.exists(path) => Err(Foreign(path)),
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

    /// Adds a setting; one about the same thing, all but its last word, is replaced.
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

    /// Remembers what was there before us: the first time only, later it is our own.
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

    /// The value that we give to a file of the kernel.
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
    fn a_file_of_ours_reads_back() {
        assert_eq!(OwnFile::parse(&some().text()), Some(some()));
    }

    #[test]
    fn a_file_of_others_is_not_ours() {
        for text in ["", "vm.nr_hugepages = 1\n", "# Written by hand\n"] {
            assert_eq!(OwnFile::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_setting_is_replaced_and_the_first_former_value_stays() {
        let mut file = some();
        file.remember("/proc/sys/vm/nr_hugepages", "512");
        file.set("vm.nr_hugepages = 1024");
        assert_eq!(file.was, [("/proc/sys/vm/nr_hugepages".to_owned(), "0".to_owned())]);
        assert_eq!(file.value_of("/proc/sys/vm/nr_hugepages"), Some("1024"));
        assert!(!file.has("vm.nr_hugepages = 512"));
    }
}
