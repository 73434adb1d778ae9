//! Facts about the kernel on which far memory in place rests. `docs/design/limit.md` has the table of all answers by
//! kernel, way of opening and user.

use largesse_tests::{Run, Stage, User, large_pages_are_available, skipped, users};
use std::collections::BTreeMap;

/// Facts that hold on every kernel.
const ALWAYS: [(&str, &str); 8] = [
    ("populated large page registered", "yes"),
    ("it is still large", "yes"),
    ("its contents are intact", "yes"),
    ("unregistered, its contents are intact", "yes"),
    ("missing page after it was unregistered", "zero"),
    ("mapped over, still registered", "no"),
    ("reserved range registered", "yes"),
    ("made accessible, still registered", "yes"),
];
/// Facts that hold where the kernel moves pages (Linux 6.8).
const WHERE_PAGES_MOVE: [(&str, &str); 18] = [
    ("moved whole", "yes"),
    ("moved whole, it is still large", "yes"),
    ("moved whole, its contents are intact", "yes"),
    ("moved to a page table, it is still large", "no"),
    ("moved to a page table, its contents are intact", "yes"),
    ("moved in part", "yes"),
    ("moved page of zeros", "yes"),
    ("half of each large page dropped", "still charged"),
    ("offered large page populated", "kept"),
    ("offered small pages populated", "kept"),
    ("large pages made old", "old"),
    ("large pages, half of them read", "half are young"),
    ("large pages made old, still as large", "yes"),
    ("large pages, one of two divided by advice, and joined", "yes"),
    ("small pages made old", "old"),
    ("small pages, half of them read", "half are young"),
    ("small pages made old, still as large", "yes"),
    ("small pages, one of two divided by advice, and joined", "yes"),
];

/// Facts about userfaultfd user mode, for which system calls are filtered.
const IN_USER_MODE: [(&str, &str); 5] = [
    ("write(2) of a missing page", "EFAULT"),
    ("call of a waiting thread is shown", "yes"),
    ("read(2) that waited when its page was evicted", "EFAULT"),
    ("call that waited when a filter came is filtered", "no"),
    ("trapped call with its signal blocked", "kills"),
];

#[track_caller]
fn check(answers: &BTreeMap<String, String>, facts: &[(&str, &str)], who: &str) {
    for (fact, want) in facts {
        let answer = answers.get(*fact).map(String::as_str);
        // Without a memory control group, the charge is not known.
        if answer != Some("unknown") {
            assert_eq!(answer, Some(*want), "{fact}, {who}: {answers:#?}");
        }
    }
}

#[test]
fn populated_large_pages_become_far_in_place() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("kernel_facts.c", &["-O2", "-pthread"]) else { return };
    if !large_pages_are_available() {
        return;
    }
    let mut checked = 0;
    for user in users() {
        for how in ["device", "call", "user-mode"] {
            let who = format!("{how} as {user:?}");
            let program = program.display().to_string();
            let ran = Run::new(&stage, &[program.as_str(), how]).as_user(user).finish().succeeded();
            let answers: BTreeMap<String, String> = ran
                .stdout
                .lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(fact, answer)| (fact.to_owned(), answer.to_owned()))
                .collect();
            let is = |fact: &str, want: &str| answers.get(fact).is_some_and(|answer| answer == want);
            if !is("opened", "yes") {
                // An ordinary user may always open the last one, unless a container forbids it.
                assert!(user == User::Unprivileged && how != "user-mode" || is("opened", "ENOSYS"), "{who}");
                continue;
            }
            if is("large pages", "no") {
                skipped("the kernel gave no large page");
                return;
            }
            check(&answers, &ALWAYS, &who);
            if is("moves pages", "yes") {
                check(&answers, &WHERE_PAGES_MOVE, &who);
                check(&answers, &[("half of each large page moved out", "uncharged")], &who);
            }
            if how == "user-mode" {
                check(&answers, &IN_USER_MODE, &who);
            }
            checked += 1;
        }
    }
    assert!(checked > 0, "no userfaultfd could be opened in any way");
}
