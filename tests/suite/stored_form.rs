//! What stands in the key: operators and their scripts rely on it.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;
use std::time::Duration;

/// Cases 35 and 36: scores are whole microseconds that a double holds exactly, in order of calls.
#[test]
fn an_entry_is_the_time_of_its_call_as_score_and_member() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    for micros in [999, 1, 99_999, 1] {
        redis.int("SLIDEWIN.CHECK k 9 60");
        server.clock().step(micros);
    }
    let stamps = [NOW, NOW + 999, NOW + 1_000, NOW + 100_999];
    assert_eq!(redis.entries("k"), stamps);
    let pairs: Vec<String> = redis.run("ZRANGE k 0 0 WITHSCORES");
    assert_eq!(pairs, ["1700000000000000", "1700000000000000"]);
}

#[test]
fn the_stamp_is_the_servers_own_time() {
    let server = Server::start();
    let mut redis = server.connect();
    let before = redis.time();
    redis.int("SLIDEWIN.CHECK k 9 60");
    let after = redis.time();
    let entries = redis.entries("k");
    assert!(matches!(entries[..], [stamp] if before <= stamp && stamp <= after));
}

/// A taken stamp moves on to the next free microsecond, past runs of any length.
#[rstest]
#[case(&[0], &[1])]
#[case(&[0, 1, 2], &[3])]
#[case(&[0, 2], &[1])]
#[case(&[0, 1, 3], &[2])]
#[case(&[1], &[0])]
#[case(&[0, 1, 2, 3, 4, 5, 6, 7, 9], &[8])]
#[case(&[0, 1, 3, 4, 6], &[2, 5, 7])]
fn a_taken_microsecond_is_passed_over(#[case] taken: &[i64], #[case] stamps: &[i64]) {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", taken.iter().map(|offset| NOW + offset));
    redis.int(&format!("SLIDEWIN.CHECK k 99 60 COST {}", stamps.len()));
    let mut expected: Vec<i64> = taken
        .iter()
        .chain(stamps)
        .map(|offset| NOW + offset)
        .collect();
    expected.sort_unstable();
    assert_eq!(redis.entries("k"), expected);
}

#[test]
fn a_long_run_of_taken_microseconds_is_passed_over() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", (0..100_000).map(|n| NOW + n));
    redis.int("SLIDEWIN.CHECK k 1000000 60");
    assert_eq!(redis.entries("k").last(), Some(&(NOW + 100_000)));
}

#[test]
fn a_cost_is_so_many_consecutive_entries() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 COST 3");
    assert_eq!(redis.entries("k"), [NOW, NOW + 1, NOW + 2]);
}

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
    let mut server = Server::stopped();
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
    let server = Server::stopped();
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

/// A log replaced as a whole keeps the expiry that a longer window gave it.
#[test]
fn a_shorter_window_that_empties_the_log_leaves_the_expiry() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60");
    server.clock().step(2 * SECOND);
    redis.int("SLIDEWIN.CHECK k 9 1");
    assert_eq!(redis.entries("k"), [NOW + 2 * SECOND]);
    assert_eq!(redis.int("PTTL k"), 58_000);
}

/// Case 21: a key that lost its expiry gets it back, whether allowed or denied.
#[test]
fn a_recorded_attempt_gives_a_key_its_expiry_back() {
    let server = Server::stopped();
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
    let mut server = Server::stopped();
    let mut redis = server.connect();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 2"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 2"), 1);
    server.clock().step(SECOND + SECOND / 2);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), 0);
    assert_eq!(redis.int("PTTL k"), 60_000);
    server.clock().step(SECOND + SECOND / 2);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), 0);
}

/// Case 16: removing the last entry removes the key, and one call may empty and refill it.
#[test]
fn an_emptied_log_is_no_key() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", (0..3).map(|n| NOW - 2 * SECOND + n));
    assert_eq!(redis.int("SLIDEWIN.CHECK k 0 1"), 0);
    assert_eq!(redis.int("EXISTS k"), 0);
    assert_eq!(redis.int("DBSIZE"), 0);

    redis.seed("k", [NOW - 2 * SECOND]);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 1"), 1);
    assert_eq!(redis.entries("k"), [NOW]);
    assert_eq!(redis.int("PTTL k"), 1_000);
}

/// Denied attempts are recorded, but only the newest `limit` entries are kept.
#[test]
fn a_flood_of_denied_attempts_does_not_grow_the_log() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    for _ in 0..10 {
        redis.int("SLIDEWIN.CHECK k 3 60");
        server.clock().step(SECOND);
    }
    let newest = [7, 8, 9].map(|second| NOW + second * SECOND);
    assert_eq!(redis.entries("k"), newest);
}

#[test]
fn a_cost_beyond_the_limit_adds_at_most_the_limit() {
    let server = Server::stopped();
    let mut redis = server.connect();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60 COST 1000"), 0);
    assert_eq!(redis.entries("k"), [NOW, NOW + 1, NOW + 2]);
}

/// Case 73: small logs stay in the compact encoding.
#[test]
fn a_small_log_is_compact() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 1000 60 COST 100");
    let compact = redis.run::<String>("OBJECT ENCODING k");
    assert!(compact == "listpack" || compact == "ziplist", "{compact}");
    assert!(redis.int("MEMORY USAGE k") < 100 * 25);
    redis.int("SLIDEWIN.CHECK k 1000 60 COST 29");
    assert_eq!(redis.run::<String>("OBJECT ENCODING k"), "skiplist");
    assert!(redis.int("MEMORY USAGE k") < 20_000);
}

/// `ZCARD`, `DEL`, `DUMP` and `RESTORE` do what they do for any sorted set.
#[test]
fn a_log_can_be_counted_copied_and_reset() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 2");
    assert_eq!(redis.int("ZCARD k"), 2);
    let dump: Vec<u8> = redis.run("DUMP k");
    redis.send::<()>(&[b"RESTORE", b"copy", b"60000", &dump]);
    assert_eq!(redis.int("SLIDEWIN.CHECK copy 3 60"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK copy 3 60"), 0);
    assert_eq!(redis.int("DEL k"), 1);
    assert_eq!(redis.ints("SLIDEWIN.CHECK k 3 60 WITHINFO")[..3], [1, 3, 2]);
}
