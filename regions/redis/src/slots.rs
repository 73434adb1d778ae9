//! Computes the hash slot of a key. A cluster distributes its 16384 hash slots over its primaries.

pub(crate) const SLOTS: u16 = 16384;

/// Returns the hash slot of a key: its CRC-16 (XMODEM), modulo the number of hash slots. Redis hashes only the part in
/// braces if there is one, but the keys of this crate have none.
pub(crate) fn slot(key: &str) -> u16 {
    let crc = key.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| (crc << 1) ^ if crc >> 15 == 1 { 0x1021 } else { 0 })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot("123456789"), 0x31c3);
        assert_eq!(slot("foo"), 12182);
    }
}
