//! Changes the machine's pool of 2 MiB pages for a test.

use crate::built::target;
use crate::skip::skipped;
use crate::user::is_root;
use std::fs::File;

const POOL: &str = "/proc/sys/vm/nr_hugepages";

/// The hugetlb pool of 2 MiB pages with the size that a test needs. Only one test can have it at a time. The former
/// size is restored when this is dropped.
#[derive(Debug)]
pub struct Pool {
    former: String,
    _turn: File,
}

impl Pool {
    /// Changes the pool to `pages` pages. Reports that the test is skipped and returns `None` if that is impossible.
    #[must_use]
    pub fn of(pages: u32) -> Option<Pool> {
        if !is_root() {
            skipped("only root can fill the hugetlb pool");
            return None;
        }
        let turn = File::create(target().join("pool.lock")).ok()?;
        turn.lock().ok()?;
        let former = std::fs::read_to_string(POOL).ok()?.trim().to_owned();
        let pool = Pool { former, _turn: turn };
        if std::fs::write(POOL, pages.to_string()).is_err() {
            skipped("the hugetlb pool cannot be written");
            return None;
        }
        let got = std::fs::read_to_string(POOL).ok()?;
        if got.trim() != pages.to_string() {
            skipped(&format!("of {pages} pages for the hugetlb pool the kernel had {}", got.trim()));
            return None;
        }
        Some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = std::fs::write(POOL, &self.former);
    }
}
