//! The numbers of WITHINFO, on histories chosen by hand.

use crate::support::{ages, Reply, Server, NOW, SECOND};
use rstest::rstest;

#[test]
fn an_empty_log_has_all_of_its_limit() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let peek = redis.numbers("SLIDEWIN.PEEK k 3 60 WITHINFO");
    assert_eq!(peek, [1, 3, 3, 0, 0, 0, 0]);
}

#[test]
fn each_call_counts_down() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut check = || {
        let reply = redis.numbers("SLIDEWIN.CHECK k 3 60 WITHINFO");
        server.clock().step(10 * SECOND);
        reply
    };
    assert_eq!(check(), [1, 3, 2, 0, 60_000, 60_000, 1]);
    assert_eq!(check(), [1, 3, 1, 0, 50_000, 60_000, 2]);
    assert_eq!(check(), [1, 3, 0, 0, 40_000, 60_000, 3]);
    assert_eq!(
        check(),
        [0, 3, 0, 40_000, 40_000, 60_000, 3],
        "the first one made room"
    );
}

/// Case 12: after the limit was lowered, the wait is not for the oldest entry.
#[test]
fn the_wait_is_for_the_entry_that_makes_room() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", ages(&[50, 40, 30, 20, 10]));
    let check = "SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.numbers(check), [0, 3, 0, 30_000, 30_000, 50_000, 5]);
    server.clock().step(30 * SECOND);
    assert_eq!(redis.numbers(check)[..3], [1, 3, 0]);
}

/// Case 42: the wait is the oldest entry's rest, not a whole window.
#[test]
fn the_wait_is_not_the_keys_time_to_live() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", ages(&[58, 3, 2, 1]));
    let check = "SLIDEWIN.CHECK k 4 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.numbers(check), [0, 4, 0, 2_000, 2_000, 59_000, 4]);
}

/// Case 3: an entry that has run out has no say.
#[test]
fn the_wait_ignores_what_has_run_out() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", ages(&[120, 20, 10]));
    let check = "SLIDEWIN.CHECK k 2 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.numbers(check), [0, 2, 0, 40_000, 40_000, 50_000, 2]);
}

/// Case 71: milliseconds, rounded up, whole ones as they are.
#[rstest]
#[case(1, 1)]
#[case(999, 1)]
#[case(1_000, 1)]
#[case(1_001, 2)]
#[case(2 * SECOND, 2_000)]
#[case(2 * SECOND + 1, 2_001)]
fn waits_are_rounded_up(#[case] micros_left: i64, #[case] ms: i64) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 60 * SECOND + micros_left]);
    let check = "SLIDEWIN.CHECK k 1 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.numbers(check), [0, 1, 0, ms, ms, ms, 1]);
}

/// Case 22: a denied cost takes nothing, and what is left can still be had.
#[test]
fn a_cost_that_does_not_fit_takes_nothing() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 10 60 COST 8");
    let expiry = redis.expires_at("k");
    let denied = redis.numbers("SLIDEWIN.CHECK k 10 60 COST 5 SKIPDENIED WITHINFO");
    assert_eq!(denied, [0, 10, 2, 60_001, 60_000, 60_001, 8]);
    assert_eq!(redis.int("ZCARD k"), 8);
    assert_eq!(redis.expires_at("k"), expiry);
    let allowed = redis.numbers("SLIDEWIN.CHECK k 10 60 COST 2 SKIPDENIED WITHINFO");
    assert_eq!(allowed[..3], [1, 10, 0]);
}

/// Case 23: each call brings its own limit; raising it makes room, lowering it is exact.
#[test]
fn a_changed_limit_holds_at_once() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut check = |limit: i64| {
        let line = format!("SLIDEWIN.CHECK k {limit} 60 SKIPDENIED WITHINFO");
        let reply = redis.numbers(&line);
        server.clock().step(SECOND);
        reply
    };
    assert_eq!(check(3)[..3], [1, 3, 2]);
    assert_eq!(check(3)[..3], [1, 3, 1]);
    assert_eq!(check(3)[..3], [1, 3, 0]);
    assert_eq!(check(3)[..3], [0, 3, 0]);
    assert_eq!(check(5)[..3], [1, 5, 1]);
    assert_eq!(check(5)[..3], [1, 5, 0]);
    assert_eq!(check(5)[..3], [0, 5, 0]);
    let until_the_fourth_of_five_leaves = 60_000 + 4_000 - 7_000;
    assert_eq!(check(2)[..4], [0, 2, 0, until_the_fourth_of_five_leaves]);
}

/// Case 43: a cost above the limit never fits, and says so each time in the same words.
#[test]
fn never_is_minus_one() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..2 {
        let never = redis.numbers("SLIDEWIN.CHECK k 10 60 COST 11 SKIPDENIED WITHINFO");
        assert_eq!(never, [0, 10, 10, -1, 0, 0, 0]);
        let never = redis.numbers("SLIDEWIN.CHECK k 0 60 SKIPDENIED WITHINFO");
        assert_eq!(never, [0, 0, 0, -1, -1, 0, 0]);
    }
    assert_eq!(redis.int("EXISTS k"), 0);
}

/// The same integers in RESP2 and RESP3, never booleans, doubles or maps.
#[test]
fn replies_are_the_same_in_resp3() {
    let server = Server::with_stopped_clock();
    for mut redis in [server.connect(), server.connect_resp3()] {
        redis.run::<()>("FLUSHALL");
        assert_eq!(redis.run::<Reply>("SLIDEWIN.CHECK k 3 60"), Reply::Int(1));
        let numbers = [1, 3, 1, 0, 60_000, 60_001, 2, NOW + 1];
        let numbers = numbers.map(Reply::Int).to_vec();
        let reply: Reply = redis.run("SLIDEWIN.CHECK k 3 60 WITHINFO");
        assert_eq!(reply, Reply::Array(numbers));
        let refund = format!("SLIDEWIN.REFUND k {NOW}");
        assert_eq!(redis.run::<Reply>(&refund), Reply::Int(1));
    }
}

/// Options come in any order and case.
#[rstest]
fn options_in_any_order_and_case(
    #[values(
        "COST 2 SKIPDENIED WITHINFO",
        "withinfo cost 2 skipdenied",
        "SkipDenied WithInfo Cost 2"
    )]
    options: &str,
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let reply = redis.numbers(&format!("SLIDEWIN.CHECK k 5 60 {options}"));
    assert_eq!(reply, [1, 5, 3, 0, 60_000, 60_001, 2]);
}
