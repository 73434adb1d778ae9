//! Reads and writes sets of processors or nodes in the kernel's text formats.

use std::fmt;
use std::str::FromStr;

/// One more than the largest processor or node number that Linux can be built for.
pub(crate) const END: u32 = 1 << 16;

/// A set of processor or node numbers below 2^16.
///
/// ```
/// use largesse_machine::Bitmap;
/// let cpus: Bitmap = "0-3,8".parse()?;
/// assert_eq!((cpus.len(), cpus.contains(8)), (5, true));
/// assert_eq!(cpus.to_string(), "0-3,8");
/// # Ok::<(), largesse_machine::NotAList>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bitmap {
    /// The set as words of 64 numbers each. The last word is not zero, so that equal sets have equal words.
    words: Vec<u64>,
}

/// The error for a text that is not a list of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAList {
    /// The part of the text that could not be parsed.
    pub part: String,
}

impl fmt::Display for NotAList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.part.split_once('-').unwrap_or((&self.part, &self.part));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return write!(f, "'{}' is neither a number nor a range such as 0-3", self.part);
        }
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if last < END && first > last => {
                write!(f, "'{}' ends before it begins; type {last}-{first}", self.part)
            }
            _ => write!(f, "'{}' is above {}, the largest number that Linux can have", self.part, END - 1),
        }
    }
}

impl std::error::Error for NotAList {}

impl Bitmap {
    /// Returns the empty set.
    #[must_use]
    pub const fn new() -> Bitmap {
        Bitmap { words: Vec::new() }
    }

    /// Adds a number.
    ///
    /// # Panics
    /// Panics if the number is 2^16 or more, which Linux cannot have.
    pub fn insert(&mut self, number: u32) {
        assert!(number < END, "{number} is above {}, the largest number that Linux can have", END - 1);
        let word = number as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
    }

    /// Returns whether the set contains the number.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Returns how many numbers the set has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the numbers of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..END).take(self.words.len() * 64).filter(|number| self.contains(*number))
    }

    /// Returns the lowest number of the set, or `None` if it is empty.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub fn and(&self, other: &Bitmap) -> Bitmap {
        self.iter().filter(|number| other.contains(*number)).collect()
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn or(&self, other: &Bitmap) -> Bitmap {
        self.iter().chain(other.iter()).collect()
    }

    /// Returns the numbers of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Bitmap) -> Bitmap {
        self.iter().filter(|number| !other.contains(*number)).collect()
    }

    /// Returns whether the sets have a number in common.
    #[must_use]
    pub fn intersects(&self, other: &Bitmap) -> bool {
        self.words.iter().zip(&other.words).any(|(one, two)| one & two != 0)
    }

    /// Returns whether the set is a subset of the other.
    #[must_use]
    pub fn is_within(&self, other: &Bitmap) -> bool {
        self.without(other).is_empty()
    }

    /// Returns the set as a mask for system calls: words of 64 numbers each, the lowest first.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Creates a set from a mask: words of 64 numbers each, the lowest first.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Bitmap {
        let used = words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        Bitmap { words: words[..used].to_vec() }
    }

    /// Parses a mask in the kernel's format, such as `00000000,0000000f`: words of 32 numbers, the highest first.
    pub fn from_mask(text: &str) -> Result<Bitmap, NotAList> {
        let mut set = Bitmap::new();
        let parts: Vec<&str> = text.trim().split(',').collect();
        for (place, part) in (0_u32..).zip(parts.into_iter().rev()) {
            let word = u32::from_str_radix(part, 16).ok().filter(|word| *word == 0 || place < END / 32);
            let word = word.ok_or_else(|| NotAList { part: part.to_owned() })?;
            (0..32).filter(|bit| word >> bit & 1 == 1).for_each(|bit| set.insert(place * 32 + bit));
        }
        Ok(set)
    }
}

impl FromIterator<u32> for Bitmap {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Bitmap {
        let mut set = Bitmap::new();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// Parses a list in the kernel's format, such as `0-3,8`. An empty text is the empty set.
impl FromStr for Bitmap {
    type Err = NotAList;

    fn from_str(text: &str) -> Result<Bitmap, NotAList> {
        let mut set = Bitmap::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => (first..=last).for_each(|n| set.insert(n)),
                _ => return Err(NotAList { part: part.to_owned() }),
            }
        }
        Ok(set)
    }
}

/// Parses a number below 2^16, of digits only, whereas `parse` accepts a plus sign.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number < END)
}

impl fmt::Display for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    #[test]
    fn invalid_lists_name_their_part() {
        for (text, part) in [
            ("0-", "0-"),
            ("1,x,2", "x"),
            ("3-1", "3-1"),
            ("+1", "+1"),
            ("0,,1", ""),
            ("65536", "65536"),
            ("-1", "-1"),
        ] {
            assert_eq!(text.parse::<Bitmap>(), Err(NotAList { part: part.to_owned() }), "{text}");
        }
        for text in ["g", "", "100000000", "1,,0"] {
            assert!(Bitmap::from_mask(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, want) in [
            ("99999", "'99999' is above 65535, the largest number that Linux can have"),
            ("0-99999999999", "'0-99999999999' is above 65535, the largest number that Linux can have"),
            ("3-1", "'3-1' ends before it begins; type 1-3"),
            ("0-", "'0-' is neither a number nor a range such as 0-3"),
            ("all", "'all' is neither a number nor a range such as 0-3"),
        ] {
            assert_eq!(text.parse::<Bitmap>().unwrap_err().to_string(), want);
        }
    }

    #[test]
    fn mask_has_highest_word_first() {
        let set = Bitmap::from_mask("00000001,80000005\n").unwrap();
        assert_eq!(set.to_string(), "0,2,31-32");
        assert_eq!(Bitmap::from_mask("00000000,00000000"), Ok(Bitmap::new()));
    }

    proptest! {
        #[test]
        fn any_set_reads_back(numbers in btree_set(0..4096_u32, 0..64)) {
            let set: Bitmap = numbers.iter().copied().collect();
            let list = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(list.parse::<Bitmap>(), Ok(set.clone()));
            prop_assert_eq!(set.to_string().parse::<Bitmap>(), Ok(set.clone()));
            prop_assert_eq!(Bitmap::from_words(set.words()), set.clone());
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), numbers.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn operations_match_those_of_sets(a in btree_set(0..300_u32, 0..40), b in btree_set(0..300_u32, 0..40)) {
            let [first, second]: [Bitmap; 2] = [&a, &b].map(|set| set.iter().copied().collect());
            prop_assert_eq!(first.and(&second), a.intersection(&b).copied().collect::<Bitmap>());
            prop_assert_eq!(first.without(&second), a.difference(&b).copied().collect::<Bitmap>());
            prop_assert_eq!(first.is_within(&second), a.is_subset(&b));
        }
    }
}
