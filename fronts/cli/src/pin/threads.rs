//! Each thread on a processor of its own: `liblargesse_pin.so` in the program, and the list that it reads.

use crate::run::{Trouble, companion, served};
use largesse_far::environment;
use std::ffi::{OsStr, OsString};

const LIBRARY: &str = "liblargesse_pin.so";
/// A symbol that tells our library from any other file of this name.
const SYMBOL: &str = "pthread_create";
/// The processors of the threads, in order: numbers separated by commas.
const VARIABLE: &str = "LARGESSE_THREAD_CPUS";
/// Number of threads of OpenMP programs and of BLAS libraries built with OpenMP.
const OPENMP_THREADS: &str = "OMP_NUM_THREADS";

/// Has the program that this process becomes load the library; a program that cannot is refused.
pub(super) fn prepare(program: &OsStr, cpus: &[u32]) -> Result<(), Trouble> {
    served(program)?;
    let mut preload = companion(LIBRARY, SYMBOL)?.into_os_string();
    if let Some(others) = environment::get("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    environment::set("LD_PRELOAD", &preload);
    environment::set(VARIABLE, OsStr::new(&list.join(",")));
    if environment::get(OPENMP_THREADS).is_none_or(|value| value.is_empty()) {
        environment::set(OPENMP_THREADS, &OsString::from(cpus.len().to_string()));
    }
    Ok(())
}
