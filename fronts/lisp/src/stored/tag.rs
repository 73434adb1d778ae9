//! Numbers the types of stored values.

/// Tells the type of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Nil,
    Fixnum,
    Float,
    /// The value refers to an earlier object, by number.
    Again,
    Cons,
    Symbol,
    /// The value is an uninterned symbol.
    Uninterned,
    String,
    Vector,
    Floats,
    Integers,
    Bits,
    Array,
    Bignum,
    Ratio,
}

/// Lists the tags in the order of their numbers.
pub(super) const TAGS: [Tag; 15] = [
    Tag::Nil,
    Tag::Fixnum,
    Tag::Float,
    Tag::Again,
    Tag::Cons,
    Tag::Symbol,
    Tag::Uninterned,
    Tag::String,
    Tag::Vector,
    Tag::Floats,
    Tag::Integers,
    Tag::Bits,
    Tag::Array,
    Tag::Bignum,
    Tag::Ratio,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_match_their_numbers() {
        for (number, tag) in TAGS.into_iter().enumerate() {
            assert_eq!(tag as usize, number);
        }
    }
}
