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

/// The bytes of a size as people write it: a number and a unit, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024);
/// without one, bytes. `None` for anything else, and for less than one byte.
///
/// ```
/// use nearsift_batch::numbers::parse_size;
///
/// assert_eq!(parse_size("1.5GB"), Some(1_500_000_000));
/// assert_eq!(parse_size("512 MiB"), Some(512 << 20));
/// assert_eq!(parse_size("much"), None);
/// ```
pub fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text.trim()[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    let bytes = digits.trim().parse::<f64>().ok()? * factor as f64;
    (1.0..9e18).contains(&bytes).then_some(bytes as u64)
}

/// A `memory` setting that is not less than the bytes.
pub fn size_up(bytes: u64) -> String {
    format!("{}MB", bytes.div_ceil(1_000_000))
}
