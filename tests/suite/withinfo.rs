//! The numbers of WITHINFO, on histories chosen by hand.

use crate::support::{Reply, Server, NOW, SECOND};
use rstest::rstest;

/// Ages in seconds as entries of a log at `NOW`.
fn ages(seconds: &[i64]) -> Vec<i64> {
    seconds.iter().map(|age| NOW - age * SECOND).collect()
}

#[test]
fn an_empty_log_has_all_of_its_limit() {
    let server = Server::stopped();
    let mut redis = server.connect();
    let peek = redis.ints("SLIDEWIN.PEEK k 3 60 WITHINFO");
    assert_eq!(peek, [1, 3, 3, 0, 0, 0, 0]);
}

#[test]
fn each_call_counts_down() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    let mut check = || {
        let reply = redis.ints("SLIDEWIN.CHECK k 3 60 WITHINFO");
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
    let mut server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", ages(&[50, 40, 30, 20, 10]));
    let check = "SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.ints(check), [0, 3, 0, 30_000, 30_000, 50_000, 5]);
    server.clock().step(30 * SECOND);
    assert_eq!(redis.ints(check)[..3], [1, 3, 0]);
}

/// Case 42: the wait is the oldest entry's rest, not a whole window.
#[test]
fn the_wait_is_not_the_keys_time_to_live() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", ages(&[58, 3, 2, 1]));
    let check = "SLIDEWIN.CHECK k 4 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.ints(check), [0, 4, 0, 2_000, 2_000, 59_000, 4]);
}

/// Case 3: an entry that has run out has no say.
#[test]
fn the_wait_ignores_what_has_run_out() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", ages(&[120, 20, 10]));
    let check = "SLIDEWIN.CHECK k 2 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.ints(check), [0, 2, 0, 40_000, 40_000, 50_000, 2]);
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
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 60 * SECOND + micros_left]);
    let check = "SLIDEWIN.CHECK k 1 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.ints(check), [0, 1, 0, ms, ms, ms, 1]);
}

/// Case 22: a denied cost takes nothing, and what is left can still be had.
#[test]
fn a_cost_that_does_not_fit_takes_nothing() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 10 60 COST 8");
    let expiry = redis.expires_at("k");
    let denied = redis.ints("SLIDEWIN.CHECK k 10 60 COST 5 SKIPDENIED WITHINFO");
    assert_eq!(denied, [0, 10, 2, 60_001, 60_000, 60_001, 8]);
    assert_eq!(redis.int("ZCARD k"), 8);
    assert_eq!(redis.expires_at("k"), expiry);
    let allowed = redis.ints("SLIDEWIN.CHECK k 10 60 COST 2 SKIPDENIED WITHINFO");
    assert_eq!(allowed[..3], [1, 10, 0]);
}

/// Case 23: each call brings its own limit; raising it makes room, lowering it is exact.
#[test]
fn a_changed_limit_holds_at_once() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    let mut check = |limit: i64| {
        let line = format!("SLIDEWIN.CHECK k {limit} 60 SKIPDENIED WITHINFO");
        let reply = redis.ints(&line);
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
    let server = Server::stopped();
    let mut redis = server.connect();
    for _ in 0..2 {
        let never = redis.ints("SLIDEWIN.CHECK k 10 60 COST 11 SKIPDENIED WITHINFO");
        assert_eq!(never, [0, 10, 10, -1, 0, 0, 0]);
        let never = redis.ints("SLIDEWIN.CHECK k 0 60 SKIPDENIED WITHINFO");
        assert_eq!(never, [0, 0, 0, -1, -1, 0, 0]);
    }
    assert_eq!(redis.int("EXISTS k"), 0);
}

/// Case 49: a call trims by its own longest window, so a short one forgets for a long one; no number
/// turns negative, and the key lives on.
#[test]
fn windows_of_different_length_share_a_key() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    for _ in 0..3 {
        redis.int("SLIDEWIN.CHECK k 100 60");
    }
    server.clock().step(2 * SECOND);
    assert_eq!(redis.ints("SLIDEWIN.CHECK k 5 1 WITHINFO")[..3], [1, 5, 4]);
    assert_eq!(
        redis.ints("SLIDEWIN.CHECK k 100 60 WITHINFO")[..3],
        [1, 100, 98]
    );
    assert!(redis.int("PTTL k") >= 58_000);
}

