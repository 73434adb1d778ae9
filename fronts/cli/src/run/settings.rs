//! Checks options and inherited `LARGESSE_*` variables once, before the program starts.
//!
//! An omitted option leaves its variable unchanged, so that the user's value or else the library's default applies.

use super::error::LaunchError;
use super::report::ReportTarget;
use largesse_far::{Given, Setting};
use largesse_kernels::Isa;
use largesse_report::PageChoice;
use largesse_settings::{SWITCH, block_size};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Default size in KiB from which the library serves blocks (docs/settings.md).
const DEFAULT_MIN_KB: u64 = 256;
/// Default size in KiB from which the library serves blocks when there is far memory.
const FAR_MIN_KB: u64 = 64;
/// Default size in KiB up to which the library serves blocks.
const MOST_KB: u64 = 1 << 40;

/// The NUMA placement of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    FirstTouch,
    Interleave,
    Number(u32),
}

/// The settings in force for the program: options first, then inherited variables, then defaults.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) pages: PageChoice,
    pub(super) lock: bool,
    /// Whether programs that this one starts are served, too.
    pub(super) children: bool,
    pub(super) node: Node,
    /// The option or variable that set `node`.
    pub(super) node_origin: &'static str,
    /// Whether the program uses far memory from its start.
    pub(super) far: bool,
    pub(super) report: Option<ReportTarget>,
    /// The option or variable that set `report`.
    pub(super) report_origin: &'static str,
    /// Names and values of the environment variables to set.
    pub(super) variables: Vec<(&'static str, OsString)>,
}

impl Settings {
    /// Reads the options in `given`, then the environment through `get`, and checks all values.
    pub(super) fn parse(
        given: &[Given],
        get: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Settings, LaunchError> {
        let value = |variable: &'static str| Setting::of(variable, given, &get);

        let pages = value("LARGESSE_PAGES")
            .map_or(Ok(PageChoice::Auto), |setting| setting.word(&PageChoice::WORDS))?;
        let lock =
            value("LARGESSE_LOCK").map_or(Ok(false), |setting| setting.word(&[("0", false), ("1", true)]))?;
        value("LARGESSE_ALIGN").map_or(Ok(()), |setting| setting.word(&[("64", ()), ("native", ())]))?;
        let switch = |variable| value(variable).map_or(Ok(true), |setting| setting.word(&SWITCH));
        let children = switch("LARGESSE_CHILDREN")?;
        switch("LARGESSE_AHEAD")?;
        let placed = value("LARGESSE_NODE");
        let node = placed.as_ref().map_or(Ok(Node::FirstTouch), node_of)?;
        if let Some(setting) = value("LARGESSE_ISA") {
            instructions(&setting)?;
        }
        if let Some(header) = value("LARGESSE_HEADER") {
            header.size(largesse_settings::header)?;
        }
        let far = largesse_far::variables(value, &get)?;
        let limited = far.iter().any(|(name, _)| *name == "LARGESSE_LIMIT");
        if !far.is_empty() {
            excluded(value, pages, lock, node, limited)?;
        }
        let default_min = if far.is_empty() || limited { DEFAULT_MIN_KB } else { FAR_MIN_KB };
        check_limits(value("LARGESSE_MIN_KB"), value("LARGESSE_MAX_KB"), default_min)?;

        let mut variables: Vec<(&'static str, OsString)> =
            given.iter().map(|one| (one.variable, one.value.clone())).collect();
        variables.retain(|(variable, _)| far.iter().all(|(known, _)| known != variable));
        let is_far = !far.is_empty() && !limited;
        variables.extend(far);
        let reported = value("LARGESSE_REPORT");
        let report = reported.as_ref().map(|setting| ReportTarget::of(&setting.value));
        variables.retain(|(variable, _)| *variable != "LARGESSE_REPORT");
        let origin = |setting: Option<Setting>| setting.map_or("", |setting| setting.origin);
        let (node_origin, report_origin) = (origin(placed), origin(reported));
        Ok(Settings {
            pages,
            lock,
            children,
            node,
            node_origin,
            far: is_far,
            report,
            report_origin,
            variables,
        })
    }
}

/// Checks before the program starts that the report file, which `origin` names, can be written, and leaves it as it
/// was.
pub(super) fn report_can_be_written(origin: &'static str, path: &Path) -> Result<(), LaunchError> {
    let failure = |error| LaunchError::Report { origin, path: path.to_owned(), error };
    let made = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Without O_NONBLOCK, opening a FIFO would block until it has a reader.
            let opened = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
            match opened {
                Err(error) if error.raw_os_error() != Some(libc::ENXIO) => return Err(failure(error)),
                _ => false,
            }
        }
        Err(error) => return Err(failure(error)),
    };
    if made { std::fs::remove_file(path).map_err(failure) } else { Ok(()) }
}

