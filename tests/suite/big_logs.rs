//! Logs with more to remove than one call may.

use crate::support::{Server, Settings, NOW, SECOND};

const MINUTE: i64 = 60 * SECOND;

/// Cases 27 and 28: decisions are exact while what has run out goes in slices.
#[test]
fn an_old_log_is_trimmed_in_slices() {
    let server = Settings::new()
        .stopped_at(NOW)
        .options("--appendonly yes --appendfsync always")
        .start();
    let mut redis = server.connect();
    let old = (0..2_500).map(|n| NOW - 2 * MINUTE + n);
    redis.seed("k", old.chain([NOW - 2, NOW - 1]));

    let peek = "SLIDEWIN.PEEK k 3 60 WITHINFO";
    assert_eq!(redis.numbers(peek), [1, 3, 1, 0, 60_000, 60_000, 2]);
    let check = "SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.numbers(check), [1, 3, 0, 0, 60_000, 60_000, 3]);
    assert_eq!(redis.int("ZCARD k"), 2_500 + 3 - 1_001);
    assert_eq!(redis.numbers(check), [0, 3, 0, 60_000, 60_000, 60_000, 3]);
    assert_eq!(redis.int("ZCARD k"), 499 + 3);
    assert_eq!(redis.numbers(peek), [0, 3, 0, 60_000, 60_000, 60_000, 3]);
    assert_eq!(redis.numbers(check)[..3], [0, 3, 0]);
    assert_eq!(redis.entries("k"), [NOW - 2, NOW - 1, NOW]);

    let removals = server.append_only_file();
    let removals = removals.iter().filter(|line| line.starts_with("ZREMRANGE"));
    let expected = ["0 1000", "0 999", "0 498"].map(|ranks| format!("ZREMRANGEBYRANK k {ranks}"));
    assert!(removals.eq(expected.iter()));
}

/// Case 28: a log that has run out as a whole goes at once, however large.
#[test]
fn a_log_that_has_run_out_goes_at_once() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", (0..50_000).map(|n| NOW - 2 * MINUTE + n));
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 3 60 WITHINFO")[..3],
        [1, 3, 2]
    );
    assert_eq!(redis.entries("k"), [NOW]);
}

/// The limit lowered on a full log: the wait is exact, by rank, and the surplus goes in slices.
#[test]
fn a_lowered_limit_is_exact_at_once() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let stamps = (0..5_000).map(|n| NOW - 50 * SECOND + n * 1_000);
    redis.seed("k", stamps.clone());
    let tenth_newest = stamps.clone().nth_back(9).unwrap();
    let wait = (tenth_newest + MINUTE - NOW) / 1_000;
    let skipped = redis.numbers("SLIDEWIN.CHECK k 10 60 SKIPDENIED WITHINFO");
    assert_eq!(skipped, [0, 10, 0, wait, wait, wait + 9, 5_000]);
    assert_eq!(redis.int("ZCARD k"), 5_000, "nothing has run out");

    let recorded = redis.numbers("SLIDEWIN.CHECK k 10 60 WITHINFO");
    assert_eq!(recorded, [0, 10, 0, wait + 1, wait + 1, 60_000, 4_000]);
    for left in [3_000, 2_000, 1_000, 10, 10] {
        server.clock().step(10);
        redis.int("SLIDEWIN.CHECK k 10 60");
        assert_eq!(redis.int("ZCARD k"), left);
    }
}

/// The most that one call may add and remove.
#[test]
fn the_largest_cost_on_a_full_log() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", (0..5_000).map(|n| NOW - SECOND + n));
    let denied = redis.numbers("SLIDEWIN.CHECK k 5000 60 COST 1000 WITHINFO");
    assert_eq!(denied[..3], [0, 5_000, 0]);
    assert_eq!(redis.int("ZCARD k"), 5_000);
    let entries = redis.entries("k");
    assert_eq!(entries[0], NOW - SECOND + 1_000);
    assert_eq!(entries[4_999], NOW + 999);
}
