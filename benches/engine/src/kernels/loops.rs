//! Compiles the plain loops of `benches/programs/c/kernels/loops.c` if there is a compiler.

use super::super::temp_dir::TempDir;
use super::open_blas::{open, symbol};
use std::ffi::{CString, c_void};
use std::path::Path;
use std::process::Command;

pub(super) type One<T> = unsafe extern "C" fn(usize, *const T) -> T;
pub(super) type Two<T> = unsafe extern "C" fn(usize, *const T, *const T) -> T;

/// The compiled functions of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loops {
    pub(super) dsum: One<f64>,
    pub(super) dasum: One<f64>,
    pub(super) dsumsq: One<f64>,
    pub(super) dnrm2: One<f64>,
    pub(super) ssum: One<f32>,
    pub(super) ddot: Two<f64>,
    pub(super) sdot: Two<f32>,
    pub(super) daxpy: unsafe extern "C" fn(usize, f64, *const f64, *mut f64),
    pub(super) zdotu: unsafe extern "C" fn(usize, *const f64, *const f64, *mut f64),
    /// Sums with 1, 4 and 8 accumulators of two numbers.
    pub(super) ladder: [(u32, One<f64>); 3],
}

impl Loops {
    pub(super) fn compile(root: &Path) -> Result<Loops, String> {
        let source = root.join("programs/c/kernels/loops.c");
        // The library that is loaded below runs in this process: other users must not be able to write to the folder.
        let folder = TempDir::new()?;
        let made = folder.path().join("loops.so");
        let options = ["-O3", "-fPIC", "-shared", "-o"];
        let done = Command::new("gcc").args(options).arg(&made).arg(&source).arg("-lm").output();
        let loaded = match done {
            Err(_) => Err("no gcc (apt-get install gcc)".to_owned()),
            Ok(done) if !done.status.success() => {
                Err(format!("gcc {}: {}", source.display(), String::from_utf8_lossy(&done.stderr)))
            }
            Ok(_) => {
                let name = CString::new(made.to_string_lossy().into_owned()).unwrap_or_default();
                open(&name).ok_or_else(|| format!("{} cannot be loaded", made.display()))
            }
        };
        drop(folder);
        let library = loaded?;
        let find = |name: &str| {
            let name = CString::new(name).unwrap_or_default();
            symbol(library, &name).ok_or_else(|| format!("loops.c has no {}", name.to_string_lossy()))
        };
        // SAFETY: the functions of loops.c have these types.
        unsafe {
            let one =
                |name: &str| find(name).map(|found| core::mem::transmute::<*mut c_void, One<f64>>(found));
            Ok(Loops {
                dsum: one("plain_dsum")?,
                dasum: one("plain_dasum")?,
                dsumsq: one("plain_dsumsq")?,
                dnrm2: one("plain_dnrm2")?,
                ssum: core::mem::transmute::<*mut c_void, One<f32>>(find("plain_ssum")?),
                ddot: core::mem::transmute::<*mut c_void, Two<f64>>(find("plain_ddot")?),
                sdot: core::mem::transmute::<*mut c_void, Two<f32>>(find("plain_sdot")?),
                daxpy: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(usize, f64, *const f64, *mut f64),
                >(find("plain_daxpy")?),
                zdotu: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(usize, *const f64, *const f64, *mut f64),
                >(find("plain_zdotu")?),
                ladder: [(1, one("ladder_1")?), (4, one("ladder_4")?), (8, one("ladder_8")?)],
            })
        }
    }
}
