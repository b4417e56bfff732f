//! What a log holds, for people who look into a case.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;

fn entries(redis: &mut crate::support::Client, line: &str) -> Vec<(i64, i64)> {
    redis.run(line)
}

#[rstest]
#[case("", &[(NOW + 2 * SECOND, 1), (NOW + SECOND + 1, 1), (NOW + SECOND, 1), (NOW, 1)])]
#[case(" PACKED", &[(NOW + 2 * SECOND, 1), (NOW + SECOND, 2), (NOW, 1)])]
fn entries_are_shown_newest_first(#[case] packed: &str, #[case] expected: &[(i64, i64)]) {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for cost in [1, 2, 1] {
        redis.int(&format!("SLIDEWIN.CHECK k 9 60 COST {cost}{packed}"));
        server.clock().step(SECOND);
    }
    assert_eq!(entries(&mut redis, "SLIDEWIN.ENTRIES k"), expected);
    assert_eq!(
        entries(&mut redis, "SLIDEWIN.ENTRIES k COUNT 2"),
        expected[..2]
    );
    assert_eq!(
        entries(&mut redis, "SLIDEWIN.ENTRIES k count 1000000"),
        expected
    );
}

#[test]
fn a_hundred_are_shown_unless_counted() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.pipeline(&vec!["SLIDEWIN.CHECK k 999 60 PACKED".to_owned(); 150]);
    let shown = entries(&mut redis, "SLIDEWIN.ENTRIES k");
    assert_eq!((shown.len(), shown[0]), (100, (NOW + 149, 1)));
}

#[test]
fn calls_that_were_given_back_are_left_out() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..3 {
        redis.int("SLIDEWIN.CHECK k 99 60 COST 5 PACKED");
    }
    redis.int(&format!("SLIDEWIN.REFUND k {} COST 5", NOW + 1));
    redis.int(&format!("SLIDEWIN.REFUND k {} COST 5 KEEP 2", NOW + 2));
    assert_eq!(
        entries(&mut redis, "SLIDEWIN.ENTRIES k"),
        [(NOW + 2, 2), (NOW, 5)]
    );
}

#[test]
fn an_absent_key_has_no_entries() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(entries(&mut redis, "SLIDEWIN.ENTRIES k"), []);
    assert_eq!(redis.int("EXISTS k"), 0);
}
