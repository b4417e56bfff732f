//! Clocks that are wrong: steps under a running server, and a replica that takes over with its own.

use crate::properties::check;
use crate::support::{wait_until, Oracle, Server, Settings, NOW, SECOND};
use proptest::collection::vec;
use rstest::rstest;

const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

/// Case 33: entries run out early, and nothing else.
#[test]
fn a_clock_set_forward_lets_entries_run_out() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    redis.run::<()>("PERSIST k");
    server.clock().step(HOUR);
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 3 60 WITHINFO"),
        [1, 3, 2, 0, 60_000, 60_000, 1]
    );
    assert_eq!(redis.entries("k"), [NOW + HOUR]);
}

/// What docs/migrating.md shows beside a fixed window, whose count begins anew at its end.
#[test]
fn no_second_limit_passes_where_a_fixed_window_ends() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut passed = Vec::new();
    // Redis still has a key in the very millisecond in which it expires.
    for (step, calls) in [(0, 1), (59 * SECOND, 9), (SECOND + 1_000, 10)] {
        server.clock().step(step);
        let fixed = (0..calls).filter(|_| {
            redis.run::<redis::Value>("SET fixed 0 EX 60 NX");
            redis.int("INCR fixed") <= 10
        });
        let fixed = fixed.count();
        let call = |_: &i32| redis.int("SLIDEWIN.CHECK k 10 60 SKIPDENIED") == 1;
        passed.push((fixed, (0..calls).filter(call).count()));
    }
    assert_eq!(passed, [(1, 1), (9, 9), (10, 1)]);
}

/// Case 33: entries from the future count until the clock has passed them, and none is overwritten.
#[rstest]
#[case(5 * SECOND)]
#[case(MINUTE - 1_000)]
fn a_clock_set_back_denies_until_it_has_caught_up(#[case] back: i64) {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    server.clock().step(-back);
    let wait = (MINUTE + back) / 1_000;
    let denied = redis.numbers("SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO");
    assert_eq!(denied[..4], [0, 3, 0, wait]);
    assert_eq!(redis.int("ZCARD k"), 3);
    assert_eq!(redis.int("PTTL k"), wait + 1);
    server.clock().step(wait * 1_000 - 1_000);
    assert_eq!(redis.int("SLIDEWIN.PEEK k 3 60"), 0);
    server.clock().step(1_000);
    assert_eq!(redis.int("SLIDEWIN.PEEK k 3 60"), 1);
}

/// A clock that was an hour ahead leaves nobody blocked for an hour.
#[test]
fn a_clock_set_back_by_more_than_a_window_blocks_nobody() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60 SKIPDENIED"), 0);
    server.clock().step(-HOUR);
    let reply = redis.numbers("SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO");
    assert_eq!(reply, [1, 3, 2, 0, 60_000, 60_000, 1]);
    assert_eq!(redis.entries("k"), [NOW - HOUR]);
}

/// Case 14: what is further ahead than any honest entry goes when a denial would rest on it.
#[rstest]
fn an_entry_from_the_far_future_does_not_block(
    #[values(2 * MINUTE + 3, HOUR, 365 * 24 * HOUR)] ahead: i64,
    #[values("SLIDEWIN.CHECK k 1 60", "SLIDEWIN.CHECK k 1 60 SKIPDENIED")] check: &str,
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW - SECOND * 70, NOW + ahead]);
    assert_eq!(redis.int("SLIDEWIN.PEEK k 1 60"), 1);
    assert_eq!(redis.int("ZCARD k"), 2, "a peek changes nothing");
    assert_eq!(redis.int(check), 1);
    assert_eq!(redis.entries("k"), [NOW]);
    assert_eq!(redis.int("PTTL k"), 60_000);
    assert_eq!(redis.int(check), 0);
}

/// A clock set back by a window beside a turn a window ahead: both are honest.
#[rstest]
#[case(2 * MINUTE + 2, 0)]
#[case(2 * MINUTE + 3, 1)]
fn an_entry_is_honest_up_to_two_windows_ahead(#[case] ahead: i64, #[case] allowed: i64) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW, NOW + ahead]);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60 SKIPDENIED"), allowed);
}

/// The removal is replicated by score, beside what else the call does.
#[test]
fn the_removal_of_impossible_entries_is_replicated() {
    let server = Settings::new()
        .stopped_at(NOW)
        .options("--appendonly yes --appendfsync always")
        .start();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 1, NOW + HOUR, NOW + HOUR + 1]);
    let before = server.append_only_file().len();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), 1);
    assert_eq!(
        server.append_only_file()[before + 1..before + 3],
        [
            format!("ZREMRANGEBYSCORE k ({} +inf", NOW + 2 * MINUTE + 3),
            format!("ZADD k {NOW} {NOW}"),
        ]
    );
    assert_eq!(redis.entries("k"), [NOW - 1, NOW]);
}

