//! Parses the settings once, by a pure function. `docs/settings.md` has a line for each.

use largesse_kernels::Isa;
use largesse_malloc::DataAlign;
use largesse_pages::Placement;
use largesse_paging::{Amount, FarConfig, FaultEngine, Store};
use largesse_report::PageChoice;
use largesse_settings::{MemoryLimit, Misread, SWITCH, block_size};

/// Smallest request in KiB that the heap serves by default; `docs/decisions/003-min-kb.md` has the measurement.
pub(crate) const DEFAULT_MIN_KB: usize = 256;
/// Smallest request in KiB that the heap serves by default with far memory. It is lower than [`DEFAULT_MIN_KB`],
/// because blocks that are not far take local memory.
pub(crate) const FAR_MIN_KB: usize = 64;
const LARGEST_KB: usize = 1 << 40;
const LIMIT: &str = "LARGESSE_LIMIT";
const FAR: &str = "LARGESSE_FAR";
const STATIC_DATA: &str = "LARGESSE_STATIC_DATA";
/// Variables that have an effect only if memory is far or may become far.
const FAR_ONLY: [&str; 6] = [
    FAR,
    "LARGESSE_PAGE_SIZE",
    "LARGESSE_FAULT_ENGINE",
    STATIC_DATA,
    "LARGESSE_PREFETCH",
    "LARGESSE_SMALL_BLOCKS",
];

/// Holds all settings of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) pages: PageChoice,
    pub(crate) lock: bool,
    /// Size in bytes of the smallest request that the heap serves.
    pub(crate) min: usize,
    /// Size in bytes of the largest request that the heap serves.
    pub(crate) max: usize,
    /// Number of bytes before the data of a block; `None` stands for 48 where libR.so is loaded, else for 0.
    pub(crate) header: Option<usize>,
    pub(crate) data: DataAlign,
    pub(crate) placement: Placement,
    /// Whether forked and executed children of the launched process are served, too.
    pub(crate) children: bool,
    /// The folder in which the launcher's watcher expects the reports of processes.
    pub(crate) report: Option<String>,
    /// Number of the process that the launcher became.
    pub(crate) pid: Option<u32>,
    /// Whether the helper thread touches pages before the program needs them.
    pub(crate) ahead: bool,
    /// Settings of far memory; `None` for memory of this machine.
    pub(crate) far: Option<FarConfig>,
    /// The limit near which memory of this machine becomes far memory; `None` without one, and with far memory.
    pub(crate) limit: Option<LimitConfig>,
    /// Whether static arrays of the program and its libraries are far memory, too, if there is any.
    pub(crate) static_data: bool,
    /// Whether blocks below [`Options::min`] are served, too, while memory is far or may become far.
    pub(crate) small_blocks: bool,
    /// Whether the user set [`Options::min`].
    pub(crate) min_is_given: bool,
    /// Instruction set of the kernels; `None` stands for the fastest.
    pub(crate) isa: Option<Isa>,
    /// Number of threads of the kernels, from `OMP_NUM_THREADS`; `None` stands for one for each processor.
    pub(crate) threads: Option<usize>,
}

/// A limit on memory, and how memory is kept below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitConfig {
    pub(crate) limit: MemoryLimit,
    /// Settings of the far memory that large blocks become. Its bound is set when the limit comes near.
    pub(crate) far: FarConfig,
}

/// A variable whose value is refused, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownValue {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) reason: Reason,
}

