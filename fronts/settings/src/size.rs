//! Reads sizes, such as `64K`, `512M`, `1.5G`, `4GB` and `4 GiB`, and shares such as `50%`.
//!
//! K, KB and KiB are all 1024 bytes, in upper or lower case, and so on to P (1024^5). A number without a unit counts
//! bytes, or KiB in settings whose name ends in `KB`. A fraction of a byte is dropped.

use core::fmt;

const K: usize = 1 << 10;
const M: usize = 1 << 20;
const T: usize = 1 << 40;
/// Largest number of bytes that an address space can have.
const MOST: usize = usize::MAX >> 1;

/// An upper bound of resident far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A bound in bytes.
    Bytes(usize),
    /// A bound in per cent of the bytes of far memory in use, from 1 to 100.
    Percent(u8),
}

/// An upper bound of the memory of a process or of its control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The bound is the tightest of the machine's memory and the limits of the control groups around the process.
    Auto,
    /// The bound is this many bytes, or that of [`MemoryLimit::Auto`] if it is tighter.
    Bytes(usize),
}

/// Which sizes one setting accepts, and the unit of a number without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// Number of bytes in the unit of a number without a unit: 1, 1024 or 1024².
    plain: usize,
    /// Smallest accepted size in bytes.
    least: usize,
    /// Largest accepted size in bytes.
    most: usize,
    /// Whether a share such as `50%` is accepted, too.
    share: bool,
    /// Whether only powers of two, and the word `auto`, are accepted.
    page: bool,
    /// Number of bytes of which an accepted size must be a multiple.
    step: usize,
    /// Whether the word `auto` is accepted in addition to sizes.
    auto: bool,
}

const ANY: Rule = Rule { plain: 1, least: M, most: MOST, share: false, page: false, step: 1, auto: false };
const LOCAL: Rule = Rule { share: true, ..ANY };
const LIMIT: Rule = Rule { least: 64 * M, auto: true, ..ANY };
const PAGE: Rule = Rule { least: 4 * K, most: 2 * M, page: true, ..ANY };
const BLOCK: Rule = Rule { plain: K, least: 64 * K, most: K * T, ..ANY };
const HEAP: Rule = Rule { least: 32 * M, ..ANY };
const TOUCH: Rule = Rule { plain: M, least: 0, ..ANY };
const HEADER: Rule = Rule { least: 0, most: 4 * K, step: 16, ..ANY };
const ROOM: Rule = Rule { least: 2 * M, ..ANY };

/// Reads `--local`, `LARGESSE_LOCAL` and R's `far_memory(local)`: at least 1M, or 1% to 100%.
pub fn local(text: &str) -> Result<Amount, Misread> {
    let refused = |violation| Misread { rule: LOCAL, violation };
    let Some(percent) = text.trim().strip_suffix('%') else { return LOCAL.bytes(text).map(Amount::Bytes) };
    let percent = percent.trim_end();
    let digits = !percent.is_empty() && percent.bytes().all(|byte| byte.is_ascii_digit());
    let percent = percent.parse().ok().filter(|percent| digits && (1..=100).contains(percent));
    percent.map(Amount::Percent).ok_or(refused(Violation::Share))
}

/// Reads `--limit` and `LARGESSE_LIMIT`: `auto`, or at least 64M.
pub fn limit(text: &str) -> Result<MemoryLimit, Misread> {
    if text.trim() == "auto" { Ok(MemoryLimit::Auto) } else { LIMIT.bytes(text).map(MemoryLimit::Bytes) }
}

/// Reads `--page-size` and `LARGESSE_PAGE_SIZE`: a power of two from 4K to 2M, or `None` for `auto`.
pub fn page_size(text: &str) -> Result<Option<usize>, Misread> {
    if text == "auto" {
        return Ok(None);
    }
    let bytes = PAGE.bytes(text)?;
    if bytes.is_power_of_two() {
        Ok(Some(bytes))
    } else {
        Err(Misread { rule: PAGE, violation: Violation::NoPower })
    }
}

/// Reads `--min-kb`, `--max-kb` and their variables: from 64K to 2^50 bytes; a number without a unit counts KiB.
/// Returns bytes.
pub fn block_size(text: &str) -> Result<usize, Misread> {
    BLOCK.bytes(text)
}

/// Reads the option `--heap` of `largesse lisp`: at least 32M. Returns bytes.
pub fn heap_size(text: &str) -> Result<usize, Misread> {
    HEAP.bytes(text)
}

