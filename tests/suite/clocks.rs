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
    let mut server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    redis.run::<()>("PERSIST k");
    server.clock().step(HOUR);
    assert_eq!(
        redis.ints("SLIDEWIN.CHECK k 3 60 WITHINFO"),
        [1, 3, 2, 0, 60_000, 60_000, 1]
    );
    assert_eq!(redis.entries("k"), [NOW + HOUR]);
}

/// Case 33: entries from the future count until the clock has passed them, and none is overwritten.
#[rstest]
#[case(5 * SECOND)]
#[case(MINUTE - 1_000)]
fn a_clock_set_back_denies_until_it_has_caught_up(#[case] back: i64) {
    let mut server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    server.clock().step(-back);
    let wait = (MINUTE + back) / 1_000;
    let denied = redis.ints("SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO");
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
    let mut server = Server::stopped();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 3");
    assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60 SKIPDENIED"), 0);
    server.clock().step(-HOUR);
    let reply = redis.ints("SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO");
    assert_eq!(reply, [1, 3, 2, 0, 60_000, 60_000, 1]);
    assert_eq!(redis.entries("k"), [NOW - HOUR]);
}

/// Case 14: what is more than a window ahead cannot be true, and goes when a denial would rest on it.
#[rstest]
fn an_entry_from_the_far_future_does_not_block(
    #[values(MINUTE + 1, HOUR, 365 * 24 * HOUR)] ahead: i64,
    #[values("SLIDEWIN.CHECK k 1 60", "SLIDEWIN.CHECK k 1 60 SKIPDENIED")] check: &str,
) {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", [NOW - SECOND * 70, NOW + ahead]);
    assert_eq!(redis.int("SLIDEWIN.PEEK k 1 60"), 1);
    assert_eq!(redis.int("ZCARD k"), 2, "a peek changes nothing");
    assert_eq!(redis.int(check), 1);
    assert_eq!(redis.entries("k"), [NOW]);
    assert!(redis.int("PTTL k") > 0);
    assert_eq!(redis.int(check), 0);
}

/// The removal is replicated by score, beside what else the call does.
#[test]
fn the_removal_of_untrue_entries_is_replicated() {
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
            format!("ZREMRANGEBYSCORE k ({} +inf", NOW + MINUTE),
            format!("ZADD k {NOW} {NOW}"),
        ]
    );
    assert_eq!(redis.entries("k"), [NOW - 1, NOW]);
}

/// They stay as long as no denial rests on them, and a cost above the limit rests on nothing.
#[test]
fn untrue_entries_stay_while_nobody_is_denied_by_them() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed("k", [NOW + HOUR]);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 3 60"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 60 COST 2 SKIPDENIED"), 0);
    assert_eq!(redis.entries("k"), [NOW, NOW + HOUR]);
}

/// More of them than one call removes: decisions are exact all the way, and later calls go on.
#[test]
fn many_untrue_entries_go_in_slices() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.seed(
        "k",
        [NOW - 2, NOW - 1]
            .into_iter()
            .chain((0..2_500).map(|n| NOW + HOUR + n)),
    );
    let check = "SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO";
    assert_eq!(redis.ints(check)[..3], [1, 3, 0]);
    assert_eq!(redis.int("ZCARD k"), 3 + 1_500);
    assert_eq!(redis.ints(check), [0, 3, 0, 60_000, 60_000, 60_000, 3]);
    assert_eq!(redis.int("ZCARD k"), 3 + 500);
    assert_eq!(redis.ints(check)[..3], [0, 3, 0]);
    assert_eq!(redis.entries("k"), [NOW - 2, NOW - 1, NOW]);
}

/// Random steps of the clock, forwards and back: waits are exact, never negative nor longer than the
/// window and the step; two windows later every key is free; no key is immortal.
#[test]
fn no_step_blocks_a_key_for_more_than_two_windows() {
    let steps = vec((-3 * MINUTE..3 * MINUTE, 1..4_i64), 1..12);
    check(60, &steps, |bench, steps| {
        for (step, cost) in steps {
            bench.step(step);
            let now = bench.now();
            let line = format!("SLIDEWIN.CHECK k 4 60 COST {cost} SKIPDENIED WITHINFO");
            let reply = bench.redis.ints(&line);
            let log = Oracle::of(bench.redis.entries("k"));
            if reply[0] == 0 {
                assert_eq!(reply[3], log.retry_after_ms(&[(4, MINUTE)], cost, now));
                assert!((1..=2 * MINUTE / 1_000).contains(&reply[3]), "{reply:?}");
            }
            assert!(bench.redis.int("PTTL k") > 0);
            bench.step(2 * MINUTE);
            assert_eq!(bench.redis.int("SLIDEWIN.PEEK k 4 60 COST 4"), 1);
            bench.step(-2 * MINUTE);
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
    let denied = promoted.ints("SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO");
    assert_eq!(denied[..3], [0, 3, 0]);
    assert!((wait - 2_000..=wait + 1).contains(&denied[3]), "{denied:?}");
}
