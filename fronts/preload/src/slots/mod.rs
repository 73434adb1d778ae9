//! Serves a session that was started without the library, by patching its function slots in place.
//!
//! Calls between shared objects go through slots that the dynamic linker fills. We overwrite `malloc calloc realloc
//! free` of libR.so, so that R's vectors come from our heap; and `free realloc` and related functions of *every*
//! object, so that a block of ours is recognised in every library. `mmap` and related functions are patched everywhere
//! for the buffers of OpenBLAS and others, and `dlopen`, so that an object loaded later is patched before it is used.
//!
//! The library is never unloaded, since slots point into it.

pub(crate) mod dlopen;
pub(crate) mod eligibility;
pub(crate) mod enumeration;
pub(crate) mod object;
mod patch;
pub(crate) mod r;
mod replacements;