/// Reads the option `--memory` of `largesse machine`: at least 1M. Returns bytes.
pub fn memory(text: &str) -> Result<usize, Misread> {
    ANY.bytes(text)
}

/// Reads the size after `--far mpi:`: at least 2M. Returns bytes.
pub fn room(text: &str) -> Result<usize, Misread> {
    ROOM.bytes(text)
}

/// Reads the option `--touch` of `largesse bench`; a number without a unit counts MiB. Returns bytes.
pub fn touch(text: &str) -> Result<usize, Misread> {
    TOUCH.bytes(text)
}

/// Reads `--header` and `LARGESSE_HEADER`: a multiple of 16 bytes, at most 4K. Returns bytes.
pub fn header(text: &str) -> Result<usize, Misread> {
    HEADER.bytes(text)
}

impl Rule {
    fn bytes(self, text: &str) -> Result<usize, Misread> {
        let refused = |violation| Misread { rule: self, violation };
        let (number, unit) = split(text.trim()).ok_or(refused(Violation::Form))?;
        let shift = match unit {
            Some(shift) => 1 << shift,
            None if number.tenths => return Err(refused(Violation::Form)),
            None => self.plain,
        };
        let bytes = number.times(shift).ok_or(refused(Violation::Above))?;
        if bytes > self.most {
            return Err(refused(Violation::Above));
        }
        if bytes < self.least {
            let plain = unit.is_none().then_some(number.whole);
            return Err(refused(Violation::Below { bytes, plain }));
        }
        if bytes.is_multiple_of(self.step) { Ok(bytes) } else { Err(refused(Violation::NoMultiple)) }
    }
}

/// A decimal number, exactly as it was written.
#[derive(Clone, Copy)]
struct Number {
    whole: usize,
    /// The digits after the point, as a whole number that must be divided by `scale`.
    part: u128,
    /// A power of ten, with one zero for each digit after the point.
    scale: u128,
    /// Whether the number was written with a point.
    tenths: bool,
}

impl Number {
    /// Returns the number times `unit` (at most 2^50), rounded down; `None` if the product is too large.
    fn times(self, unit: usize) -> Option<usize> {
        let part = self.part * unit as u128 / self.scale;
        self.whole.checked_mul(unit)?.checked_add(usize::try_from(part).ok()?)
    }
}

