//! Tunes the compute cores that a program marks by `largesse_tune_begin` and `largesse_tune_end`, each by its name.

use crate::guard::Inside;
use crate::{heap, status};
use core::ffi::{CStr, c_char, c_int};
use largesse_policy::MAX_TRANSFER;
use largesse_policy::transfer::{ComputeCore, Iteration};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Largest number of iterations of each core that the report shows.
const MOST_SHOWN: usize = 200;

struct MarkedCore {
    name: Vec<u8>,
    core: ComputeCore,
    began: Option<Instant>,
    /// The first iterations, each with the transfer unit in base pages that was chosen for the next one.
    shown: Vec<(Iteration, usize)>,
}

static MARKED: Mutex<Vec<MarkedCore>> = Mutex::new(Vec::new());

/// Marks the beginning of the compute core `id`.
///
/// # Safety
/// `id` must be NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_tune_begin(id: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(id, begin) }
}

/// Marks the end of the compute core `id`, and chooses the transfer unit of its next iteration.
///
/// # Safety
/// `id` must be NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_tune_end(id: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(id, end) }
}

/// Calls `f` with the name `id`.
///
/// # Safety
/// `id` must be NULL or a C string.
unsafe fn with(id: *const c_char, f: fn(&[u8]) -> c_int) -> c_int {
    if id.is_null() {
        return status::BAD_ARGUMENT;
    }
    let _inside = Inside::enter();
    // SAFETY: not NULL, so a C string.
    f(unsafe { CStr::from_ptr(id) }.to_bytes())
}

fn begin(name: &[u8]) -> c_int {
    let Some(far) = heap::far() else { return status::NOT_SUPPORTED };
    let mut all = MARKED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|marked| marked.name == name).unwrap_or(all.len());
    if at == all.len() {
        let core = ComputeCore::new(1, MAX_TRANSFER);
        all.push(MarkedCore { name: name.to_vec(), core, began: None, shown: Vec::new() });
    }
    far.pager().core_begins();
    all[at].began = Some(Instant::now());
    status::OK
}

fn end(name: &[u8]) -> c_int {
    let Some(far) = heap::far() else { return status::NOT_SUPPORTED };
    let mut all = MARKED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(marked) = all.iter_mut().find(|marked| marked.name == name) else {
        return status::BAD_ARGUMENT;
    };
    let Some(began) = marked.began.take() else { return status::BAD_ARGUMENT };
    let now = far.pager().core_ends(&mut marked.core, began.elapsed());
    if marked.shown.len() < MOST_SHOWN {
        marked.shown.push((now, far.pager().commonest_unit()));
    }
    status::OK
}

/// Returns the iterations of every core, in the columns of DLM's tables (Midorikawa et al., FIT 2011).
pub(crate) fn report() -> Value {
    let page = largesse_pages::base_page();
    let all = MARKED.lock().unwrap_or_else(PoisonError::into_inner);
    let row = |(now, next): &(Iteration, usize)| {
        json!({
            "set_bytes": now.unit * page,
            "working_set": now.working_set,
            "local_sets": now.local_units(),
            "next_set_bytes": next * page,
            "seconds": now.took.as_secs_f64(),
        })
    };
    let core = |marked: &MarkedCore| {
        json!({
            "id": String::from_utf8_lossy(&marked.name),
            "iterations": marked.shown.iter().map(row).collect::<Vec<_>>(),
        })
    };
    all.iter().map(core).collect()
}
