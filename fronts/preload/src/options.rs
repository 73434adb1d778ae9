//! Settings, parsed once by a pure function. `docs/settings.md` has a line for each.

use crate::wish::{Engine, Store, Wish};
use largesse_kernels::Isa;
use largesse_malloc::DataAlign;
use largesse_pager::Local;
use largesse_pages::Placement;
use largesse_report::PageChoice;
use largesse_settings::{Amount, Misread, block_size};

/// Requests of at least this size are taken unless the user says otherwise: measured in
/// `docs/decisions/003-min-kb.md`.
pub(crate) const DEFAULT_MIN_KB: usize = 256;
/// With far memory, more counts: what is not far takes local memory.
pub(crate) const FAR_MIN_KB: usize = 64;
const LARGEST_KB: usize = 1 << 40;

/// Everything a user may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) pages: PageChoice,
    pub(crate) lock: bool,
    /// Bytes.
    pub(crate) min: usize,
    /// Bytes.
    pub(crate) max: usize,
    /// `None`: 48 where libR.so is loaded, else 0.
    pub(crate) header: Option<usize>,
    pub(crate) data: DataAlign,
    pub(crate) placement: Placement,
    /// Serve forked and executed children of the launched process too.
    pub(crate) children: bool,
    /// The folder where the launcher's watcher looks for what processes report.
    pub(crate) report: Option<String>,
    /// The process that the launcher became.
    pub(crate) pid: Option<u32>,
    /// First touch ahead of need.
    pub(crate) ahead: bool,
    /// Far memory instead of this machine's own.
    pub(crate) far: Option<Wish>,
    /// What the kernels are made of; `None`: the fastest.
    pub(crate) isa: Option<Isa>,
    /// Threads of the kernels, from `OMP_NUM_THREADS`; `None`: as many as there are processors.
    pub(crate) threads: Option<usize>,
}

/// A variable whose value is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownValue {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) why: Why,
}

/// Why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is none of these.
    Not(&'static str),
    /// It is not the size that is needed.
    Size(Misread),
    /// Far memory has nowhere to put its pages.
    Missing(&'static str),
    /// `LARGESSE_MIN_KB` (or its default) is above `LARGESSE_MAX_KB`.
    Crossed,
}

impl core::fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let UnknownValue { name, value, why } = self;
        match why {
            Why::Not(accepts) => write!(f, "{name}={value} is not understood; it accepts {accepts}"),
            Why::Size(misread) => write!(f, "{name}={value} {misread}"),
            Why::Missing(accepts) => {
                write!(f, "{name} is not set, and LARGESSE_LOCAL needs it; it accepts {accepts}")
            }
            Why::Crossed => write!(
                f,
                "{name}={value}: LARGESSE_MIN_KB, or its default, is above LARGESSE_MAX_KB; set both"
            ),
        }
    }
}

impl Default for Options {
    /// What an empty environment means.
    fn default() -> Options {
        Options {
            pages: PageChoice::Auto,
            lock: false,
            min: DEFAULT_MIN_KB << 10,
            max: LARGEST_KB << 10,
            header: None,
            data: DataAlign::Lines,
            placement: Placement::FirstTouch,
            children: true,
            report: None,
            pid: None,
            ahead: true,
            far: None,
            isa: None,
            threads: None,
        }
    }
}

type Get<'a> = dyn Fn(&str) -> Option<String> + 'a;

