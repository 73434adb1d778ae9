//! Pins each thread to one processor: preloads `liblargesse_pin.so` and sets the list of processors that it reads.

use crate::run::{LaunchError, companion, served};
use largesse_far::environment;
use std::ffi::{OsStr, OsString};

const LIBRARY: &str = "liblargesse_pin.so";
/// The symbol that distinguishes our library from other files of this name.
const SYMBOL: &str = "pthread_create";
/// Name of the variable with the threads' processors in order, numbers separated by commas.
const VARIABLE: &str = "LARGESSE_THREAD_CPUS";
/// Name of the variable with the number of threads of OpenMP programs, and of BLAS libraries built with OpenMP.
const OPENMP_THREADS: &str = "OMP_NUM_THREADS";

/// Preloads the library into the program that replaces this process, and refuses a program that cannot load it.
pub(super) fn prepare(program: &OsStr, cpus: &[u32]) -> Result<(), LaunchError> {
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
