//! Looking without consuming.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;

/// Case 44: a peek consumes nothing and creates nothing, however often.
#[test]
fn a_peek_changes_nothing() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..3 {
        let peek = redis.numbers("SLIDEWIN.PEEK k 3 60 WITHINFO");
        assert_eq!(peek, [1, 3, 3, 0, 0, 0, 0]);
    }
    assert_eq!(redis.int("EXISTS k"), 0);
    let check = redis.numbers("SLIDEWIN.CHECK k 3 60 WITHINFO");
    assert_eq!(check, [1, 3, 2, 0, 60_000, 60_000, 1]);
}

#[test]
fn a_peek_does_not_even_trim() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 61 * SECOND, NOW - SECOND]);
    let changes = redis.info("persistence", "rdb_changes_since_last_save");
    let peek = redis.numbers("SLIDEWIN.PEEK k 1 60 WITHINFO");
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
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for answer in answers {
        assert_eq!(redis.int(&format!("SLIDEWIN.PEEK k 3 60{cost}")), answer);
        redis.int("SLIDEWIN.CHECK k 3 60");
    }
}