impl Options {
    /// Read every setting through `get`.
    pub(crate) fn parse(get: &Get<'_>) -> Result<Options, UnknownValue> {
        // An empty variable is as good as one that is not set.
        let get: &Get<'_> = &|name: &str| get(name).filter(|value| !value.is_empty());
        let crossed = |name, kib: usize| UnknownValue { name, value: kib.to_string(), why: Why::Crossed };
        let max = size(get, "LARGESSE_MAX_KB", block_size)?.unwrap_or(LARGEST_KB << 10);
        let far = far(get)?;
        let default_min = if far.is_some() { FAR_MIN_KB } else { DEFAULT_MIN_KB };
        let given_min = size(get, "LARGESSE_MIN_KB", block_size)?;
        let min = given_min.unwrap_or(default_min << 10);
        if min > max {
            let name = if given_min.is_some() { "LARGESSE_MIN_KB" } else { "LARGESSE_MAX_KB" };
            return Err(crossed(name, given_min.unwrap_or(max) >> 10));
        }
        let options = Options {
            pages: one(
                get,
                "LARGESSE_PAGES",
                "auto, thp, hugetlb, hugetlb-1g, 64k, 4k",
                PageChoice::Auto,
                |text| PageChoice::WORDS.iter().find(|(word, _)| *word == text).map(|(_, pages)| *pages),
            )?,
            lock: one(get, "LARGESSE_LOCK", "0, 1", false, switch("0", "1"))?,
            min,
            max,
            header: size(get, "LARGESSE_HEADER", largesse_settings::header)?,
            data: one(get, "LARGESSE_ALIGN", "64, native", DataAlign::Lines, |text| match text {
                "64" => Some(DataAlign::Lines),
                "native" => Some(DataAlign::Native),
                _ => None,
            })?,
            placement: one(
                get,
                "LARGESSE_NODE",
                "a node number below 1024, interleave, first-touch",
                Placement::FirstTouch,
                |text| match text {
                    "first-touch" => Some(Placement::FirstTouch),
                    "interleave" => Some(Placement::Interleave),
                    number => number.parse().ok().filter(|&node| node < 1024).map(Placement::Node),
                },
            )?,
            children: one(get, "LARGESSE_CHILDREN", "on, off", true, switch("off", "on"))?,
            report: get("LARGESSE_REPORT_FOLDER"),
            pid: one(get, "LARGESSE_PID", "a process number", None, |text| text.parse().ok().map(Some))?,
            ahead: one(get, "LARGESSE_AHEAD", "on, off", true, switch("off", "on"))?,
            far,
            isa: one(
                get,
                "LARGESSE_ISA",
                "auto, or what this processor has of avx512, avx2, sse2, neon, portable",
                None,
                |text| match text {
                    "auto" => Some(None),
                    name => name.parse().ok().filter(|isa: &Isa| isa.is_available()).map(Some),
                },
            )?,
            // Not ours to refuse: a bad value is said elsewhere.
            threads: get("OMP_NUM_THREADS").and_then(|list| largesse_settings::threads(&list).ok()),
        };
        match options.excluded_by_far().filter(|_| options.far.is_some()) {
            Some((name, accepts)) => {
                Err(UnknownValue { name, value: get(name).unwrap_or_default(), why: Why::Not(accepts) })
            }
            None => Ok(options),
        }
    }
}

impl Options {
    /// The first setting that far memory would silently ignore, and what may be set with it.
    pub(crate) fn excluded_by_far(&self) -> Option<(&'static str, &'static str)> {
        let pages = !matches!(self.pages, PageChoice::Auto | PageChoice::Small);
        [
            (self.lock, "LARGESSE_LOCK", "0 with far memory, whose pages leave memory"),
            (pages, "LARGESSE_PAGES", "auto, 4k with far memory, which is on pages of 4 KiB"),
            (
                self.placement != Placement::FirstTouch,
                "LARGESSE_NODE",
                "first-touch with far memory, which is placed where it is touched",
            ),
        ]
        .into_iter()
        .find_map(|(is_set, name, accepts)| is_set.then_some((name, accepts)))
    }
}

