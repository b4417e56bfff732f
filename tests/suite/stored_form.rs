//! What stands in the key: operators and their scripts rely on it.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;

/// Cases 35 and 36: scores are whole microseconds that a double holds exactly, in order of calls.
#[test]
fn an_entry_is_the_time_of_its_call_as_score_and_member() {
    let mut server = Server::with_stopped_clock();
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
#[case(&[0, 1, 3, 4, 6], &[7, 8, 9])]
#[case(&[0, 1, 3, 4, 8], &[5, 6, 7])]
fn a_taken_microsecond_is_passed_over(#[case] taken: &[i64], #[case] stamps: &[i64]) {
    let server = Server::with_stopped_clock();
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
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", (0..100_000).map(|n| NOW + n));
    redis.int("SLIDEWIN.CHECK k 1000000 60");
    assert_eq!(redis.entries("k").last(), Some(&(NOW + 100_000)));
}

#[test]
fn a_cost_is_so_many_consecutive_entries() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 COST 3");
    assert_eq!(redis.entries("k"), [NOW, NOW + 1, NOW + 2]);
}

/// Case 16: removing the last entry removes the key, and one call may empty and refill it.
#[test]
fn an_emptied_log_is_no_key() {
    let server = Server::with_stopped_clock();
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
    let mut server = Server::with_stopped_clock();
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
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60 COST 1000"), 0);
    assert_eq!(redis.entries("k"), [NOW, NOW + 1, NOW + 2]);
}

/// Case 73: small logs stay in the compact encoding.
#[test]
fn a_small_log_is_compact() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 1000 60 COST 100");
    let compact = redis.run::<String>("OBJECT ENCODING k");
    assert!(compact == "listpack" || compact == "ziplist", "{compact}");
    assert!(redis.int("MEMORY USAGE k") < 100 * 25);
    redis.int("SLIDEWIN.CHECK k 1000 60 COST 29");
    assert_eq!(redis.run::<String>("OBJECT ENCODING k"), "skiplist");
    assert!(redis.int("MEMORY USAGE k SAMPLES 0") < 20_000);
}

/// `ZCARD`, `DEL`, `DUMP` and `RESTORE` do what they do for any sorted set.
#[test]
fn a_log_can_be_counted_copied_and_reset() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 2");
    assert_eq!(redis.int("ZCARD k"), 2);
    let dump: Vec<u8> = redis.run("DUMP k");
    redis.send::<()>(&[b"RESTORE", b"copy", b"60000", &dump]);
    assert_eq!(redis.int("SLIDEWIN.CHECK copy 3 60"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK copy 3 60"), 0);
    assert_eq!(redis.int("DEL k"), 1);
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 3 60 WITHINFO")[..3],
        [1, 3, 2]
    );
}
