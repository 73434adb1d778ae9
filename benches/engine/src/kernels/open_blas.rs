//! Loads OpenBLAS if it is installed; it is never linked.

use std::ffi::{CStr, c_int, c_void};

type One<T> = unsafe extern "C" fn(c_int, *const T, c_int) -> T;
type Two<T> = unsafe extern "C" fn(c_int, *const T, c_int, *const T, c_int) -> T;

/// The functions of OpenBLAS; some builds have no `dsum`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlas {
    pub(super) dsum: Option<One<f64>>,
    pub(super) ssum: Option<One<f32>>,
    pub(super) dasum: One<f64>,
    pub(super) dnrm2: One<f64>,
    pub(super) ddot: Two<f64>,
    pub(super) sdot: Two<f32>,
    pub(super) daxpy: unsafe extern "C" fn(c_int, f64, *const f64, c_int, *mut f64, c_int),
    pub(super) zdotu: unsafe extern "C" fn(c_int, *const f64, c_int, *const f64, c_int, *mut f64),
}

impl OpenBlas {
    /// Loads the library and sets it to one thread.
    pub(super) fn load() -> Result<OpenBlas, String> {
        let library =
            open(c"libopenblas.so.0").ok_or("no libopenblas.so.0 (apt-get install libopenblas0-pthread)")?;
        let need = |name: &CStr| {
            symbol(library, name).ok_or_else(|| format!("libopenblas.so.0 has no {}", name.to_string_lossy()))
        };
        let threads = need(c"openblas_set_num_threads")?;
        // SAFETY: these are the C functions of these names (cblas.h).
        unsafe {
            core::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(threads)(1);
            Ok(OpenBlas {
                dsum: symbol(library, c"cblas_dsum")
                    .map(|found| core::mem::transmute::<*mut c_void, One<f64>>(found)),
                ssum: symbol(library, c"cblas_ssum")
                    .map(|found| core::mem::transmute::<*mut c_void, One<f32>>(found)),
                dasum: core::mem::transmute::<*mut c_void, One<f64>>(need(c"cblas_dasum")?),
                dnrm2: core::mem::transmute::<*mut c_void, One<f64>>(need(c"cblas_dnrm2")?),
                ddot: core::mem::transmute::<*mut c_void, Two<f64>>(need(c"cblas_ddot")?),
                sdot: core::mem::transmute::<*mut c_void, Two<f32>>(need(c"cblas_sdot")?),
                daxpy: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, f64, *const f64, c_int, *mut f64, c_int),
                >(need(c"cblas_daxpy")?),
                zdotu: core::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_int, *const f64, c_int, *const f64, c_int, *mut f64),
                >(need(c"cblas_zdotu_sub")?),
            })
        }
    }
}

/// Loads a library and keeps it loaded; returns `None` if that fails.
pub(super) fn open(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string, and the constructors are those of a numerical library.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    (!library.is_null()).then_some(library)
}

pub(super) fn symbol(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the library is open, and the name is a C string.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}
