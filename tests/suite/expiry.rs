//! When a key expires: no idle key stays, and none goes too early.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;
use std::time::Duration;

/// Case 10: in milliseconds, rounded up.
#[rstest]
#[case(0, "1", 1_000)]
#[case(1, "1", 1_001)]
#[case(999, "1", 1_001)]
#[case(0, "0.0015", 2)]
#[case(500, "0.0015", 2)]
fn the_key_expires_when_the_newest_entry_leaves(
    #[case] micros: i64,
    #[case] window: &str,
    #[case] expires_after_ms: i64,
) {
    let mut server = Server::with_stopped_clock();
    server.clock().step(micros);
    let mut redis = server.connect();
    redis.int(&format!("SLIDEWIN.CHECK k 9 {window}"));
    assert_eq!(redis.int("PTTL k"), expires_after_ms);
}

/// Case 37, and the promise that an idle key costs nothing: really waited for.
#[test]
fn an_idle_key_disappears() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK ten 9 10");
    assert!((9_900..=10_001).contains(&redis.int("PTTL ten")));
    redis.int("SLIDEWIN.CHECK k 9 0.8");
    assert_eq!(redis.int("EXISTS k"), 1);
    std::thread::sleep(Duration::from_millis(810));
    assert_eq!(redis.int("EXISTS k"), 0);
}

#[test]
fn a_longer_window_extends_the_expiry_and_a_shorter_one_leaves_it() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut expiry_after = |check: &str| {
        redis.int(check);
        redis.int("PTTL k")
    };
    assert_eq!(expiry_after("SLIDEWIN.CHECK k 9 10"), 10_000);
    assert_eq!(expiry_after("SLIDEWIN.CHECK k 9 60"), 60_001);
    assert_eq!(expiry_after("SLIDEWIN.CHECK k 9 10"), 60_001);
    assert_eq!(expiry_after("SLIDEWIN.CHECK k 9 10 9 120"), 120_001);
}

/// Case 96: nothing of the longer window is left to be remembered.
#[test]
fn a_shorter_window_that_empties_the_log_shortens_the_expiry() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60");
    server.clock().step(2 * SECOND);
    redis.int("SLIDEWIN.CHECK k 9 1");
    assert_eq!(redis.entries("k"), [NOW + 2 * SECOND]);
    assert_eq!(redis.int("PTTL k"), 1_000);
}

/// Case 21: a key that lost its expiry gets it back, whether allowed or denied.
#[test]
fn a_recorded_attempt_gives_a_key_its_expiry_back() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for answer in [1, 0] {
        redis.int("SLIDEWIN.CHECK k 2 60");
        redis.int("PERSIST k");
        assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), answer);
        assert!(redis.int("PTTL k") > 0);
    }
}

/// Case 21: no key without an expiry, whatever the answers.
#[test]
fn every_key_has_an_expiry() {
    let server = Server::start();
    let mut redis = server.connect();
    let checks: Vec<String> = (0..20_000)
        .map(|n| format!("SLIDEWIN.CHECK k{} {} 60", n % 10_000, n % 3))
        .collect();
    let answers = redis.pipeline(&checks);
    assert!(answers.contains(&0) && answers.contains(&1));
    let keys = redis.int("DBSIZE");
    let keyspace = redis.info("keyspace", "db0");
    assert!(
        keyspace.starts_with(&format!("keys={keys},expires={keys},")),
        "{keyspace}"
    );
}

/// Case 24: a denied attempt under a longer window keeps the log for that window.
#[test]
fn a_denied_attempt_under_a_longer_window_extends_the_expiry() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 2"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 2"), 1);
    server.clock().step(SECOND + SECOND / 2);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), 0);
    assert_eq!(redis.int("PTTL k"), 60_000);
    server.clock().step(SECOND + SECOND / 2);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), 0);
}

/// Case 64: whatever times a log holds, no call leaves a key that never expires.
#[rstest]
fn no_call_leaves_an_immortal_key(
    #[values(-60_001_000, -60_000_001, -60_000_000, -59_999_999, -1, 0, 1, 59_000_000, 61_000_000)]
    newest: i64,
    #[values(
        "SLIDEWIN.CHECK k 1 60",
        "SLIDEWIN.CHECK k 9 60",
        "SLIDEWIN.CHECK k 9 60 COST 9"
    )]
    check: &str,
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 70 * SECOND, NOW + newest]);
    redis.int(check);
    assert_ne!(redis.int("PTTL k"), -1);
}
