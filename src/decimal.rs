//! Strict decimal numbers, parsed as bytes.
//!
//! By hand, because Rust's own parsers take `+5` and `05`, the server's take `inf` and `0x10`, and
//! a float would round a window.

use crate::rule::Micros;

/// An integer from 0 to 9223372036854775807 in Redis' own spelling: no sign, no leading zero.
pub fn integer(text: &[u8]) -> Option<u64> {
    match text {
        [b'0'] => Some(0),
        [b'0', ..] => None,
        digits => number(digits)?.try_into().ok(),
    }
}

/// Seconds with an optional fraction of one to six digits, as microseconds.
pub fn seconds(text: &[u8]) -> Option<Micros> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let whole = number(parts.next()?)?.checked_mul(1_000_000)?;
    let fraction = match parts.next() {
        None => 0,
        Some(digits) => {
            let missing = 6_usize.checked_sub(digits.len())?;
            let unit = 10_i64.checked_pow(missing.try_into().ok()?)?;
            number(digits)?.checked_mul(unit)?
        }
    };
    whole.checked_add(fraction)
}

/// One digit or more as a number of at most 9223372036854775807.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = digit.is_ascii_digit().then_some(digit & 0x0f)?;
        number.checked_mul(10)?.checked_add(i64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0", 0)]
    #[case("1", 1)]
    #[case("9223372036854775807", 9_223_372_036_854_775_807)]
    fn an_integer_is_plain_digits(#[case] text: &str, #[case] value: u64) {
        assert_eq!(integer(text.as_bytes()), Some(value));
    }

    /// Cases 7, 46, 47 and 75.
    #[rstest]
    fn any_other_spelling_is_no_integer(
        #[values(
            "",
            " 5",
            "5 ",
            "+5",
            "-1",
            "-0",
            "05",
            "00",
            "0x10",
            "1e3",
            "1.0",
            "nan",
            "NaN",
            "inf",
            "-inf",
            "infinity",
            "abc",
            "\"100\"",
            "5\0",
            "9223372036854775808"
        )]
        text: &str,
    ) {
        assert_eq!(integer(text.as_bytes()), None);
    }

    #[rstest]
    #[case("60", 60_000_000)]
    #[case("0", 0)]
    #[case("060", 60_000_000)]
    #[case("0.25", 250_000)]
    #[case("1.0", 1_000_000)]
    #[case("600.001", 600_001_000)]
    #[case("0.000001", 1)]
    #[case("1.999999", 1_999_999)]
    #[case("315360000", 315_360_000_000_000)]
    fn seconds_are_exact_microseconds(#[case] text: &str, #[case] micros: Micros) {
        assert_eq!(seconds(text.as_bytes()), Some(micros));
    }

    /// Cases 7, 38, 46 and 47.
    #[rstest]
    fn any_other_spelling_is_no_number_of_seconds(
        #[values(
            "",
            ".",
            ".5",
            "5.",
            "1.0000000",
            "1.2.3",
            "-1",
            "+1",
            " 1",
            "1 ",
            "1e3",
            "1e400",
            "1e-400",
            "0x10",
            "nan",
            "inf",
            "-inf",
            "infinity",
            "1,5",
            "9223372036854775807"
        )]
        text: &str,
    ) {
        assert_eq!(seconds(text.as_bytes()), None);
    }
}