/// Splits a size into its number, and the power of two that its unit stands for, if it has a unit. Returns `None` for
/// texts that are not sizes.
fn split(text: &str) -> Option<(Number, Option<u32>)> {
    /// Largest number of digits after the point. With more digits, the product with the largest unit could overflow 128
    /// bits.
    const MOST_DIGITS: usize = 18;
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let end = text.bytes().position(|byte| !is_number(byte)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, part) = number.split_once('.').map_or((number, None), |(whole, part)| (whole, Some(part)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || part.is_some_and(|part| !digits(part) || part.len() > MOST_DIGITS) {
        return None;
    }
    // A number that overflows is still a number, above every bound.
    let whole = whole.parse().unwrap_or(usize::MAX);
    let scale = 10_u128.pow(u32::try_from(part.map_or(0, str::len)).ok()?);
    let number = Number { whole, part: part.unwrap_or("0").parse().ok()?, scale, tenths: part.is_some() };
    Some((number, unit_shift(unit.trim_start())?))
}

/// Returns the power of two that a unit stands for: `Some(Some(10))` for `K`, `KB` and `KiB`. Returns `Some(None)` for
/// an empty text, and `None` for texts that are not units.
fn unit_shift(unit: &str) -> Option<Option<u32>> {
    let mut letters = unit.bytes().map(|byte| byte.to_ascii_lowercase());
    let Some(first) = letters.next() else { return Some(None) };
    let shift = match first {
        b'b' => return letters.next().is_none().then_some(Some(0)),
        b'k' => 10,
        b'm' => 20,
        b'g' => 30,
        b't' => 40,
        b'p' => 50,
        _ => return None,
    };
    match (letters.next(), letters.next(), letters.next()) {
        (None, ..) | (Some(b'b'), None, _) | (Some(b'i'), Some(b'b'), None) => Some(Some(shift)),
        _ => None,
    }
}

/// The reason why a text is not a size that a setting accepts. It prints as the rest of a sentence that begins with the
/// text: `4 is` …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misread {
    rule: Rule,
    violation: Violation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Violation {
    /// The text is not a number with a unit.
    Form,
    /// The share is not a whole number from 1% to 100%.
    Share,
    /// The size is not a power of two, which the setting requires.
    NoPower,
    /// The size is not a multiple of `Rule::step`.
    NoMultiple,
    /// The size is above `Rule::most`, or cannot be addressed.
    Above,
    /// The size is below `Rule::least`. It has `bytes` bytes, and `plain` is its number if it was written without a
    /// unit.
    Below { bytes: usize, plain: Option<usize> },
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misread { rule, violation } = self;
        let (least, most) = (Short(rule.least), Short(rule.most));
        match violation {
            Violation::Form if rule.page => {
                write!(f, "is not a size; type auto, or a power of two from {least} to {most}")
            }
            Violation::Form if rule.plain == K => {
                write!(
                    f,
                    "is not a size; type a whole number of KiB, or a number with a unit such as 512K or 1M"
                )
            }
            Violation::Form if rule.plain == M => {
                write!(f, "is not a size; type a whole number of MiB, or a number with a unit such as 4G")
            }
            Violation::Form if rule.step > 1 => {
                write!(f, "is not a size; type a multiple of {} bytes from 0 to {}", rule.step, rule.most)
            }
            Violation::NoMultiple => {
                write!(
                    f,
                    "is not a multiple of {}; type a number of bytes from 0 to {}",
                    rule.step, rule.most
                )
            }
            Violation::Form if rule.auto => {
                write!(f, "is not a size; type auto, or a number with a unit, such as 512M or 4G")
            }
            Violation::Form => write!(f, "is not a size; type a number with a unit, such as 512M or 4G")
                .and_then(|()| if rule.share { write!(f, ", or a share such as 50%") } else { Ok(()) }),
            Violation::Share => write!(f, "is not a share; type a whole number from 1% to 100%"),
            Violation::NoPower => {
                write!(f, "is not a power of two; type auto, or 4K, 8K and so on, up to {most}")
            }
            Violation::Above if rule.most == MOST => write!(f, "is more than this machine can address"),
            Violation::Above => write!(f, "is above the most, {most}"),
            Violation::Below { bytes, plain: Some(number) } => {
                let unit = if rule.plain == K {
                    "KiB"
                } else if *number == 1 {
                    "byte"
                } else {
                    "bytes"
                };
                let (noun, shown) = (unit, bytes / rule.plain);
                write!(f, "is {shown} {noun} without a unit, and the least is {least}")?;
                suggest(f, *rule, *number)
            }
            Violation::Below { .. } => write!(f, "is below the least, {least}"),
        }
    }
}

/// Suggests units with which a number without a unit would be an accepted size.
fn suggest(f: &mut fmt::Formatter<'_>, rule: Rule, number: usize) -> fmt::Result {
    let fits = |unit: &usize| {
        let bytes = number.checked_mul(1 << unit);
        bytes.is_some_and(|it| (rule.least..=rule.most).contains(&it) && (!rule.page || it.is_power_of_two()))
    };
    let mut found = [10, 20, 30].into_iter().filter(fits).map(|unit| match unit {
        10 => 'K',
        20 => 'M',
        _ => 'G',
    });
    match (found.next_back(), found.next_back()) {
        (Some(large), Some(small)) => write!(f, "; did you mean {number}{large} or {number}{small}?"),
        (Some(only), None) => write!(f, "; did you mean {number}{only}?"),
        (None, _) => Ok(()),
    }
}

/// Prints a number of bytes as users type it, in the largest unit that divides it: `64K`, `2M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short(pub usize);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(50, "P"), (40, "T"), (30, "G"), (20, "M"), (10, "K")];
        let fits = units.into_iter().find(|(shift, _)| self.0 > 0 && self.0.is_multiple_of(1 << shift));
        let (shift, unit) = fits.unwrap_or((0, " bytes"));
        write!(f, "{}{unit}", self.0 >> shift)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString as _;

    #[track_caller]
    fn bytes(text: &str, want: usize) {
        assert_eq!(Rule { least: 0, ..ANY }.bytes(text), Ok(want), "{text} is {want} bytes");
    }

    #[test]
    fn units_are_powers_of_1024() {
        for unit in ["G", "g", "GB", "gb", "Gb", "GiB", "gib", "GIB", " G", " GiB"] {
            bytes(&std::format!("4{unit}"), 4 << 30);
        }
        for (unit, shift) in [("", 0), ("B", 0), (" b", 0), ("K", 10), ("M", 20), ("T", 40), ("P", 50)] {
            bytes(&std::format!("3{unit}"), 3 << shift);
        }
        bytes("  64K ", 64 << 10);
    }

    #[test]
    fn fractions_are_rounded_down() {
        bytes("1.5G", 3 << 29);
        bytes("0.5 MiB", 512 << 10);
        bytes("0.1K", 102);
        bytes("1.999999999999999999P", (2 << 50) - 1);
    }

    #[test]
    fn limits_are_sizes_or_auto() {
        assert_eq!(limit("auto"), Ok(MemoryLimit::Auto));
        assert_eq!(limit("1.5 GiB"), Ok(MemoryLimit::Bytes(3 << 29)));
        for (text, words) in
            [("63M", "is below the least, 64M"), ("50%", "type auto, or a number"), ("8", "did you mean 8G?")]
        {
            let message = limit(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text} {message}");
        }
    }

    #[track_caller]
    fn refused(read: fn(&str) -> Result<usize, Misread>, text: &str, words: &str) {
        let message = read(text).map(|bytes| std::format!("{bytes} bytes")).map_err(|why| why.to_string());
        let message = message.expect_err(text);
        assert!(message.contains(words), "{text} {message}");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            " ",
            "much",
            "-1G",
            "+1G",
            "1e9",
            "0x10M",
            "1,5G",
            "1.G",
            ".5G",
            "1.5",
            "1..5G",
            "1 2G",
            "4Gi",
            "4GiBs",
            "4X",
            "4K K",
            "G",
            "４G",
            "1.0000000000000000001G",
            "50%",
        ] {
            refused(memory, text, "is not a size; type a number with a unit, such as 512M or 4G");
        }
    }

    #[test]
    fn refusals_say_what_to_type() {
        refused(memory, "64", "is 64 bytes without a unit, and the least is 1M; did you mean 64G or 64M?");
        refused(memory, "1", "is 1 byte without");
        refused(memory, "64K", "is below the least, 1M");
        refused(memory, "99999999999T", "is more than this machine can address");
        refused(memory, "99999999999999999999999", "is more than this machine can address");
        refused(heap_size, "31M", "is below the least, 32M");
        refused(room, "5", "the least is 2M; did you mean 5G or 5M?");
        refused(block_size, "63", "is 63 KiB without a unit, and the least is 64K; did you mean 63G or 63M?");
        refused(block_size, "1e3", "type a whole number of KiB");
        refused(block_size, "1099511627777", "is above the most, 1P");
    }

    #[test]
    fn block_sizes_count_kib() {
        assert_eq!(block_size("64"), Ok(64 << 10));
        assert_eq!(block_size("1M"), Ok(1 << 20));
        assert_eq!(block_size("1099511627776"), Ok(1 << 50));
    }

    #[test]
    fn headers_are_multiples_of_16() {
        assert_eq!((header("0"), header("48"), header("4K")), (Ok(0), Ok(48), Ok(4096)));
        refused(header, "47", "is not a multiple of 16; type a number of bytes from 0 to 4096");
        refused(header, "4112", "is above the most, 4K");
        refused(header, "-16", "type a multiple of 16 bytes from 0 to 4096");
    }

    #[test]
    fn memory_to_touch_counts_mib() {
        assert_eq!((touch("0"), touch("512"), touch("4GB")), (Ok(0), Ok(512 << 20), Ok(4 << 30)));
        refused(touch, "all", "type a whole number of MiB");
    }

    #[test]
    fn local_memory_accepts_shares() {
        assert_eq!(local("4GB"), Ok(Amount::Bytes(4 << 30)));
        assert_eq!(local("50%"), Ok(Amount::Percent(50)));
        assert_eq!(local(" 1 % "), Ok(Amount::Percent(1)));
        for text in ["0%", "101%", "+5%", "12.5%", "%", "256%"] {
            let message = local(text).unwrap_err().to_string();
            assert!(message.contains("1% to 100%"), "{text} {message}");
        }
        let message = local("4").unwrap_err().to_string();
        assert!(
            message.contains("4 bytes without a unit, and the least is 1M; did you mean 4G or 4M?"),
            "{message}"
        );
        assert!(local("much").unwrap_err().to_string().contains("or a share such as 50%"));
    }

    #[test]
    fn page_sizes_are_powers_of_two() {
        assert_eq!(page_size("auto"), Ok(None));
        assert_eq!(page_size("64KB"), Ok(Some(64 << 10)));
        assert_eq!(page_size("65536"), Ok(Some(64 << 10)));
        for (text, words) in [
            ("5000", "is not a power of two; type auto, or 4K"),
            ("4M", "is above the most, 2M"),
            ("64", "the least is 4K; did you mean 64K?"),
            ("1K", "is below the least, 4K"),
            ("large", "type auto, or a power of two from 4K to 2M"),
        ] {
            let message = page_size(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text} {message}");
        }
    }
}
