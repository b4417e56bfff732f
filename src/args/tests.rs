use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn words(line: &str) -> impl Iterator<Item = &[u8]> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(str::as_bytes)
}

fn rule_of(limit: u64, micros: i64) -> Rule {
    let window = Window::from_micros(micros).unwrap();
    Rule { limit, window }
}

#[test]
fn one_rule_and_no_options() {
    let attempt = Attempt {
        rules: Rules::new(rule_of(3, 60_000_000)),
        units: Units::ONE,
        form: Form::SortedSet,
        skip_denied: false,
        with_info: false,
    };
    assert_eq!(check(words("3 60")), Ok(attempt));
}

#[test]
fn rules_then_options() {
    let mut rules = Rules::new(rule_of(10, 1_000_000));
    assert!(rules.push(rule_of(1_000, 3_600_000_000)));
    let attempt = Attempt {
        rules,
        units: Units::new(5).unwrap(),
        form: Form::Packed,
        skip_denied: true,
        with_info: true,
    };
    assert_eq!(
        check(words("10 1 1000 3600 skipdenied Cost 5 PACKED WITHINFO")),
        Ok(attempt)
    );
}

#[test]
fn eight_rules_and_no_more() {
    let eight = "1 1 ".repeat(8);
    assert_eq!(
        check(words(&eight)).map(|attempt| attempt.rules.len()),
        Ok(8)
    );
    assert_eq!(check(words(&"1 1 ".repeat(9))), Err(Error::TooManyRules));
}

#[test]
fn a_refund_is_of_one_unit_and_keeps_none_unless_said() {
    let refund_of = |id, units, keep| {
        let units = Units::new(units).unwrap();
        Ok(Refund { id, units, keep })
    };
    assert_eq!(refund(words("7")), refund_of(7, 1, 0));
    assert_eq!(refund(words("7 KEEP 3 COST 5")), refund_of(7, 5, 3));
    assert_eq!(
        refund(words("7 cost 1000 keep 1000")),
        refund_of(7, 1_000, 1_000)
    );
    assert_eq!(
        refund(words("9223372036854775807")),
        refund_of(Micros::MAX, 1, 0)
    );
}

#[test]
fn the_first_fault_of_a_refund_is_told() {
    for (line, error) in [
        ("", Error::WrongArity),
        ("0", Error::Id),
        ("-1", Error::Id),
        ("9223372036854775808", Error::Id),
        ("COST 5", Error::Id),
        ("7 COST 0", Error::Cost),
        ("7 COST 1000000001", Error::Cost),
        ("7 COST", Error::Syntax),
        ("7 COST 5 COST 5", Error::Syntax),
        ("7 5", Error::Syntax),
        ("7 KEEP", Error::Syntax),
        ("7 KEEP x COST 0", Error::Keep),
        ("7 KEEP -1", Error::Keep),
        ("7 KEEP 2", Error::Keep),
        ("7 KEEP 2 COST 0", Error::Cost),
        ("7 KEEP 6 COST 5", Error::Keep),
    ] {
        assert_eq!(refund(words(line)), Err(error), "{line}");
    }
}

/// Words near the grammar, and any bytes.
fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[0-9]{1,20}(\\.[0-9]{0,8})?".prop_map(String::into_bytes),
        "(?i)cost|packed|count|skipdenied|withinfo|keep".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..24),
    ]
}

proptest! {
    /// Case 50: no words make the parser panic, and what it accepts is within its bounds.
    #[test]
    fn any_words_are_parsed_or_refused(list in vec(word(), 0..24)) {
        let words = || list.iter().map(Vec::as_slice);
        if let Ok(attempt) = check(words()) {
            prop_assert!((1..=Rules::MAX).contains(&attempt.rules.len()));
            prop_assert!((1..=1_000_000_000).contains(&attempt.units.get()));
            for rule in attempt.rules.iter() {
                prop_assert!(rule.limit <= i64::MAX.unsigned_abs());
                prop_assert!((Window::MIN..=Window::MAX).contains(&rule.window.micros()));
            }
            let reads_only = !attempt.skip_denied && attempt.form == Form::SortedSet;
            prop_assert_eq!(peek(words()).is_ok(), reads_only);
        }
        if let Ok(count) = entries(words()) {
            prop_assert!((1..=1_000_000).contains(&count));
        }
        if let Ok(refund) = refund(words()) {
            prop_assert!(refund.id > 0 && refund.keep <= refund.units.get());
        }
    }

    /// Every decimal spelling of a window is that number of microseconds.
    #[test]
    fn a_window_is_exact(micros in Window::MIN..=Window::MAX) {
        let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let attempt = check(["1".as_bytes(), text.as_bytes()].into_iter());
        let window = attempt.map(|attempt| attempt.rules.longest_window().micros());
        prop_assert_eq!(window, Ok(micros));
    }
}
