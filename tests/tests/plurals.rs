//! Counts in messages are written with `largesse_text::counted`, which knows `1 block` from `2 blocks`.

use largesse_tests::workspace;
use std::path::{Path, PathBuf};

/// Nouns of things that are counted in messages. Pages and bytes are left out: `{size} pages` is a kind of page.
const NOUNS: [&str; 9] =
    ["blocks", "threads", "processors", "cores", "files", "processes", "ticks", "runs", "collections"];
/// Folders of the code whose messages users see.
const FOLDERS: [&str; 8] = [
    "fronts/cli/src",
    "fronts/far/src",
    "fronts/preload/src",
    "fronts/terminal/src",
    "fronts/lisp/command/src",
    "os/machine/src",
    "os/pages/src",
    "benches/engine/src",
];

fn sources(folder: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|_| panic!("{}", folder.display())) {
        let path = entry.unwrap().path();
        match path.extension() {
            None if path.is_dir() => sources(&path, to),
            Some(kind) if kind == "rs" => to.push(path),
            _ => {}
        }
    }
}

/// Returns the noun that follows a placeholder of a format string in this line, if there is one.
fn counted_by_hand(line: &str) -> Option<&'static str> {
    let is_message = line.contains('"') && !line.trim_start().starts_with("//") && !line.contains("assert");
    let follows = |noun: &&str| {
        let words = format!("}} {noun}");
        let end = |rest: &str| !rest.starts_with(|letter: char| letter.is_alphanumeric());
        line.split(&*words).skip(1).any(end)
    };
    NOUNS.into_iter().find(follows).filter(|_| is_message)
}

#[test]
fn nouns_follow_their_counts() {
    assert_eq!(counted_by_hand(r#"format!("{count} blocks")"#), Some("blocks"));
    assert_eq!(counted_by_hand(r#"format!("{} filesystem", "{} pages")"#), None);
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&workspace().join(folder), &mut files));
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // Unit tests are at the end of a file.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| counted_by_hand(line).is_some()) {
            wrong.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
        }
    }
    assert!(wrong.is_empty(), "write these by largesse_text::counted:\n{}", wrong.join("\n"));
}