/// Far memory, if local memory is limited.
fn far(get: &Get<'_>) -> Result<Option<Wish>, UnknownValue> {
    let local = size(get, "LARGESSE_LOCAL", largesse_settings::local)?;
    let store = one(get, "LARGESSE_FAR", Store::ACCEPTED, None, |text| Store::parse(text).map(Some))?;
    let page_size = size(get, "LARGESSE_PAGE_SIZE", largesse_settings::page_size)?.flatten();
    let static_data = one(get, "LARGESSE_STATIC_DATA", "on, off", true, switch("off", "on"))?;
    let prefetch = one(get, "LARGESSE_PREFETCH", "on, off", true, switch("off", "on"))?;
    let engine = one(
        get,
        "LARGESSE_FAULT_ENGINE",
        "auto, events, user-mode, thread",
        Engine::Auto,
        |text| match text {
            "auto" => Some(Engine::Auto),
            "events" => Some(Engine::Events),
            "user-mode" => Some(Engine::UserMode),
            "thread" => Some(Engine::Thread),
            _ => None,
        },
    )?;
    let Some(local) = local else { return Ok(None) };
    let missing =
        || UnknownValue { name: "LARGESSE_FAR", value: String::new(), why: Why::Missing(Store::ACCEPTED) };
    let store = store.ok_or_else(missing)?;
    Ok(Some(Wish { local: local_of(local), store, page_size, static_data, prefetch, engine }))
}

/// The limit of local memory that `amount` asks for.
pub(crate) fn local_of(amount: Amount) -> Local {
    match amount {
        Amount::Bytes(bytes) => Local::Bytes(bytes),
        Amount::Percent(percent) => Local::Percent(percent),
    }
}

/// The size in the variable `name`, if it is set.
fn size<T>(
    get: &Get<'_>,
    name: &'static str,
    read: fn(&str) -> Result<T, Misread>,
) -> Result<Option<T>, UnknownValue> {
    let Some(value) = get(name) else { return Ok(None) };
    read(&value).map(Some).map_err(|misread| UnknownValue { name, value, why: Why::Size(misread) })
}

fn switch(off: &'static str, on: &'static str) -> impl Fn(&str) -> Option<bool> {
    move |text| (text == on).then_some(true).or((text == off).then_some(false))
}

