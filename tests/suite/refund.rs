//! Giving back what a call has recorded, by its id.

use crate::support::{Client, Server, NOW, SECOND};
use rstest::rstest;

const CHECK: &str = "SLIDEWIN.CHECK k 9 60 SKIPDENIED WITHINFO";

fn refund(redis: &mut Client, id: i64, options: &str) -> i64 {
    redis.int(format!("SLIDEWIN.REFUND k {id} {options}").trim_end())
}

#[test]
fn an_allowed_call_tells_its_id_and_no_other_does() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 3 60 COST 2 WITHINFO";
    assert_eq!(redis.with_info(check).id, NOW);
    server.clock().step(1);
    assert_eq!(
        redis.with_info("SLIDEWIN.CHECK k 3 60 WITHINFO").id,
        NOW + 2
    );
    assert_eq!(redis.with_info(check).id, 0, "denied");
    assert_eq!(redis.with_info("SLIDEWIN.PEEK k 9 60 WITHINFO").id, 0);
}

#[test]
fn a_refund_takes_back_the_calls_own_units() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let ids: Vec<i64> = (0..3)
        .map(|_| {
            let id = redis.with_info(CHECK).id;
            server.clock().step(SECOND);
            id
        })
        .collect();
    assert_eq!(refund(&mut redis, ids[1], ""), 1);
    assert_eq!(redis.entries("k"), [ids[0], ids[2]]);
}

/// What is kept is said, not what is taken.
#[test]
fn a_repeated_refund_takes_nothing() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let id = redis.with_info("SLIDEWIN.CHECK k 9 60 COST 5 WITHINFO").id;
    for (options, taken) in [
        ("COST 5 KEEP 5", 0),
        ("COST 5 KEEP 3", 2),
        ("COST 5 KEEP 3", 0),
        ("KEEP 4 COST 5", 0),
        ("COST 5 KEEP 1", 2),
        ("cost 5", 1),
        ("COST 5", 0),
    ] {
        assert_eq!(refund(&mut redis, id, options), taken, "{options}");
    }
    assert_eq!(redis.int("EXISTS k"), 0);
}

#[test]
fn a_refund_gives_the_quota_back() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 60 SKIPDENIED";
    let answers = [redis.int(check), redis.int(check), redis.int(check)];
    assert_eq!(answers, [1, 1, 0]);
    assert_eq!(refund(&mut redis, NOW, ""), 1);
    assert_eq!([redis.int(check), redis.int(check)], [1, 0]);
}

/// Case 95: the first call's failure is learnt when the second one holds its second's only unit.
#[test]
fn a_refund_takes_nothing_from_a_later_call() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 1 1 1000 3600 SKIPDENIED WITHINFO";
    let first = redis.with_info(check);
    server.clock().step(SECOND + SECOND / 20);
    let second = redis.with_info(check);
    assert_eq!([first.numbers[0], second.numbers[0]], [1, 1]);
    assert_eq!(refund(&mut redis, first.id, ""), 1);
    assert_eq!(redis.with_info(check).numbers[0], 0);
    assert_eq!(refund(&mut redis, first.id, ""), 0);
    assert_eq!(redis.with_info(check).numbers[0], 0);
}

#[test]
fn a_refund_keeps_the_expiry() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 COST 2");
    server.clock().step(SECOND);
    assert_eq!(refund(&mut redis, NOW + 1, ""), 1);
    assert_eq!(redis.int("PTTL k"), 59_001);
}

#[rstest]
#[case("", 1)]
#[case("COST 1", 1)]
#[case("cost 1000", 1)]
fn a_log_emptied_by_a_refund_disappears(#[case] options: &str, #[case] taken: i64) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60");
    assert_eq!(refund(&mut redis, NOW, options), taken);
    assert_eq!(redis.int("EXISTS k"), 0);
}

#[rstest]
fn a_refund_of_nothing_changes_nothing(
    #[values(1, 9_007_199_254_740_992, i64::MAX)] id: i64,
    #[values("", "COST 1000")] options: &str,
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(refund(&mut redis, id, options), 0);
    assert_eq!(redis.int("EXISTS k"), 0);
    redis.int("SLIDEWIN.CHECK k 9 60");
    assert_eq!(refund(&mut redis, id, options), 0);
    assert_eq!(redis.entries("k"), [NOW]);
}

/// The largest refund, on a log of the large encoding.
#[test]
fn a_refund_of_a_thousand() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 5000 60 COST 1000");
    redis.int("SLIDEWIN.CHECK k 5000 60 COST 1000");
    assert_eq!(refund(&mut redis, NOW, "COST 1000"), 1_000);
    let second_thousand: Vec<i64> = (1_000..2_000).map(|n| NOW + n).collect();
    assert_eq!(redis.entries("k"), second_thousand);
}
