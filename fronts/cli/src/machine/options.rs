//! Parses the bounds of measurements.

use super::measure::Limits;
use largesse_terminal::word;

/// Bytes that are measured at most by default.
const MEMORY: u64 = 4 << 30;

/// Returns the limits of `--memory` and `--seconds`; by default at most half of the available memory.
pub(super) fn limits(memory: Option<&str>, seconds: u64) -> Result<Limits, String> {
    let available = largesse_store::available();
    let memory = match memory {
        None => MEMORY.min(available / 2),
        Some(text) => {
            let wanted =
                largesse_settings::memory(text).map_err(|why| format!("--memory {} {why}", word(text)))?;
            let wanted = wanted as u64;
            if wanted > available {
                let there = largesse_terminal::size(available);
                return Err(format!("--memory {}: only {there} of memory is available now", word(text)));
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
    fn memory_is_available_size() {
        assert_eq!(limits(Some("64M"), 1).unwrap().memory, 64 << 20);
        assert!(limits(None, 1).unwrap().memory <= MEMORY);
        assert_eq!(limits(Some("64 mb"), 1).unwrap().memory, 64 << 20);
        assert!(limits(Some("64"), 1).unwrap_err().contains("did you mean 64G or 64M?"));
        assert!(limits(Some("much"), 1).unwrap_err().contains("such as 512M or 4G"));
        assert!(limits(Some("9999T"), 1).unwrap_err().contains("of memory is available now"));
    }
}
