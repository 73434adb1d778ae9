//! Formats sizes for people.

/// Formats a number of bytes in at most four characters and the unit: `64 KiB` for an exact multiple of the unit, and
/// `1.5 GiB` or `118 MiB`, rounded down, for other sizes.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 1_u64 << 10;
    for (place, name) in UNITS.iter().enumerate() {
        if place + 1 == UNITS.len() || bytes >> 10 < unit {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            return match (bytes, tenths) {
                (0, _) => "0".into(),
                (1..1024, _) => format!("{bytes} B"),
                (_, 1000..) => format!("{} {name}", tenths / 10),
                _ if bytes.is_multiple_of(unit) => format!("{} {name}", tenths / 10),
                _ => format!("{}.{} {name}", tenths / 10, tenths % 10),
            };
        }
        unit <<= 10;
    }
    unreachable!("the last unit takes every number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_at_a_glance() {
        let cases = [
            (0, "0"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1025, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (64 << 10, "64 KiB"),
            ((100 << 20) + 1, "100 MiB"),
            (1 << 20, "1 MiB"),
            ((1 << 20) - 1, "1023 KiB"),
            (24_684_096 << 10, "23.5 GiB"),
            (3 << 60, "3 EiB"),
            (u64::MAX, "15.9 EiB"),
        ];
        for (bytes, want) in cases {
            assert_eq!(size(bytes), want, "{bytes} bytes");
        }
    }
}
