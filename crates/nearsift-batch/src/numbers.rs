//! Numbers as people read them.

/// Digits in groups of three: `1,234,567`.
pub use crate::report::grouped;

/// `1 document`, `2 documents`.
pub fn plural(count: u64, what: &str) -> String {
    plural_of(count, [what, &format!("{what}s")])
}

/// The number with the singular or the plural.
pub fn plural_of(count: u64, [one, many]: [&str; 2]) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Bytes in the largest unit that is not above them, as a `memory` setting has them.
pub fn size(bytes: u64) -> String {
    match bytes {
        1_000_000_000.. => format!("{:.1}GB", bytes as f64 / 1e9),
        1_000_000.. => format!("{:.0}MB", bytes as f64 / 1e6),
        _ => format!("{bytes}B"),
    }
}

/// A `memory` setting that is not less than the bytes.
pub fn size_up(bytes: u64) -> String {
    format!("{}MB", bytes.div_ceil(1_000_000))
}
