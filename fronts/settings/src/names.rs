//! Lists the environment variables that Largesse reads, and finds the nearest one to a name that it does not read.

/// The characters with which the name of every variable of Largesse begins.
pub const PREFIX: &str = "LARGESSE_";

/// The names of all variables of Largesse. `docs/settings.md` has a line for each of them that is a setting.
pub const VARIABLES: [&str; 31] = [
    "LARGESSE_AHEAD",
    "LARGESSE_ALIGN",
    // `largesse bench` sets it for the programs that it measures.
    "LARGESSE_BENCH_TOUCH",
    "LARGESSE_CHILDREN",
    // The next two belong to the checks in the sources.
    "LARGESSE_CI_SECONDS",
    "LARGESSE_DEEP",
    "LARGESSE_FAR",
    "LARGESSE_FAULT_ENGINE",
    // The launcher sets it to the causes that it has reported.
    "LARGESSE_FORETOLD",
    "LARGESSE_HEADER",
    "LARGESSE_ISA",
    "LARGESSE_LIBRARY",
    "LARGESSE_LIMIT",
    "LARGESSE_LOCAL",
    "LARGESSE_LOCK",
    "LARGESSE_MAX_KB",
    "LARGESSE_MIN_KB",
    "LARGESSE_NODE",
    "LARGESSE_PAGES",
    "LARGESSE_PAGE_SIZE",
    // The launcher sets it to its process number.
    "LARGESSE_PID",
    "LARGESSE_PREFETCH",
    "LARGESSE_REDIS_PASSWORD",
    "LARGESSE_REDIS_PASSWORD_FILE",
    "LARGESSE_REDIS_USER",
    "LARGESSE_REPORT",
    // The launcher sets it to the folder of the watcher.
    "LARGESSE_REPORT_FOLDER",
    "LARGESSE_SMALL_BLOCKS",
    "LARGESSE_STATIC_DATA",
    // The tests of the R package read it.
    "LARGESSE_TESTS_NEED_LIBRARY",
    // `largesse pin` sets it for `liblargesse_pin.so`.
    "LARGESSE_THREAD_CPUS",
];

/// Length in bytes after `LARGESSE_` from which on a name gets no suggestion.
const LONGEST: usize = 64;

/// Returns whether `name` is one of [`VARIABLES`].
#[must_use]
pub fn is_known(name: &str) -> bool {
    VARIABLES.contains(&name)
}

/// Returns the known variable whose name is nearest to `name`, if it is near enough: at most a third of the letters
/// after the prefix differ, or whole words at the end are missing.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let given = name.get(..PREFIX.len()).filter(|start| start.eq_ignore_ascii_case(PREFIX)).map(|_| name)?;
    let given = &given[PREFIX.len()..];
    let mut best = None;
    for known in VARIABLES {
        let letters = &known[PREFIX.len()..];
        let distance = distance(given, letters)?;
        if distance <= (given.len() / 3).max(1) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, known));
        }
    }
    let begins = |known: &&str| {
        let rest = known[PREFIX.len()..].strip_prefix(given);
        !given.is_empty() && rest.is_some_and(|rest| rest.starts_with('_'))
    };
    best.map(|(_, known)| known).or_else(|| VARIABLES.into_iter().find(begins))
}

/// Returns the number of letters to insert, delete or replace to get from one text to the other, without regard to
/// case; `None` if one has [`LONGEST`] bytes or more.
fn distance(one: &str, other: &str) -> Option<usize> {
    // One row of Wagner and Fischer's table: distances of the first letters of `one` to each beginning of `other`.
    let mut row = [0; LONGEST];
    if one.len() >= LONGEST || other.len() >= LONGEST {
        return None;
    }
    for (place, cell) in row.iter_mut().enumerate() {
        *cell = place;
    }
    for (line, letter) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, against) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(&against));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    Some(row[other.len()])
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[track_caller]
    fn check(name: &str, want: Option<&str>) {
        assert_eq!(nearest(name), want, "the name that is nearest to {name}");
    }

    #[test]
    fn near_names_are_suggested() {
        check("LARGESSE_LOCKED", Some("LARGESSE_LOCK"));
        check("LARGESSE_PAGESIZE", Some("LARGESSE_PAGE_SIZE"));
        check("LARGESSE_PAGE", Some("LARGESSE_PAGES"));
        check("LARGESSE_local", Some("LARGESSE_LOCAL"));
        check("LARGESSE_MIN", Some("LARGESSE_MIN_KB"));
        check("LARGESSE_NODES", Some("LARGESSE_NODE"));
    }

    #[test]
    fn distant_names_get_no_suggestion() {
        check("LARGESSE_FOO", None);
        check("LARGESSE_", None);
        check("LARGESSE_VERBOSE", None);
        check("OMP_NUM_THREADS", None);
        let long = "LARGESSE_0123456789012345678901234567890123456789012345678901234567890123456789";
        check(long, None);
        check("LARGESSE_ÄÖ", None);
    }

    /// The test fails if a documented variable is missing from [`VARIABLES`], because Largesse would report it as
    /// unknown.
    #[test]
    fn documented_variables_are_known() {
        let page = include_str!("../../../docs/settings.md");
        let table = page.lines().filter(|line| line.starts_with('|'));
        let words =
            table.flat_map(|line| line.split(|letter: char| !letter.is_ascii_uppercase() && letter != '_'));
        for word in words.filter(|word| word.starts_with(PREFIX)) {
            assert!(is_known(word), "docs/settings.md has {word}, which is not in the list");
        }
    }

    #[test]
    fn names_are_sorted_and_distinct() {
        assert!(VARIABLES.is_sorted_by(|one, next| one < next), "{VARIABLES:?} are not in order");
        assert!(VARIABLES.iter().all(|name| name.starts_with(PREFIX) && is_known(name)));
    }
}