/// Case 97: the expiry is that of what stays.
#[rstest]
#[case("SLIDEWIN.CHECK k 2 60", 1, 60_000)]
#[case("SLIDEWIN.CHECK k 1 60 SKIPDENIED", 0, 50_000)]
fn impossible_entries_take_their_expiry_with_them(
    #[case] check: &str,
    #[case] allowed: i64,
    #[case] expires_after_ms: i64,
) {
    const CENTURY: i64 = 100 * 365 * 24 * HOUR;
    let mut server = Server::with_stopped_clock();
    server.clock().step(CENTURY);
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 COST 2");
    server.clock().step(-CENTURY);
    redis.seed("k", [NOW - 10 * SECOND]);
    assert!(redis.int("PTTL k") > CENTURY / 1_000);
    assert_eq!(redis.int(check), allowed);
    assert_eq!(redis.int("PTTL k"), expires_after_ms);
}

/// They stay as long as no denial rests on them, and a cost above the limit rests on nothing.
#[test]
fn impossible_entries_stay_while_nobody_is_denied_by_them() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW + HOUR]);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 60 COST 2 SKIPDENIED"), 0);
    assert_eq!(redis.entries("k"), [NOW, NOW + HOUR]);
}

/// More of them than one call removes: decisions are exact all the way, and later calls go on.
#[test]
fn many_impossible_entries_go_in_slices() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let impossible = (0..2_500).map(|n| NOW + HOUR + n);
    redis.seed("k", [NOW - 2, NOW - 1].into_iter().chain(impossible));
    let check = "SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.numbers(check)[..3], [1, 3, 0]);
    assert_eq!(redis.int("ZCARD k"), 3 + 1_500);
    assert_eq!(redis.numbers(check), [0, 3, 0, 60_000, 60_000, 60_000, 3]);
    assert_eq!(redis.int("ZCARD k"), 3 + 500);
    assert_eq!(redis.numbers(check)[..3], [0, 3, 0]);
    assert_eq!(redis.entries("k"), [NOW - 2, NOW - 1, NOW]);
    assert_eq!(redis.int("PTTL k"), 60_000);
}

/// Case 93: a denial that is recorded while the clock is behind forgets nothing that was granted.
#[rstest]
#[case(&[-5])]
#[case(&[-5, -4, -3, -50])]
#[case(&[-50, 20, -5, 40])]
fn a_denial_behind_the_clock_forgets_nothing(#[case] denials: &[i64]) {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut at = |second: i64| {
        let step = NOW + second * SECOND - server.clock().now();
        server.clock().step(step);
        redis.int("SLIDEWIN.CHECK k 3 60 COST 3")
    };
    assert_eq!(at(0), 1);
    for second in denials {
        assert_eq!(at(*second), 0, "at {second}");
    }
    let last = *denials.iter().max().unwrap();
    assert_eq!(at(56.max(last + 56)), 0, "of three seconds ago or so");
}

/// Case 93 as it was seen.
#[test]
fn units_granted_before_a_step_back_are_remembered_to_the_end_of_their_window() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 3 60 COST 3";
    assert_eq!(redis.int(check), 1);
    server.clock().step(-5 * SECOND);
    assert_eq!(redis.int(check), 0);
    let peek = "SLIDEWIN.PEEK k 3 60 COST 3";
    server.clock().step(61 * SECOND);
    assert_eq!(redis.int(peek), 0);
    server.clock().step(4 * SECOND + 2);
    assert_eq!(redis.int(peek), 1);
}

/// Case 130: a flood of large costs does not stack its runs ahead of the clock.
#[test]
fn a_flood_of_large_costs_is_bounded() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..200 {
        redis.int("SLIDEWIN.CHECK k 1000 60 COST 1000");
        server.clock().step(100);
        assert!(redis.int("ZCARD k") <= 2_000);
    }
}

/// Case 94: more units than microseconds, under a clock that stands still.
#[rstest]
#[case("SLIDEWIN.CHECK k 1002 0.001 SKIPDENIED", 1, 1_500, 1_002)]
#[case("SLIDEWIN.CHECK k 1002 0.001", 1, 1_500, 1_002)]
#[case("SLIDEWIN.CHECK k 5000 0.001 COST 1000", 1_000, 12, 5)]
#[case("SLIDEWIN.CHECK k 9000 0.1 COST 700 SKIPDENIED", 700, 40, 12)]
fn a_burst_of_more_than_a_unit_a_microsecond_is_limited(
    #[case] check: &str,
    #[case] units: i64,
    #[case] calls: usize,
    #[case] allowed: i64,
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let answers = redis.pipeline(&vec![check.to_owned(); calls]);
    assert_eq!(answers.iter().sum::<i64>(), allowed);
    assert!(redis.int("ZCARD k") >= allowed * units);
}

