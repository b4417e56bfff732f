//! Several rules on one log.

use crate::support::{ages, Reply, Server, NOW, SECOND};
use rstest::rstest;

/// Case 49: a call trims by its own longest window, so a short one forgets for a long one; no number
/// turns negative, and the key lives on.
#[test]
fn windows_of_different_length_share_a_key() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..3 {
        redis.int("SLIDEWIN.CHECK k 100 60");
    }
    server.clock().step(2 * SECOND);
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 5 1 WITHINFO")[..3],
        [1, 5, 4]
    );
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 100 60 WITHINFO")[..3],
        [1, 100, 98]
    );
    assert!(redis.int("PTTL k") >= 58_000);
}

#[test]
fn several_rules_hold_together_on_one_log() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 1 3 60 SKIPDENIED";
    assert_eq!(
        [redis.int(check), redis.int(check), redis.int(check)],
        [1, 1, 0]
    );
    server.clock().step(SECOND + 1);
    assert_eq!([redis.int(check), redis.int(check)], [1, 0]);
    assert_eq!(redis.int("ZCARD k"), 3);
}

/// The binding rule of a denial is the one with the longest wait, else the one with the fewest
/// remaining; the first of equal ones.
#[rstest]
#[case("2 1 3 60", "SKIPDENIED", [0, 3, 0, 59_500, 59_500, 60_000, 3])]
#[case("3 60 2 1", "SKIPDENIED", [0, 3, 0, 59_500, 59_500, 60_000, 3])]
#[case("9 1 8 60", "SKIPDENIED", [1, 8, 4, 0, 59_500, 60_001, 4])]
#[case("9 60 9 61", "SKIPDENIED", [1, 9, 5, 0, 59_500, 60_001, 4])]
#[case("9 60 3 1", "COST 4 SKIPDENIED", [0, 3, 0, -1, 500, 1_000, 3])]
fn the_reply_is_about_the_binding_rule(
    #[case] rules: &str,
    #[case] options: &str,
    #[case] expected: [i64; 7],
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW - SECOND / 2, NOW - 1, NOW]);
    let line = format!("SLIDEWIN.CHECK k {rules} {options} WITHINFO");
    let Reply::Array(reply) = redis.run(&line) else {
        panic!("not an array");
    };
    assert_eq!(reply[..7], expected.map(Reply::Int));
}

#[test]
fn every_rule_is_listed_in_the_order_given() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", ages(&[30, 10]));
    let list = |numbers: &[i64]| Reply::Array(numbers.iter().copied().map(Reply::Int).collect());
    let reply: Vec<Reply> =
        redis.run("SLIDEWIN.CHECK k 2 20.0005 5 60 3 0.5 COST 2 WITHINFO SKIPDENIED");
    assert_eq!(
        reply[8],
        Reply::Array(vec![
            list(&[2, 20_001, 1, 1, 10_001, 10_001]),
            list(&[5, 60_000, 2, 3, 0, 30_000]),
            list(&[3, 500, 0, 3, 0, 0]),
        ])
    );
}

/// A denied attempt that is recorded waits for itself: it may violate a rule that held before.
#[test]
fn a_recorded_denial_counts_for_every_rule() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", ages(&[30, 0]));
    let reply: Vec<Reply> = redis.run("SLIDEWIN.CHECK k 1 1 3 60 WITHINFO");
    let numbers = [0, 3, 0, 30_000, 30_000, 60_001, 3].map(Reply::Int);
    assert_eq!(reply[..7], numbers);
}

#[test]
fn eight_rules_are_accepted() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let reply: Vec<Reply> = redis.run("SLIDEWIN.CHECK k 9 1 9 2 9 3 9 4 9 5 9 6 9 7 9 8 WITHINFO");
    assert!(matches!(&reply[8], Reply::Array(rules) if rules.len() == 8));
}

/// A short window on a long log is counted, not walked: the shorter rule decides exactly.
#[test]
fn a_short_rule_on_a_long_log_is_exact() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", (0..3_000).map(|n| NOW - 30 * SECOND + n * 10_000));
    let in_a_second = 100;
    for (limit, answer) in [(in_a_second, 0), (in_a_second + 1, 1)] {
        let line = format!("SLIDEWIN.PEEK k {limit} 1.01 9000 60");
        assert_eq!(redis.int(&line), answer, "{limit}");
    }
}

/// The same around the rank from which on entries are looked up by a command, not reached by walking.
#[test]
fn a_short_rule_is_exact_on_both_sides_of_the_walk() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", (0..200).map(|n| NOW - n * 10_000));
    for live in 60..70 {
        let window = f64::from(live * 10_000 - 5_000) / 1e6;
        for (limit, answer) in [(live, 0), (live + 1, 1)] {
            let line = format!("SLIDEWIN.PEEK k {limit} {window:.6} 9000 60");
            assert_eq!(redis.int(&line), answer, "{limit} of {live}");
        }
    }
}