fn one<T>(
    get: &Get<'_>,
    name: &'static str,
    accepts: &'static str,
    default: T,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, UnknownValue> {
    match get(name) {
        None => Ok(default),
        Some(value) => read(&value).ok_or(UnknownValue { name, value, why: Why::Not(accepts) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: PartialEq + core::fmt::Debug>(
        vars: &[(&str, &str)],
        field: fn(Options) -> T,
        want: Result<T, &str>,
    ) {
        let get =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(Options::parse(&get).map(field).map_err(|error| error.name), want);
    }

    #[test]
    fn an_empty_environment_means_the_defaults() {
        check(&[], |options| options, Ok(Options::default()));
    }

    #[test]
    fn empty_variables_are_not_set() {
        let all: Vec<_> = largesse_settings::VARIABLES.into_iter().chain(["OMP_NUM_THREADS"]).collect();
        let empty: Vec<_> = all.iter().map(|name| (*name, "")).collect();
        check(&empty, |options| options, Ok(Options::default()));
    }

    #[test]
    fn pages() {
        check(&[], |o| o.pages, Ok(PageChoice::Auto));
        check(&[("LARGESSE_PAGES", "4k")], |o| o.pages, Ok(PageChoice::Small));
        check(&[("LARGESSE_PAGES", "hugetlb-1g")], |o| o.pages, Ok(PageChoice::Hugetlb1G));
        check(&[("LARGESSE_PAGES", "4K")], |o| o.pages, Err("LARGESSE_PAGES"));
    }

    #[test]
    fn sizes() {
        check(&[], |o| o.min, Ok(DEFAULT_MIN_KB << 10));
        check(&[("LARGESSE_MIN_KB", "1024")], |o| o.min, Ok(1 << 20));
        check(&[("LARGESSE_MIN_KB", "63")], |o| o.min, Err("LARGESSE_MIN_KB"));
        check(&[("LARGESSE_MIN_KB", "-1")], |o| o.min, Err("LARGESSE_MIN_KB"));
        check(&[("LARGESSE_MIN_KB", "99999999999999999999")], |o| o.min, Err("LARGESSE_MIN_KB"));
        check(&[("LARGESSE_MAX_KB", "64")], |o| o.max, Err("LARGESSE_MAX_KB"));
        check(
            &[("LARGESSE_MAX_KB", "64"), ("LARGESSE_MIN_KB", "64")],
            |o| (o.min, o.max),
            Ok((64 << 10, 64 << 10)),
        );
        check(&[("LARGESSE_MIN_KB", "2048"), ("LARGESSE_MAX_KB", "1024")], |o| o.min, Err("LARGESSE_MIN_KB"));
        check(&[("LARGESSE_MAX_KB", "0")], |o| o.max, Err("LARGESSE_MAX_KB"));
    }

    #[test]
    fn far_sizes() {
        let local =
            |text| [("LARGESSE_LOCAL", text), ("LARGESSE_FAR", "file:/x"), ("LARGESSE_PAGE_SIZE", "64KB")];
        let far = |o: Options| o.far.map(|wish| (wish.local, wish.page_size));
        check(&local("4GB"), far, Ok(Some((Local::Bytes(4 << 30), Some(64 << 10)))));
        check(&local("1.5g"), far, Ok(Some((Local::Bytes(3 << 29), Some(64 << 10)))));
        check(&local("50 %"), far, Ok(Some((Local::Percent(50), Some(64 << 10)))));
        check(&local("4"), far, Err("LARGESSE_LOCAL"));
        check(&[("LARGESSE_LOCAL", "4G")], far, Err("LARGESSE_FAR"));
        check(&[("LARGESSE_PAGE_SIZE", "5000")], far, Err("LARGESSE_PAGE_SIZE"));
        check(&[("LARGESSE_MIN_KB", "1M")], |o| o.min, Ok(1 << 20));
    }

    #[test]
    fn settings_that_far_memory_excludes() {
        let far = [("LARGESSE_LOCAL", "64M"), ("LARGESSE_FAR", "file:/x")];
        for other in [
            ("LARGESSE_LOCK", "1"),
            ("LARGESSE_PAGES", "hugetlb"),
            ("LARGESSE_PAGES", "64k"),
            ("LARGESSE_NODE", "interleave"),
            ("LARGESSE_NODE", "0"),
        ] {
            check(&[far[0], far[1], other], |o| o.lock, Err(other.0));
            assert!(
                Options::parse(&|name| (name == other.0).then(|| other.1.into())).is_ok(),
                "{other:?} alone"
            );
        }
        check(&[far[0], far[1], ("LARGESSE_PAGES", "4k")], |o| o.pages, Ok(PageChoice::Small));
    }

    #[test]
    fn header_align_node_and_switches() {
        check(&[("LARGESSE_HEADER", "48")], |o| o.header, Ok(Some(48)));
        check(&[("LARGESSE_HEADER", "47")], |o| o.header, Err("LARGESSE_HEADER"));
        check(&[("LARGESSE_ALIGN", "native")], |o| o.data, Ok(DataAlign::Native));
        check(&[("LARGESSE_ALIGN", "32")], |o| o.data, Err("LARGESSE_ALIGN"));
        check(&[("LARGESSE_NODE", "3")], |o| o.placement, Ok(Placement::Node(3)));
        check(&[("LARGESSE_NODE", "interleave")], |o| o.placement, Ok(Placement::Interleave));
        check(&[("LARGESSE_NODE", "1024")], |o| o.placement, Err("LARGESSE_NODE"));
        check(&[("LARGESSE_CHILDREN", "off")], |o| o.children, Ok(false));
        check(&[("LARGESSE_CHILDREN", "no")], |o| o.children, Err("LARGESSE_CHILDREN"));
        check(&[("LARGESSE_PID", "x")], |o| o.pid, Err("LARGESSE_PID"));
    }
}