/// Case 94: the same under a running clock, judged by the server's time around each batch.
#[rstest]
fn a_burst_is_limited_in_real_time(#[values(0.01, 0.05)] window: f64) {
    let server = Server::start();
    let mut redis = server.connect();
    let check = format!("SLIDEWIN.CHECK k 25000 {window} COST 1000 SKIPDENIED WITHINFO");
    let mut granted: Vec<i64> = Vec::new();
    for _ in 0..20 {
        for reply in redis.infos(&vec![check.clone(); 100]) {
            granted.extend((reply.numbers[0] == 1).then_some(reply.id));
        }
    }
    let span = (window * 1e6) as i64;
    assert!(granted.len() > 25);
    for start in &granted {
        let within = granted
            .iter()
            .filter(|id| (*start..start + span).contains(id));
        assert!(within.count() <= 25);
    }
}

/// Case 94: two calls in one microsecond, and the clock back by exactly a window.
#[test]
fn a_step_back_of_exactly_a_window_allows_no_more() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 60";
    assert_eq!([redis.int(check), redis.int(check)], [1, 1]);
    server.clock().step(-MINUTE);
    assert_eq!(redis.int(check), 0);
}

/// Case 101: a kill switch forgets nothing that was granted before.
#[rstest]
fn a_lifted_kill_switch_leaves_the_limit_used(
    #[values(
        "SLIDEWIN.CHECK k 0 60",
        "SLIDEWIN.CHECK k 0 60 SKIPDENIED",
        "SLIDEWIN.CHECK k 3 60 0 1",
        "SLIDEWIN.CHECK k 0 60 COST 1000"
    )]
    switch: &str,
) {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 3 60";
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    assert_eq!([redis.int(switch), redis.int(switch)], [0, 0]);
    assert_eq!(redis.entries("k"), [NOW, NOW + 1, NOW + 2]);
    assert_eq!(redis.int("SLIDEWIN.PEEK k 3 60"), 0);
    server.clock().step(MINUTE + 3);
    assert_eq!(redis.int(check), 1);
}

/// Random steps of the clock, forwards and back: waits are exact, never negative nor longer than three
/// windows, after which every key is free; no key is immortal.
#[test]
fn no_step_blocks_a_key_for_more_than_three_windows() {
    let steps = vec((-3 * MINUTE..3 * MINUTE, 1..4_i64), 1..12);
    check(60, &steps, |bench, steps| {
        for (step, cost) in steps {
            bench.step(step);
            let now = bench.now();
            let line = format!("SLIDEWIN.CHECK k 4 60 COST {cost} SKIPDENIED WITHINFO");
            let reply = bench.redis.numbers(&line);
            let log = Oracle::of(bench.redis.entries("k"));
            if reply[0] == 0 {
                assert_eq!(reply[3], log.retry_after_ms(&[(4, MINUTE)], cost, now));
                assert!(
                    (1..=3 * MINUTE / 1_000 + 1).contains(&reply[3]),
                    "{reply:?}"
                );
            }
            assert!(bench.redis.int("PTTL k") > 0);
            bench.step(3 * MINUTE + 9);
            assert_eq!(bench.redis.int("SLIDEWIN.PEEK k 4 60 COST 4"), 1);
            bench.step(-3 * MINUTE - 9);
        }
    });
}

/// A limit holds in any window of real time while the clock is set back once by up to a window.
#[test]
fn a_limit_holds_in_real_time_across_a_step_back() {
    let schedule = (vec(1..20 * SECOND, 10..40), 0..=MINUTE);
    check(60, &schedule, |bench, (steps, back)| {
        let half = steps.len() / 2;
        let (mut real, mut allowed) = (0, Vec::new());
        for (index, step) in steps.into_iter().enumerate() {
            real += step;
            bench.step(if index == half { step - back } else { step });
            if bench.redis.int("SLIDEWIN.CHECK k 4 60") == 1 {
                allowed.push(real);
            }
        }
        for start in &allowed {
            let in_window = |then: &&i64| (*start..start + MINUTE).contains(*then);
            let count = allowed.iter().filter(in_window).count();
            assert!(count <= 4, "{count} in a minute of real time");
        }
    });
}

/// Case 33: a replica whose clock is three seconds off takes over, and the wait is off by as much.
#[rstest]
#[case(3 * SECOND, 57_000)]
#[case(-3 * SECOND, 63_000)]
fn a_promoted_replica_with_another_clock(#[case] ahead: i64, #[case] wait: i64) {
    let master = Settings::new().tcp().start();
    let replica = Settings::new().ahead_by(ahead).start();
    let mut promoted = replica.connect();
    promoted.run::<()>(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    wait_until("the replica is in sync", || {
        promoted.info("replication", "master_link_status") == "up"
    });
    let mut redis = master.connect();
    for answer in [1, 1, 1, 0] {
        assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60 SKIPDENIED"), answer);
    }
    redis.int("WAIT 1 10000");
    promoted.run::<()>("REPLICAOF NO ONE");
    let denied = promoted.numbers("SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO");
    assert_eq!(denied[..3], [0, 3, 0]);
    assert!((wait - 2_000..=wait + 1).contains(&denied[3]), "{denied:?}");
}
