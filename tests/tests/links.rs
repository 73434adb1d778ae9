//! Checks that every link of the documentation into the checkout leads to an existing file and heading.

use largesse_tests::workspace;
use std::path::{Path, PathBuf};

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let files = pages(&workspace());
    assert!(files.len() > 30, "only {files:?}");
    let wrong: Vec<String> = files.iter().flat_map(|file| broken(file)).collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn headings_have_the_anchors_of_github() {
    let text = "# Far memory: a `look`\n```\n# no heading\n```\n## Far memory: a look\n";
    assert_eq!(anchors(text), ["far-memory-a-look", "far-memory-a-look-1"]);
    let text = "[a](b.md) ![c](d.svg) `[e](f)` [g](https://h)\n```\n[i](j)\n```\n[k](#l \"m\")";
    assert_eq!(links(text), ["b.md", "d.svg", "#l"]);
}

/// Returns the links of a page whose target does not exist.
fn broken(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let folder = page.parent().unwrap_or(page);
    let leads = |link: &String| {
        let (file, heading) = link.split_once('#').map_or((link.as_str(), None), |(a, b)| (a, Some(b)));
        let target = if file.is_empty() { page.to_path_buf() } else { folder.join(file) };
        let has = |heading| std::fs::read_to_string(&target).is_ok_and(|it| anchors(&it).contains(&heading));
        target.exists() && heading.is_none_or(|heading| has(heading.to_owned()))
    };
    let wrong = links(&text).into_iter().filter(|link| !leads(link));
    wrong.map(|link| format!("{}: {link}", page.display())).collect()
}

/// Returns the targets of a page's links, except those with a scheme such as `https:`.
fn links(text: &str) -> Vec<String> {
    let plain: String = prose(text).map(|line| without_code(line) + "\n").collect();
    let targets = plain.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Returns the anchor of each heading of a page, as GitHub names it.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for heading in prose(text).filter_map(|line| line.strip_prefix('#')) {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|&c| c.is_alphanumeric() || "-_ ".contains(c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(again);
        found.extend(names.find(|name| !found.contains(name)));
    }
    found
}

/// Returns the lines of a page outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Returns a line without its inline code.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Returns all Markdown files below a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() && name != "target" && !name.starts_with('.') {
            found.extend(pages(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}
