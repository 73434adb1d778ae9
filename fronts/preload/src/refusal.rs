//! Keeps the reason of this thread's last refused call for callers in C (`include/largesse.h`).

use crate::status::OK;
use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use core::fmt::{Display, Write};
use core::ptr::null;

/// Holds a message of at most 255 bytes; longer ones are truncated.
struct RefusalText {
    bytes: [u8; 256],
    len: usize,
}

impl Write for RefusalText {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // One byte remains for the zero that ends the C string.
        let room = self.bytes.len() - 1 - self.len;
        let part = &text.as_bytes()[..text.len().min(room)];
        self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
        self.len += part.len();
        self.bytes[self.len] = 0;
        Ok(())
    }
}

thread_local! {
    // `const`: no lazy initialisation and no destructor, hence no allocation.
    static REFUSAL: RefCell<RefusalText> = const { RefCell::new(RefusalText { bytes: [0; 256], len: 0 }) };
}

/// Stores the reason of a failure for `largesse_refusal`, or clears it after a success; returns the status.
pub(crate) fn answer(result: Result<(), (c_int, &dyn Display)>) -> c_int {
    REFUSAL.with_borrow_mut(|text| {
        text.len = 0;
        let Err((code, why)) = result else { return OK };
        let _ = write!(text, "{why}");
        code
    })
}

/// Returns the reason of the last refusal in this thread; NULL after a success.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_refusal() -> *const c_char {
    REFUSAL.with_borrow(|text| if text.len == 0 { null() } else { text.bytes.as_ptr().cast() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::NOT_SUPPORTED;
    use core::ffi::CStr;

    #[test]
    fn long_reasons_are_truncated() {
        let long = "w".repeat(1000);
        assert_eq!(answer(Err((NOT_SUPPORTED, &long))), NOT_SUPPORTED);
        // SAFETY: the result is not NULL after a refusal, and ends with a zero.
        let text = unsafe { CStr::from_ptr(largesse_refusal()) };
        assert_eq!(text.to_bytes().len(), 255);
        assert_eq!(answer(Ok(())), OK);
        assert!(largesse_refusal().is_null());
    }
}
