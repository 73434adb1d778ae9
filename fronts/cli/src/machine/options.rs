//! What may be measured, and within which bounds.

use super::measure::Limits;
use largesse_pager::parse_size;

/// Most of what is measured unless the user says otherwise.
const MEMORY: u64 = 4 << 30;

/// `--memory` and `--seconds`; half of what is available at most, unless the user says otherwise.
pub(super) fn limits(memory: Option<&str>, seconds: u64) -> Result<Limits, String> {
    let available = largesse_agent::available();
    let memory = match memory {
        None => MEMORY.min(available / 2),
        Some(text) => {
            let wanted = parse_size(text).map(|bytes| bytes as u64);
            let wanted = wanted.ok_or_else(|| {
                format!("--memory {text} is not understood; it accepts a size such as 512M or 4G")
            })?;
            if wanted > available {
                let there = crate::status::size(available);
                return Err(format!("--memory {text}: only {there} of memory is available now"));
            }
            wanted
        }
    };
    Ok(Limits::new(memory, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_size_that_there_is() {
        assert_eq!(limits(Some("64M"), 1).unwrap().memory, 64 << 20);
        assert!(limits(None, 1).unwrap().memory <= MEMORY);
        assert!(limits(Some("much"), 1).unwrap_err().contains("it accepts a size such as 512M"));
        assert!(limits(Some("9999T"), 1).unwrap_err().contains("of memory is available now"));
    }
}
