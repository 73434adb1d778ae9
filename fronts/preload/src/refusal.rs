//! Why the last call in this thread was refused, for callers in C (`include/largesse.h`).

use crate::control::OK;
use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use core::fmt::{Display, Write};
use core::ptr::null;

/// Words for one refusal, cut when there are more.
struct Words {
    bytes: [u8; 256],
    len: usize,
}

impl Write for Words {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // The last byte ends the C string.
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
    static REFUSAL: RefCell<Words> = const { RefCell::new(Words { bytes: [0; 256], len: 0 }) };
}

/// Keeps `why` for `largesse_refusal`; of a success, nothing.
pub(crate) fn answer(result: Result<(), (c_int, &dyn Display)>) -> c_int {
    REFUSAL.with_borrow_mut(|words| {
        words.len = 0;
        let Err((code, why)) = result else { return OK };
        let _ = write!(words, "{why}");
        code
    })
}

/// Words for the last refusal in this thread.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_refusal() -> *const c_char {
    REFUSAL.with_borrow(|words| if words.len == 0 { null() } else { words.bytes.as_ptr().cast() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::NOT_SUPPORTED;
    use core::ffi::CStr;

    #[test]
    fn long_words_are_cut_and_end() {
        let long = "w".repeat(1000);
        assert_eq!(answer(Err((NOT_SUPPORTED, &long))), NOT_SUPPORTED);
        // SAFETY: not NULL after a refusal, and ended.
        let words = unsafe { CStr::from_ptr(largesse_refusal()) };
        assert_eq!(words.to_bytes().len(), 255);
        assert_eq!(answer(Ok(())), OK);
        assert!(largesse_refusal().is_null());
    }
}
