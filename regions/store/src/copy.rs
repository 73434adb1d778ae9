//! Copies to the memory of stores.

/// Copies to memory that will not be read soon, with non-temporal stores: the processor neither reads the old
/// contents nor evicts other lines from its caches.
///
/// # Safety
///
/// The requirements are those of [`core::ptr::copy_nonoverlapping`]: `to` points to room for all of `from`.
#[cfg(target_arch = "x86_64")]
pub unsafe fn copy_past_caches(from: &[u8], to: *mut u8) {
    use core::arch::x86_64::{_mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const STEP: usize = 16;
    let bytes = if to.addr().is_multiple_of(STEP) { from.len() / STEP * STEP } else { 0 };
    for at in (0..bytes).step_by(STEP) {
        // SAFETY: inside both buffers; `to` is aligned. The fence makes the bytes visible to other processors.
        unsafe { _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.as_ptr().add(at).cast())) };
    }
    // SAFETY: every x86-64 processor has the instruction; the rest is inside both buffers as well.
    unsafe {
        _mm_sfence();
        to.add(bytes).copy_from_nonoverlapping(from.as_ptr().add(bytes), from.len() - bytes);
    }
}

/// Copies to memory that will not be read soon. This architecture has no non-temporal stores, so that it is an ordinary
/// copy.
///
/// # Safety
///
/// The requirements are those of [`core::ptr::copy_nonoverlapping`]: `to` points to room for all of `from`.
#[cfg(not(target_arch = "x86_64"))]
pub unsafe fn copy_past_caches(from: &[u8], to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_exact_at_any_alignment_and_length() {
        let from: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for (start, len) in [(0, 4096), (0, 5000), (1, 4096), (16, 17), (8, 15), (3, 0)] {
            let mut to = vec![0; 6000];
            // SAFETY: `to` has room for it.
            unsafe { copy_past_caches(&from[..len], to[start..].as_mut_ptr()) };
            assert!(to[start..start + len] == from[..len], "{len} at {start}");
            assert!(to[..start].iter().chain(&to[start + len..]).all(|&byte| byte == 0));
        }
    }
}