#[test]
fn several_rules_hold_together_on_one_log() {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 1 3 60 SKIPDENIED";
    assert_eq!(
        [redis.int(check), redis.int(check), redis.int(check)],
        [1, 1, 0]
    );
    server.clock().step(SECOND + 1);
    assert_eq!([redis.int(check), redis.int(check)], [1, 0]);
    assert_eq!(redis.int("ZCARD k"), 3);
}

/// The binding rule of a denial is the one with the longest wait, else the one with the fewest
/// remaining; the first of equal ones.
#[rstest]
#[case("2 1 3 60", "SKIPDENIED", [0, 3, 0, 59_500, 59_500, 60_000, 3])]
#[case("3 60 2 1", "SKIPDENIED", [0, 3, 0, 59_500, 59_500, 60_000, 3])]
#[case("9 1 8 60", "SKIPDENIED", [1, 8, 4, 0, 59_500, 60_001, 4])]
#[case("9 60 9 61", "SKIPDENIED", [1, 9, 5, 0, 59_500, 60_001, 4])]
#[case("9 60 3 1", "COST 4 SKIPDENIED", [0, 3, 0, -1, 500, 1_000, 3])]
fn the_reply_is_about_the_binding_rule(
    #[case] rules: &str,
    #[case] options: &str,
    #[case] expected: [i64; 7],
) {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", [NOW - SECOND / 2, NOW - 1, NOW]);
    let line = format!("SLIDEWIN.CHECK k {rules} {options} WITHINFO");
    let Reply::Array(reply) = redis.run(&line) else {
        panic!("not an array");
    };
    assert_eq!(reply[..7], expected.map(Reply::Int));
}

#[test]
fn every_rule_is_listed_in_the_order_given() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", ages(&[30, 10]));
    let list = |numbers: &[i64]| Reply::Array(numbers.iter().copied().map(Reply::Int).collect());
    let reply: Vec<Reply> =
        redis.run("SLIDEWIN.CHECK k 2 20.0005 5 60 3 0.5 COST 2 WITHINFO SKIPDENIED");
    assert_eq!(
        reply[7],
        Reply::Array(vec![
            list(&[2, 20_001, 1, 1, 10_001, 10_001]),
            list(&[5, 60_000, 2, 3, 0, 30_000]),
            list(&[3, 500, 0, 3, 0, 0]),
        ])
    );
}

/// A denied attempt that is recorded waits for itself: it may violate a rule that held before.
#[test]
fn a_recorded_denial_counts_for_every_rule() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", ages(&[30, 0]));
    let reply: Vec<Reply> = redis.run("SLIDEWIN.CHECK k 1 1 3 60 WITHINFO");
    let numbers = [0, 3, 0, 30_000, 30_000, 60_001, 3].map(Reply::Int);
    assert_eq!(reply[..7], numbers);
}

/// The same integers in RESP2 and RESP3, never booleans, doubles or maps.
#[test]
fn replies_are_the_same_in_resp3() {
    let server = Server::stopped();
    for mut redis in [server.connect(), server.connect_resp3()] {
        redis.run::<()>("FLUSHALL");
        assert_eq!(redis.run::<Reply>("SLIDEWIN.CHECK k 3 60"), Reply::Int(1));
        let numbers = [1, 3, 1, 0, 60_000, 60_001, 2].map(Reply::Int).to_vec();
        let reply: Reply = redis.run("SLIDEWIN.CHECK k 3 60 WITHINFO");
        assert_eq!(reply, Reply::Array(numbers));
        assert_eq!(redis.run::<Reply>("SLIDEWIN.REFUND k"), Reply::Int(1));
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
    let server = Server::stopped();
    let mut redis = server.connect();
    let reply = redis.ints(&format!("SLIDEWIN.CHECK k 5 60 {options}"));
    assert_eq!(reply, [1, 5, 3, 0, 60_000, 60_001, 2]);
}

#[test]
fn eight_rules_are_accepted() {
    let server = Server::stopped();
    let mut redis = server.connect();
    let reply: Vec<Reply> = redis.run("SLIDEWIN.CHECK k 9 1 9 2 9 3 9 4 9 5 9 6 9 7 9 8 WITHINFO");
    assert!(matches!(&reply[7], Reply::Array(rules) if rules.len() == 8));
}
