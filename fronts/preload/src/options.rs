//! Settings, parsed once by a pure function. `docs/settings.md` has a line for each.

use crate::wish::{Engine, Store, Wish};
use largesse_kernels::Isa;
use largesse_malloc::{DataAlign, SMALLEST_MIN};
use largesse_pager::Local;
use largesse_pages::Placement;
use largesse_report::Pages;

/// Requests of at least this size are taken unless the user says otherwise: measured in
/// `docs/decisions/003-min-kb.md`.
pub(crate) const DEFAULT_MIN_KB: usize = 256;
/// With far memory, more counts: what is not far takes local memory.
pub(crate) const FAR_MIN_KB: usize = 64;
const LARGEST_KB: usize = 1 << 40;

/// Everything a user may set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) pages: Pages,
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

/// A value that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownValue {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) accepts: &'static str,
}

impl core::fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}={} is not understood; it accepts {}", self.name, self.value, self.accepts)
    }
}

impl Default for Options {
    /// What an empty environment means.
    fn default() -> Options {
        Options {
            pages: Pages::Auto,
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
        const KB: &str =
            "a whole number of KiB: 64 or more, LARGESSE_MIN_KB (256 if unset) not above LARGESSE_MAX_KB";
        let kb = |text: &str| text.parse().ok().filter(|kb| (SMALLEST_MIN >> 10..=LARGEST_KB).contains(kb));
        let max_kb = one(get, "LARGESSE_MAX_KB", KB, LARGEST_KB, kb)?;
        let within = |text: &str| kb(text).filter(|&min| min <= max_kb);
        let far = far(get)?;
        let default_min = if far.is_some() { FAR_MIN_KB } else { DEFAULT_MIN_KB };
        if default_min > max_kb && get("LARGESSE_MIN_KB").is_none() {
            return Err(UnknownValue { name: "LARGESSE_MAX_KB", value: max_kb.to_string(), accepts: KB });
        }
        Ok(Options {
            pages: one(
                get,
                "LARGESSE_PAGES",
                "auto, thp, hugetlb, hugetlb-1g, 64k, 4k",
                Pages::Auto,
                |text| Pages::WORDS.iter().find(|(word, _)| *word == text).map(|(_, pages)| *pages),
            )?,
            lock: one(get, "LARGESSE_LOCK", "0, 1", false, switch("0", "1"))?,
            min: one(get, "LARGESSE_MIN_KB", KB, default_min, within)? << 10,
            max: max_kb << 10,
            header: one(get, "LARGESSE_HEADER", "a multiple of 16 from 0 to 4096", None, |text| {
                let header: usize = text.parse().ok()?;
                (header <= 4096 && header.is_multiple_of(16)).then_some(Some(header))
            })?,
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
            report: get("LARGESSE_REPORT"),
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
                    name => name.parse().ok().filter(|isa: &Isa| isa.is_here()).map(Some),
                },
            )?,
            // Not ours to refuse; levels of nesting come after commas.
            threads: get("OMP_NUM_THREADS")
                .and_then(|list| list.split(',').next()?.trim().parse().ok())
                .filter(|threads| *threads > 0),
        })
    }
}

/// Far memory, if local memory is limited. The launcher has worked out the number and the store.
fn far(get: &Get<'_>) -> Result<Option<Wish>, UnknownValue> {
    let bytes = |text: &str| text.parse::<usize>().ok();
    let local = one(get, "LARGESSE_LOCAL", "a size such as 512M or 4G, or 1% to 100%", None, |text| {
        Local::parse(text).map(Some)
    })?;
    let store = one(get, "LARGESSE_FAR", Store::ACCEPTED, None, |text| Store::parse(text).map(Some))?;
    let page_size = one(
        get,
        "LARGESSE_PAGE_SIZE",
        "auto, or a power of two of bytes from 4096 to 2097152",
        None,
        |text| match text {
            "auto" => Some(None),
            _ => {
                bytes(text).filter(|size| size.is_power_of_two() && (4096..=2 << 20).contains(size)).map(Some)
            }
        },
    )?;
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
    let missing = || UnknownValue { name: "LARGESSE_FAR", value: String::new(), accepts: Store::ACCEPTED };
    let store = store.ok_or_else(missing)?;
    Ok(Some(Wish { local, store, page_size, static_data, prefetch, engine }))
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
        Some(value) => read(&value).ok_or(UnknownValue { name, value, accepts }),
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
    fn pages() {
        check(&[], |o| o.pages, Ok(Pages::Auto));
        check(&[("LARGESSE_PAGES", "4k")], |o| o.pages, Ok(Pages::Small));
        check(&[("LARGESSE_PAGES", "hugetlb-1g")], |o| o.pages, Ok(Pages::Hugetlb1G));
        check(&[("LARGESSE_PAGES", "4K")], |o| o.pages, Err("LARGESSE_PAGES"));
        check(&[("LARGESSE_PAGES", "")], |o| o.pages, Err("LARGESSE_PAGES"));
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
