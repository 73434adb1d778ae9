//! Tests memory that a program reserves first and makes usable later in parts, as allocators and virtual machines do: it
//! is far with `--local`, and becomes far under `--limit`.

use largesse_tests::{Ran, Run, Stage, User, fault_engines, users};
use std::path::Path;

/// The ways in which the program reserves memory.
const WAYS: [&str; 4] = ["none", "lazy", "hint", "placed"];

/// Runs the program natively and with these options; checks that it prints the same.
#[track_caller]
fn same(stage: &Stage, program: &Path, words: &[&str], user: User, options: &[&str]) -> Ran {
    let stock = words.iter().fold(Run::new(stage, &[program]), |run, word| run.arg(word));
    let stock = stock.as_user(user);
    let native = stock.finish().succeeded();
    // Far memory of one protection can always be moved. The kernel refuses it where there are several mappings.
    let far = stock.under(options).variable("EVERY_MOVE", "1").finish().succeeded();
    assert_eq!(
        (far.stdout.as_str(), far.stderr.as_str()),
        (native.stdout.as_str(), ""),
        "{options:?}: {far:#?}"
    );
    far
}

/// Checks that far memory had the mappings of a program, and has nothing of them any more.
#[track_caller]
fn was_far(ran: &Ran, least_evictions: u64) {
    let far = &ran.report["far"];
    assert!(far["evictions"].as_u64() > Some(least_evictions), "{far:#}");
    assert_eq!(far["uncovered_bytes"], 0, "{far:#}");
    assert_eq!(ran.not_granted("mapping-near"), 0, "{:#}", ran.report);
    let regions = far["regions"].as_array().unwrap();
    let mapping = regions.iter().find(|region| region["region"] == "mapping").unwrap();
    assert_eq!((&mapping["mapped_bytes"], &mapping["stored_bytes"]), (&0.into(), &0.into()), "{mapping:#}");
}

/// Checks a program that uses `mib` MiB in each of the [`WAYS`], for every user and engine, with `bound`.
#[track_caller]
fn every_way(mib: &str, bound: &str, check: impl Fn(&Ran)) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("reserved.c", &["-O2"]) else { return };
    let store = stage.store();
    for user in users() {
        for &engine in fault_engines(user) {
            for way in WAYS {
                let options = [bound, "--far", &store, "--fault-engine", engine];
                let ran = same(&stage, &program, &[way, mib], user, &options);
                was_far(&ran, 10_000);
                check(&ran);
            }
        }
    }
}

#[test]
fn reserved_memory_is_far_once_usable() {
    every_way("32", "--local=8M", |_| ());
}

#[test]
fn reserved_memory_becomes_far_near_a_limit() {
    every_way("80", "--limit=64M", |ran| {
        assert!(ran.hints.contains("comes near its limit of 64M"), "{ran:#?}");
    });
}

/// Random changes of ranges give the contents and protections of a model, with `--local` and through a change-over.
#[test]
fn random_changes_of_ranges_agree_with_a_model() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("reserved.c", &["-O2"]) else { return };
    let store = stage.store();
    for user in users() {
        for (number, &engine) in fault_engines(user).iter().enumerate() {
            for (seed, mib, bound) in [(1, "24", "--local=8M"), (2, "80", "--limit=64M")] {
                let seed = (seed + 2 * number).to_string();
                let options = [bound, "--far", &store, "--fault-engine", engine];
                was_far(&same(&stage, &program, &["random", mib, &seed], user, &options), 1000);
            }
        }
    }
}

#[test]
fn stacks_are_never_far() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("reserved.c", &["-O2"]) else { return };
    let ran =
        same(&stage, &program, &["stack", "16"], User::Current, &["--local=8M", "--far", &stage.store()]);
    assert_eq!(ran.report["far"]["evictions"], 0, "{:#}", ran.report);
    assert_eq!(ran.not_granted("mapping-near"), 1, "{:#}", ran.report);
}

/// Rare uses of mappings end as without Largesse: growth where they are, hints inside a page, `pkey_mprotect`, and locks
/// that the user may not have, after which the memory must still be far.
#[test]
fn rare_uses_of_mappings_end_as_usual() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("grown.c", &["-O2"]) else { return };
    let store = stage.store();
    for user in users() {
        for &engine in fault_engines(user) {
            for bound in ["--local=4M", "--limit=64M"] {
                let options = [bound, "--far", &store, "--fault-engine", engine];
                for way in ["grow", "hint", "key"] {
                    same(&stage, &program, &[way], user, &options);
                }
                if user == User::Unprivileged {
                    same(&stage, &program, &["lock"], user, &options);
                }
            }
        }
    }
}
