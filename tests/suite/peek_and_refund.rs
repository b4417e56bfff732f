//! Looking without consuming, and giving back.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;

/// Case 44: a peek consumes nothing and creates nothing, however often.
#[test]
fn a_peek_changes_nothing() {
    let server = Server::stopped();
    let mut redis = server.connect();
    for _ in 0..3 {
        let peek = redis.ints("SLIDEWIN.PEEK k 3 60 WITHINFO");
        assert_eq!(peek, [1, 3, 3, 0, 0, 0, 0]);
    }
    assert_eq!(redis.int("EXISTS k"), 0);
    let check = redis.ints("SLIDEWIN.CHECK k 3 60 WITHINFO");
    assert_eq!(check, [1, 3, 2, 0, 60_000, 60_000, 1]);
}

#[test]
fn a_peek_does_not_even_trim() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 61 * SECOND, NOW - SECOND]);
    let changes = redis.info("persistence", "rdb_changes_since_last_save");
    let peek = redis.ints("SLIDEWIN.PEEK k 1 60 WITHINFO");
    assert_eq!(peek, [0, 1, 0, 59_000, 59_000, 59_000, 1]);
    assert_eq!(redis.int("ZCARD k"), 2);
    assert_eq!(redis.int("PTTL k"), -1);
    assert_eq!(
        redis.info("persistence", "rdb_changes_since_last_save"),
        changes
    );
}

#[rstest]
#[case("", [1, 1, 1, 0])]
#[case(" COST 2", [1, 1, 0, 0])]
fn a_peek_answers_what_a_check_then_does(#[case] cost: &str, #[case] answers: [i64; 4]) {
    let server = Server::stopped();
    let mut redis = server.connect();
    for answer in answers {
        assert_eq!(redis.int(&format!("SLIDEWIN.PEEK k 3 60{cost}")), answer);
        redis.int("SLIDEWIN.CHECK k 3 60");
    }
}

#[test]
fn a_refund_takes_back_the_newest_entries() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 4, NOW - 3, NOW - 2, NOW - 1]);
    assert_eq!(redis.int("SLIDEWIN.REFUND k"), 1);
    assert_eq!(redis.entries("k"), [NOW - 4, NOW - 3, NOW - 2]);
    assert_eq!(redis.int("SLIDEWIN.REFUND k COUNT 2"), 2);
    assert_eq!(redis.entries("k"), [NOW - 4]);
}

#[test]
fn a_refund_gives_the_quota_back() {
    let server = Server::stopped();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 60 SKIPDENIED";
    assert_eq!(
        [redis.int(check), redis.int(check), redis.int(check)],
        [1, 1, 0]
    );
    assert_eq!(redis.int("SLIDEWIN.REFUND k"), 1);
    assert_eq!([redis.int(check), redis.int(check)], [1, 0]);
}

#[test]
fn a_refund_keeps_the_expiry() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 COST 2");
    server.clock().step(SECOND);
    redis.int("SLIDEWIN.REFUND k");
    assert_eq!(redis.int("PTTL k"), 59_001);
}

#[rstest]
#[case("SLIDEWIN.REFUND k", 1)]
#[case("SLIDEWIN.REFUND k COUNT 1", 1)]
#[case("SLIDEWIN.REFUND k count 1000", 1)]
fn a_log_emptied_by_a_refund_disappears(#[case] refund: &str, #[case] removed: i64) {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60");
    assert_eq!(redis.int(refund), removed);
    assert_eq!(redis.int("EXISTS k"), 0);
}

#[test]
fn a_refund_of_nothing_creates_nothing() {
    let server = Server::stopped();
    let mut redis = server.connect();
    assert_eq!(redis.int("SLIDEWIN.REFUND k COUNT 5"), 0);
    assert_eq!(redis.int("EXISTS k"), 0);
}

/// The largest refund, on a log of the large encoding.
#[test]
fn a_refund_of_a_thousand() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 5000 60 COST 1000");
    redis.int("SLIDEWIN.CHECK k 5000 60 COST 1000");
    assert_eq!(redis.int("SLIDEWIN.REFUND k COUNT 1000"), 1_000);
    let first_thousand: Vec<i64> = (0..1_000).map(|n| NOW + n).collect();
    assert_eq!(redis.entries("k"), first_thousand);
}
