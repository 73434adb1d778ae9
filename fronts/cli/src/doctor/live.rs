//! Facts that are in no file of the kernel: results of trying system calls, and facts about this process. A saved
//! machine has them in a file `live` at its root, one a line.

use super::tree::Tree;
use std::collections::BTreeMap;

/// The result of trying a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Granted,
    /// The call failed with this errno.
    Refused(i32),
    /// This signal killed the calling process.
    Killed(i32),
}

/// Owner and mode of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// All facts that are in no file of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) trials: BTreeMap<String, Verdict>,
    /// Result of `prctl(PR_GET_THP_DISABLE)`.
    pub(crate) thp_disable: Option<u32>,
    pub(crate) page_size: Option<u64>,
    /// Owner and mode of `/dev/userfaultfd`, if it exists.
    pub(crate) device: Option<Device>,
    /// Value of `LD_PRELOAD`, if it is set.
    pub(crate) preload: Option<String>,
}

impl Live {
    pub(crate) fn of_saved(tree: &Tree) -> Live {
        Live::parse(&tree.read("/live").unwrap_or_default())
    }

    pub(crate) fn trial(&self, name: &str) -> Option<Verdict> {
        self.trials.get(name).copied()
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            text += &words;
            text.push('\n');
        };
        for (name, verdict) in &self.trials {
            line(match verdict {
                Verdict::Granted => format!("trial {name} granted"),
                Verdict::Refused(errno) => format!("trial {name} errno {errno}"),
                Verdict::Killed(signal) => format!("trial {name} signal {signal}"),
            });
        }
        if let Some(value) = self.thp_disable {
            line(format!("thp-disable {value}"));
        }
        if let Some(value) = self.page_size {
            line(format!("page-size {value}"));
        }
        if let Some(Device { mode, user, group }) = self.device {
            line(format!("device {mode:o} {user} {group}"));
        }
        if let Some(value) = &self.preload {
            line(format!("preload {value}"));
        }
        text
    }

    /// Parses a file `live`, and ignores unknown lines, which a newer doctor may have saved.
    pub(crate) fn parse(text: &str) -> Live {
        let mut live = Live::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["trial", name, "granted"] => {
                    live.trials.insert(name.to_owned(), Verdict::Granted);
                }
                ["trial", name, how, number] => {
                    let Ok(number) = number.parse() else { continue };
                    let verdict = match how {
                        "errno" => Verdict::Refused(number),
                        "signal" => Verdict::Killed(number),
                        _ => continue,
                    };
                    live.trials.insert(name.to_owned(), verdict);
                }
                ["thp-disable", value] => live.thp_disable = value.parse().ok(),
                ["page-size", value] => live.page_size = value.parse().ok(),
                ["device", mode, user, group] => live.device = device(mode, user, group),
                ["preload", ..] => live.preload = line.split_once(' ').map(|(_, value)| value.to_owned()),
                _ => {}
            }
        }
        live
    }
}

fn device(mode: &str, user: &str, group: &str) -> Option<Device> {
    let mode = u32::from_str_radix(mode, 8).ok()?;
    Some(Device { mode, user: user.parse().ok()?, group: group.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_facts_read_back() {
        let mut live = Live {
            trials: BTreeMap::new(),
            thp_disable: Some(3),
            page_size: Some(4096),
            device: Some(Device { mode: 0o600, user: 0, group: 101 }),
            preload: Some("/a b.so:/c.so".to_owned()),
        };
        live.trials.insert("mbind".to_owned(), Verdict::Refused(1));
        live.trials.insert("memfd_create".to_owned(), Verdict::Granted);
        live.trials.insert("userfaultfd".to_owned(), Verdict::Killed(31));
        assert_eq!(Live::parse(&live.text()), live);
        assert_eq!(Live::parse("nonsense\ntrial x errno much\n"), Live::default());
    }
}
