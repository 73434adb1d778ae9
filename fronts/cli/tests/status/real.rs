//! Tests of `largesse status` on programs that `largesse run` starts with the library itself.

use super::{MIB, TargetProcess, status, stdout};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
int main(void) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* kernel.yama.ptrace_scope=1 */
    char *large = malloc(64 << 20), *middle = calloc(3, 1 << 20), *small = malloc(1000);
    memset(large, 1, 64 << 20);
    middle[5] = small[5] = 1;
    puts("ready");
    fflush(stdout);
    int end = getchar();
    return large[7] + middle[5] + small[5] == 3 && end == EOF ? 0 : 1;
}"#;

/// Starts the program under the library, or prints the reason and returns `None` without the library.
fn start(options: &[&str]) -> Option<TargetProcess> {
    let command = Path::new(env!("CARGO_BIN_EXE_largesse"));
    let built = command.parent()?.parent()?;
    if !["preload", "preload-checked"]
        .iter()
        .any(|profile| built.join(profile).join("liblargesse.so").exists())
    {
        eprintln!("skipped: liblargesse.so is not built (make)");
        return None;
    }
    TargetProcess::started(SOURCE, |program| {
        let mut run = Command::new(command);
        run.arg("run").args(options).arg("--").arg(program).env_remove("LARGESSE_LIBRARY");
        run
    })
}

fn shown(target: &TargetProcess) -> Value {
    let output = status(&[&target.pid(), "--json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns how often the kernel has used small pages for want of a free large one; `None` where it does not say.
fn thp_fallbacks() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("thp_fault_fallback ")?.parse().ok())
}

#[test]
fn only_large_blocks_are_shown() {
    let before = thp_fallbacks();
    let Some(target) = start(&[]) else { return };
    let shown = shown(&target);
    let mut sizes: Vec<u64> =
        shown["blocks"].as_array().unwrap().iter().map(|block| block["size"].as_u64().unwrap()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [3 * MIB, 64 * MIB]);
    let granted = shown["not_granted"].as_array().unwrap().is_empty();
    if granted && shown["exact"] == true {
        let large = shown["totals"]["large_bytes"].as_u64().unwrap();
        // The kernel falls back to small pages, block by block, when free memory is fragmented. It counts each time.
        if thp_fallbacks() == before {
            assert!(large >= 62 * MIB, "{shown}");
        } else {
            eprintln!("skipped: the kernel had too few free large pages during this test");
        }
    } else {
        eprintln!("skipped: this machine grants no large pages, or does not show them");
    }
    assert!(stdout(&status(&[&target.pid()])).contains("64 MiB"));
}

#[test]
fn status_shows_options() {
    let Some(target) = start(&["--pages", "4k", "--min-kb", "4096", "--header", "48", "--node", "0"]) else {
        return;
    };
    let shown = shown(&target);
    assert_eq!(shown["pages"], "4k");
    assert_eq!(shown["min_bytes"], 4 * MIB);
    assert_eq!(shown["header"], 48);
    assert_eq!(shown["node"], "0");
    assert_eq!(shown["blocks"].as_array().unwrap().len(), 1);
    assert_eq!(shown["blocks"][0]["kind"], "4k");
    assert_eq!(shown["totals"]["large_bytes"], 0);
}
