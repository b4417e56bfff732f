//! Who is allowed, and when.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;

#[test]
fn calls_are_allowed_up_to_the_limit_and_denied_beyond() {
    let server = Server::stopped();
    let mut redis = server.connect();
    let answers: Vec<i64> = (0..4).map(|_| redis.int("SLIDEWIN.CHECK k 3 60")).collect();
    assert_eq!(answers, [1, 1, 1, 0]);
}

/// Case 17: limits around the boundary of the compact encoding too.
#[rstest]
fn exactly_limit_calls_are_allowed(#[values(1, 2, 3, 128, 129, 130)] limit: i64) {
    let server = Server::stopped();
    let mut redis = server.connect();
    let check = format!("SLIDEWIN.CHECK k {limit} 60 WITHINFO");
    for used in 1..=limit {
        let reply = redis.ints(&check);
        assert_eq!(reply[..3], [1, limit, limit - used]);
        assert_eq!(reply[6], used);
    }
    assert_eq!(redis.ints(&check)[..3], [0, limit, 0]);
}