/// The reason why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The value is not among the accepted ones, which are listed here.
    NotAccepted(&'static str),
    /// The value is not a valid size.
    Size(Misread),
    /// The variable has an effect only with far memory, and neither `LARGESSE_LOCAL` nor `LARGESSE_LIMIT` is set.
    NoFarMemory,
    /// `LARGESSE_LOCAL` or `LARGESSE_LIMIT` is set, but not the store; the accepted stores are listed here.
    NoStore(&'static str),
    /// `LARGESSE_MIN_KB` (or its default) is above `LARGESSE_MAX_KB`.
    MinAboveMax,
}

impl core::fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let UnknownValue { name, value, reason } = self;
        match reason {
            Reason::NotAccepted(accepts) => {
                write!(f, "{name}={value} is not understood; it accepts {accepts}")
            }
            Reason::NoFarMemory => {
                write!(
                    f,
                    "{name} has no effect without far memory; set LARGESSE_LOCAL or LARGESSE_LIMIT, or unset it"
                )
            }
            Reason::Size(misread) => write!(f, "{name}={value} {misread}"),
            Reason::NoStore(accepts) => {
                write!(f, "{name} is not set, and far memory needs it; it accepts {accepts}")
            }
            Reason::MinAboveMax => write!(
                f,
                "{name}={value}: LARGESSE_MIN_KB, or its default, is above LARGESSE_MAX_KB; set both"
            ),
        }
    }
}

impl Default for Options {
    /// Returns the settings of an empty environment.
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
            limit: None,
            static_data: true,
            small_blocks: true,
            min_is_given: false,
            isa: None,
            threads: None,
        }
    }
}

type Get<'a> = dyn Fn(&str) -> Option<String> + 'a;

impl Options {
    /// Returns the size from which on blocks are served once there is far memory, where blocks of `min` bytes or more
    /// were served before: the default of far memory, unless the user or the program has set a bound.
    pub(crate) fn min_when_far(&self, min: usize) -> usize {
        if self.min_is_given || min != self.min { min } else { min.min(FAR_MIN_KB << 10) }
    }

    /// Reads all settings through `get`, which returns the value of a variable.
    pub(crate) fn parse(get: &Get<'_>) -> Result<Options, UnknownValue> {
        // An empty variable counts as unset.
        let get: &Get<'_> = &|name: &str| get(name).filter(|value| !value.is_empty());
        let crossed =
            |name, kib: usize| UnknownValue { name, value: kib.to_string(), reason: Reason::MinAboveMax };
        let max = size(get, "LARGESSE_MAX_KB", block_size)?.unwrap_or(LARGEST_KB << 10);
        let (far, limit, static_data) = far(get)?;
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
                word(&PageChoice::WORDS),
            )?,
            lock: one(get, "LARGESSE_LOCK", "0, 1", false, word(&[("0", false), ("1", true)]))?,
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
            children: one(get, "LARGESSE_CHILDREN", "on, off", true, word(&SWITCH))?,
            report: get("LARGESSE_REPORT_FOLDER"),
            pid: one(get, "LARGESSE_PID", "a process number", None, |text| text.parse().ok().map(Some))?,
            ahead: one(get, "LARGESSE_AHEAD", "on, off", true, word(&SWITCH))?,
            far,
            limit,
            static_data,
            // A user who says from which size on blocks are served has decided about the others.
            small_blocks: one(get, "LARGESSE_SMALL_BLOCKS", "on, off", given_min.is_none(), word(&SWITCH))?,
            min_is_given: given_min.is_some(),
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
            // A bad value of OpenMP's variable is not an error here: `start.rs` and the launcher warn of it.
            threads: get("OMP_NUM_THREADS").and_then(|list| largesse_settings::threads(&list).ok()),
        };
        match options.excluded_by_far().filter(|_| options.far.is_some() || options.limit.is_some()) {
            Some((name, accepts)) => {
                let value = get(name).unwrap_or_default();
                Err(UnknownValue { name, value, reason: Reason::NotAccepted(accepts) })
            }
            None => Ok(options),
        }
    }
}