/// Returns the value of a setting that is a size, in whole KiB.
fn kilobytes(setting: &Setting) -> Result<u64, largesse_far::FarError> {
    setting.size(block_size).map(|bytes| bytes as u64 >> 10)
}

fn node_of(setting: &Setting) -> Result<Node, largesse_far::FarError> {
    match setting.value.to_str() {
        Some("first-touch") => Ok(Node::FirstTouch),
        Some("interleave") => Ok(Node::Interleave),
        _ => {
            let number = setting.number().and_then(|number| u32::try_from(number).ok());
            number
                .map(Node::Number)
                .ok_or_else(|| setting.refused("the number of a NUMA node, interleave, first-touch"))
        }
    }
}

/// Refuses an instruction set that does not exist or that this processor lacks.
fn instructions(setting: &Setting) -> Result<(), largesse_far::FarError> {
    let here: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.is_available()).collect();
    let words = here.iter().map(|isa| (isa.name(), ()));
    setting.word(&[("auto", ())].into_iter().chain(words).collect::<Vec<_>>())
}

/// Refuses settings that would silently have no effect with far memory, or with a limit if `limited`.
fn excluded(
    value: impl Fn(&'static str) -> Option<Setting>,
    pages: PageChoice,
    lock: bool,
    node: Node,
    limited: bool,
) -> Result<(), largesse_far::FarError> {
    let other = if limited { "LARGESSE_LIMIT" } else { "LARGESSE_LOCAL" };
    let other = value(other).map_or(other, |setting| setting.origin);
    // Before a limit comes near, blocks are on large pages.
    let pages_excluded = match pages {
        PageChoice::Auto | PageChoice::Small => false,
        PageChoice::Thp => !limited,
        PageChoice::Hugetlb | PageChoice::Hugetlb1G | PageChoice::Medium => true,
    };
    for (is_given, variable, why) in [
        (lock, "LARGESSE_LOCK", "far memory cannot be locked: its pages are evicted"),
        (pages_excluded, "LARGESSE_PAGES", "far memory is on pages of 4 KiB"),
        (node != Node::FirstTouch, "LARGESSE_NODE", "far memory is placed by first touch"),
    ] {
        if let Some(setting) = value(variable).filter(|_| is_given) {
            return Err(setting.excluded_by(other, why));
        }
    }
    Ok(())
}

fn check_limits(min: Option<Setting>, max: Option<Setting>, default_min: u64) -> Result<(), LaunchError> {
    let least = min.as_ref().map_or(Ok(default_min), kilobytes)?;
    let most = max.as_ref().map_or(Ok(MOST_KB), kilobytes)?;
    if least <= most {
        return Ok(());
    }
    Err(LaunchError::Limits {
        min: (min.map_or("the default of --min-kb", |setting| setting.origin), least),
        max: (max.map_or("the default of --max-kb", |setting| setting.origin), most),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(
        options: &[(&'static str, &'static str, &str)],
        environment: &[(&str, &str)],
    ) -> Result<Settings, String> {
        let given: Vec<Given> = options
            .iter()
            .map(|(option, variable, value)| Given { option, variable, value: value.into() })
            .collect();
        let get = |name: &str| {
            environment.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into())
        };
        Settings::parse(&given, get).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(option: (&'static str, &'static str, &str), words: &str) {
        let message = parsed(&[option], &[]).expect_err("accepted");
        assert!(message.contains(words) && message.contains(option.0), "{message}");
    }

    #[test]
    fn no_option_sets_no_variable() {
        let settings = parsed(&[], &[]).unwrap();
        assert_eq!(settings.variables, []);
        assert_eq!(settings.pages, PageChoice::Auto);
    }

    #[test]
    fn bad_values_name_accepted_ones() {
        let number = "the least is 64K";
        refused(("--pages", "LARGESSE_PAGES", "4K"), "auto, thp, hugetlb, hugetlb-1g, 64k, 4k");
        refused(("--pages", "LARGESSE_PAGES", ""), "auto, thp");
        refused(("--min-kb", "LARGESSE_MIN_KB", "-5"), "type a whole number of KiB");
        refused(("--min-kb", "LARGESSE_MIN_KB", "63"), number);
        refused(("--min-kb", "LARGESSE_MIN_KB", "1e3"), "type a whole number of KiB");
        refused(("--min-kb", "LARGESSE_MIN_KB", "+64"), "type a whole number of KiB");
        refused(("--max-kb", "LARGESSE_MAX_KB", "1099511627777"), "above the most");
        refused(("--max-kb", "LARGESSE_MAX_KB", "99999999999999999999"), "above the most");
        refused(("--header", "LARGESSE_HEADER", "40"), "multiple of 16");
        refused(("--header", "LARGESSE_HEADER", "4112"), "above the most, 4K");
        refused(("--align", "LARGESSE_ALIGN", "16"), "64, native");
        refused(("--node", "LARGESSE_NODE", "-1"), "number of a NUMA node");
        refused(("--children", "LARGESSE_CHILDREN", "yes"), "on, off");
    }

    #[test]
    fn inherited_variables_are_checked() {
        let message = parsed(&[], &[("LARGESSE_PAGES", "4K")]).unwrap_err();
        assert!(message.starts_with("LARGESSE_PAGES=4K is not understood"), "{message}");
    }

    #[test]
    fn options_override_variables() {
        let settings =
            parsed(&[("--pages", "LARGESSE_PAGES", "4k")], &[("LARGESSE_PAGES", "nonsense")]).unwrap();
        assert_eq!(settings.pages, PageChoice::Small);
        assert_eq!(settings.variables, [("LARGESSE_PAGES", "4k".into())]);
    }

    #[test]
    fn minimum_above_maximum_is_refused() {
        let min = ("--min-kb", "LARGESSE_MIN_KB", "512");
        let max = ("--max-kb", "LARGESSE_MAX_KB", "128");
        assert!(
            parsed(&[min, max], &[]).unwrap_err().contains("--min-kb (512 KiB) is above --max-kb (128 KiB)")
        );
        assert!(parsed(&[max], &[]).unwrap_err().contains("the default of --min-kb (256 KiB)"));
        assert!(parsed(&[max], &[("LARGESSE_MIN_KB", "64")]).is_ok());
        let megabyte = ("--min-kb", "LARGESSE_MIN_KB", "1MB");
        assert!(parsed(&[megabyte, max], &[]).unwrap_err().contains("--min-kb (1024 KiB) is above"));
    }

    #[test]
    fn far_memory_excludes_settings() {
        let local = ("--local", "LARGESSE_LOCAL", "64M");
        for (option, words) in [
            (("--lock", "LARGESSE_LOCK", "1"), "--lock cannot be combined with --local"),
            (("--pages", "LARGESSE_PAGES", "hugetlb"), "--pages hugetlb cannot be combined with --local"),
            (("--pages", "LARGESSE_PAGES", "hugetlb-1g"), "pages of 4 KiB"),
            (("--pages", "LARGESSE_PAGES", "64k"), "leave one of the two out"),
            (("--pages", "LARGESSE_PAGES", "thp"), "--pages thp"),
            (("--node", "LARGESSE_NODE", "0"), "--node 0 cannot be combined with --local"),
            (("--interleave", "LARGESSE_NODE", "interleave"), "--interleave cannot be combined with --local"),
        ] {
            let message = parsed(&[local, option], &[]).expect_err("accepted");
            assert!(message.contains(words), "{message}");
            assert!(parsed(&[option], &[]).is_ok(), "{option:?} without --local");
        }
        let message = parsed(&[local], &[("LARGESSE_LOCK", "1")]).unwrap_err();
        assert!(message.starts_with("LARGESSE_LOCK=1 cannot be combined with --local"), "{message}");
        for (name, value) in
            [("LARGESSE_PAGES", "4k"), ("LARGESSE_NODE", "first-touch"), ("LARGESSE_LOCK", "0")]
        {
            assert!(parsed(&[local], &[(name, value)]).is_ok(), "{name}={value}");
        }
    }

    #[test]
    fn limit_excludes_settings() {
        let limit = ("--limit", "LARGESSE_LIMIT", "8G");
        for (option, words) in [
            (("--lock", "LARGESSE_LOCK", "1"), "--lock cannot be combined with --limit"),
            (("--pages", "LARGESSE_PAGES", "hugetlb"), "--pages hugetlb cannot be combined with --limit"),
            (("--pages", "LARGESSE_PAGES", "64k"), "--pages 64k"),
            (("--interleave", "LARGESSE_NODE", "interleave"), "--interleave cannot be combined with --limit"),
        ] {
            let message = parsed(&[limit, option], &[]).expect_err("accepted");
            assert!(message.contains(words), "{message}");
        }
        assert!(parsed(&[limit, ("--pages", "LARGESSE_PAGES", "thp")], &[]).is_ok());
    }

    #[test]
    fn report_path_is_absolute() {
        let settings = parsed(&[("--report", "LARGESSE_REPORT", "here.json")], &[]).unwrap();
        assert!(matches!(settings.report, Some(ReportTarget::File(path)) if path.is_absolute()));
        let settings = parsed(&[("--report", "LARGESSE_REPORT", "-")], &[]).unwrap();
        assert_eq!(settings.report, Some(ReportTarget::Stdout));
    }
}
