//! Strict decimal numbers, parsed as bytes.
//!
//! By hand, because Rust's own parsers take `+5` and `05`, the server's take `inf` and `0x10`, and
//! a float would round a window.
#![deny(clippy::arithmetic_side_effects)]

use crate::rule::Micros;

/// An integer from 0 to 9223372036854775807 in Redis' own spelling: no sign, no leading zero.
pub fn integer(text: &[u8]) -> Option<u64> {
    match text {
        [b'0'] => Some(0),
        [b'0', ..] => None,
        digits => number(digits)?.try_into().ok(),
    }
}

/// The longest text of a number of seconds.
const LONGEST: usize = 32;

/// Seconds with an optional fraction, as microseconds, at most 32 characters.
///
/// Digits beyond the sixth are rounded, not refused: Lua on Redis 6.2 and 7.0 sends 0.1 as
/// `0.10000000000000001`.
pub fn seconds(text: &[u8]) -> Option<Micros> {
    if text.len() > LONGEST {
        return None;
    }
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let whole = number(parts.next()?)?.checked_mul(1_000_000)?;
    let fraction = parts.next().map_or(Some(0), millionths)?;
    whole.checked_add(fraction)
}

/// One digit or more after a decimal point, as the nearest millionth.
fn millionths(digits: &[u8]) -> Option<Micros> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let mut six = [b'0'; 6];
    six.iter_mut()
        .zip(digits)
        .for_each(|(to, from)| *to = *from);
    let rounded_up = digits.get(6).is_some_and(|seventh| *seventh >= b'5');
    all_digits
        .then(|| number(&six))?
        .and_then(|millionths| millionths.checked_add(rounded_up.into()))
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
    // Case 98: as Lua sends 0.1, 0.3 and 1/3.
    #[case("0.10000000000000001", 100_000)]
    #[case("0.29999999999999999", 300_000)]
    #[case("0.33333333333333331", 333_333)]
    #[case("0.0000005", 1)]
    #[case("0.00000049", 0)]
    #[case("1.9999995", 2_000_000)]
    #[case("0.999999999999999999999999999999", 1_000_000)]
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
            "1.000000x",
            "1.0000000000000000000000000000000",
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