impl Options {
    /// Returns the first setting that far memory would silently ignore, and the values that it accepts with far memory.
    pub(crate) fn excluded_by_far(&self) -> Option<(&'static str, &'static str)> {
        // Before a limit comes near, blocks are on large pages.
        let pages = match self.pages {
            PageChoice::Auto | PageChoice::Small => false,
            PageChoice::Thp => self.limit.is_none(),
            PageChoice::Hugetlb | PageChoice::Hugetlb1G | PageChoice::Medium => true,
        };
        [
            (self.lock, "LARGESSE_LOCK", "0 with far memory, whose pages are evicted"),
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

/// The settings of far memory, if it is used from the start; the limit, if far memory is used near it; and whether
/// static arrays are far memory.
type FarSettings = (Option<FarConfig>, Option<LimitConfig>, bool);

/// Reads the settings of far memory, which is used if `LARGESSE_LOCAL` or `LARGESSE_LIMIT` is set.
fn far(get: &Get<'_>) -> Result<FarSettings, UnknownValue> {
    let local = size(get, "LARGESSE_LOCAL", largesse_settings::local)?;
    let limit = size(get, LIMIT, largesse_settings::limit)?;
    let store = one(get, FAR, Store::ACCEPTED, None, |text| Store::parse(text).map(Some))?;
    let page_size = size(get, "LARGESSE_PAGE_SIZE", largesse_settings::page_size)?.flatten();
    let static_data = one(get, STATIC_DATA, "on, off", true, word(&SWITCH))?;
    let prefetch = one(get, "LARGESSE_PREFETCH", "on, off", true, word(&SWITCH))?;
    let engine = one(
        get,
        "LARGESSE_FAULT_ENGINE",
        "auto, events, user-mode, thread",
        FaultEngine::Auto,
        word(&FaultEngine::WORDS),
    )?;
    let refused = |name, accepts| {
        let value = get(name).unwrap_or_default();
        Err(UnknownValue { name, value, reason: Reason::NotAccepted(accepts) })
    };
    let local = match (local, limit) {
        (None, None) => {
            // As for `largesse run`: a setting that would silently have no effect is refused.
            let unused = FAR_ONLY.into_iter().find(|name| get(name).is_some());
            return match unused {
                Some(name) => {
                    let value = get(name).unwrap_or_default();
                    Err(UnknownValue { name, value, reason: Reason::NoFarMemory })
                }
                None => Ok((None, None, static_data)),
            };
        }
        (Some(_), Some(_)) => return refused(LIMIT, "nothing together with LARGESSE_LOCAL"),
        (Some(local), None) => local,
        (None, Some(_)) if matches!(store, Some(Store::Agent(_))) => {
            return refused(FAR, "file:PATH with LARGESSE_LIMIT");
        }
        (None, Some(_)) => Amount::Bytes(0),
    };
    let missing =
        || UnknownValue { name: FAR, value: String::new(), reason: Reason::NoStore(Store::ACCEPTED) };
    let store = store.ok_or_else(missing)?;
    let far = FarConfig { local, store, page_size, prefetch, engine };
    Ok(match limit {
        None => (Some(far), None, static_data),
        Some(limit) => (None, Some(LimitConfig { limit, far }), static_data),
    })
}

/// Reads the variable `name` by `read`; `None` if it is unset.
fn size<T>(
    get: &Get<'_>,
    name: &'static str,
    read: fn(&str) -> Result<T, Misread>,
) -> Result<Option<T>, UnknownValue> {
    let Some(value) = get(name) else { return Ok(None) };
    read(&value).map(Some).map_err(|misread| UnknownValue { name, value, reason: Reason::Size(misread) })
}

/// Returns a function that finds the meaning of a text, which must be one of `words`.
fn word<T: Copy>(words: &[(&str, T)]) -> impl Fn(&str) -> Option<T> {
    move |text| words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
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
        Some(value) => read(&value).ok_or(UnknownValue { name, value, reason: Reason::NotAccepted(accepts) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_memory_lowers_only_a_default() {
        let far = |options: Options| options.min_when_far(options.min);
        check(&[], far, Ok(FAR_MIN_KB << 10));
        check(&[("LARGESSE_MIN_KB", "2048")], far, Ok(2048 << 10));
        check(&[], |options| options.min_when_far(512 << 10), Ok(512 << 10));
    }

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
    fn empty_environment_means_defaults() {
        check(&[], |options| options, Ok(Options::default()));
    }

    #[test]
    fn empty_variables_count_as_unset() {
        let all: Vec<_> = largesse_settings::VARIABLES.into_iter().chain(["OMP_NUM_THREADS"]).collect();
        let empty: Vec<_> = all.iter().map(|name| (*name, "")).collect();
        check(&empty, |options| options, Ok(Options::default()));
    }

    #[test]
    fn page_kinds_are_parsed() {
        check(&[], |o| o.pages, Ok(PageChoice::Auto));
        check(&[("LARGESSE_PAGES", "4k")], |o| o.pages, Ok(PageChoice::Small));
        check(&[("LARGESSE_PAGES", "hugetlb-1g")], |o| o.pages, Ok(PageChoice::Hugetlb1G));
        check(&[("LARGESSE_PAGES", "4K")], |o| o.pages, Err("LARGESSE_PAGES"));
    }

    #[test]
    fn block_sizes_are_checked() {
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
    fn far_memory_sizes_are_checked() {
        let local =
            |text| [("LARGESSE_LOCAL", text), ("LARGESSE_FAR", "file:/x"), ("LARGESSE_PAGE_SIZE", "64KB")];
        let far = |o: Options| o.far.map(|config| (config.local, config.page_size));
        check(&local("4GB"), far, Ok(Some((Amount::Bytes(4 << 30), Some(64 << 10)))));
        check(&local("1.5g"), far, Ok(Some((Amount::Bytes(3 << 29), Some(64 << 10)))));
        check(&local("50 %"), far, Ok(Some((Amount::Percent(50), Some(64 << 10)))));
        check(&local("4"), far, Err("LARGESSE_LOCAL"));
        check(&[("LARGESSE_LOCAL", "4G")], far, Err("LARGESSE_FAR"));
        check(&[("LARGESSE_PAGE_SIZE", "5000")], far, Err("LARGESSE_PAGE_SIZE"));
        check(&[("LARGESSE_MIN_KB", "1M")], |o| o.min, Ok(1 << 20));
    }

    #[test]
    fn far_memory_excludes_some_settings() {
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
    fn settings_of_far_memory_need_it() {
        for (name, value) in FAR_ONLY.map(|name| match name {
            FAR => (name, "file:/x"),
            "LARGESSE_PAGE_SIZE" | "LARGESSE_FAULT_ENGINE" => (name, "auto"),
            _ => (name, "off"),
        }) {
            check(&[(name, value)], |options| options.far, Err(name));
        }
    }

    #[test]
    fn limits_are_checked() {
        let set = |name, value| [("LARGESSE_LIMIT", "8G"), ("LARGESSE_FAR", "file:/x"), (name, value)];
        let limit = |o: Options| (o.limit.map(|it| (it.limit, it.far.engine)), o.far);
        let want = (Some((MemoryLimit::Bytes(8 << 30), FaultEngine::Auto)), None);
        check(&set("LARGESSE_PAGES", "thp"), limit, Ok(want));
        check(&[("LARGESSE_LIMIT", "auto")], limit, Err("LARGESSE_FAR"));
        check(&[("LARGESSE_LIMIT", "1M"), ("LARGESSE_FAR", "file:/x")], limit, Err("LARGESSE_LIMIT"));
        for (name, value, refused) in [
            ("LARGESSE_LOCAL", "1G", "LARGESSE_LIMIT"),
            ("LARGESSE_LOCK", "1", "LARGESSE_LOCK"),
            ("LARGESSE_PAGES", "hugetlb", "LARGESSE_PAGES"),
            ("LARGESSE_NODE", "0", "LARGESSE_NODE"),
        ] {
            check(&set(name, value), limit, Err(refused));
        }
        for (value, want) in [("on", true), ("off", false)] {
            check(&set(STATIC_DATA, value), |options| options.static_data, Ok(want));
        }
    }

    #[test]
    fn other_settings_are_checked() {
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
