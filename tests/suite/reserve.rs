//! A turn instead of a denial.

use crate::properties::{check, words};
use crate::support::{Client, Oracle, Rule, Server, NOW, SECOND};
use proptest::collection::vec;
use rstest::rstest;
use std::time::Duration;

const MINUTE: i64 = 60 * SECOND;

#[test]
fn turns_come_one_after_another() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut reserve = || redis.ints("SLIDEWIN.RESERVE k 1 10");
    assert_eq!(reserve(), [1, 0, NOW]);
    assert_eq!(reserve(), [1, 10_000, NOW + 10 * SECOND]);
    assert_eq!(reserve(), [0, 20_000, 0], "later than the longest window");
}

#[test]
fn a_turn_counts_for_everybody() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..3 {
        redis.ints("SLIDEWIN.RESERVE k 2 60");
    }
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60 SKIPDENIED"), 0);
    let peek = redis.numbers("SLIDEWIN.PEEK k 2 60 WITHINFO");
    assert_eq!(peek, [0, 2, 0, 60_001, 60_001, 120_000, 3]);
    assert_eq!(redis.int("PTTL k"), 120_000);
}

#[rstest]
#[case("0", [0, 60_000, 0])]
#[case("59.999999", [0, 60_000, 0])]
#[case("60", [1, 60_000, NOW + MINUTE])]
fn nobody_waits_longer_than_maxwait(#[case] max_wait: &str, #[case] expected: [i64; 3]) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.ints("SLIDEWIN.RESERVE k 1 60");
    let line = format!("SLIDEWIN.RESERVE k 1 60 MAXWAIT {max_wait}");
    assert_eq!(redis.ints(&line), expected);
}

/// To wait longer, a caller adds a longer rule that the shorter one implies.
#[test]
fn a_longer_rule_makes_a_longer_queue() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let waits: Vec<i64> = (0..62)
        .map(|_| redis.ints("SLIDEWIN.RESERVE k 1 1 60 60")[1])
        .collect();
    let expected: Vec<i64> = (0..62).map(|n| n * 1_000).collect();
    assert_eq!(waits, expected);
    assert_eq!(redis.ints("SLIDEWIN.RESERVE k 1 1 60 60")[0], 0);
}

#[rstest]
#[case("SLIDEWIN.RESERVE k 3 60 COST 4")]
#[case("SLIDEWIN.RESERVE k 0 60")]
#[case("SLIDEWIN.RESERVE k 9 60 0 1")]
fn what_never_fits_never_gets_a_turn(#[case] line: &str) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(redis.ints(line), [0, -1, 0]);
    assert_eq!(redis.int("EXISTS k"), 0);
}

#[test]
fn a_turn_that_is_given_back_makes_room() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..2 {
        redis.ints("SLIDEWIN.RESERVE k 1 60");
    }
    assert_eq!(redis.int(&format!("SLIDEWIN.REFUND k {}", NOW + MINUTE)), 1);
    // Its id is not given again before its time.
    assert_eq!(
        redis.ints("SLIDEWIN.RESERVE k 1 60"),
        [1, 60_000, NOW + MINUTE + 1]
    );
    assert_eq!(redis.int("STRLEN k"), 16 + 3 * 16);
}

/// The queue is not overtaken, even by a cost that would fit before its end.
#[test]
fn nobody_overtakes_the_queue() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60 COST 2 PACKED");
    let large = redis.ints("SLIDEWIN.RESERVE k 3 60 COST 3");
    assert_eq!(large, [1, 60_000, NOW + MINUTE]);
    assert_eq!(
        redis.ints("SLIDEWIN.RESERVE k 3 60 MAXWAIT 59"),
        [0, 120_000, 0]
    );
}

/// A broken clock blocks the queue no longer than it blocks calls.
#[test]
fn an_impossible_entry_does_not_hold_the_queue() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    server.clock().step(600 * MINUTE);
    redis.int("SLIDEWIN.CHECK k 1 60 PACKED");
    server.clock().step(-600 * MINUTE);
    assert_eq!(redis.ints("SLIDEWIN.RESERVE k 1 60"), [1, 0, NOW]);
    assert_eq!(
        redis.run::<Vec<(i64, i64)>>("SLIDEWIN.ENTRIES k"),
        [(NOW, 1)]
    );
    assert_eq!(redis.int("PTTL k"), 60_000);
}

/// The earliest moment that the rules allow behind the queue, found by trying each at which a unit
/// leaves.
fn earliest(log: &Oracle, rules: &[Rule], units: i64, now: i64) -> Option<i64> {
    let queue_ends = log.newest_stamp().map_or(now, |newest| newest.max(now));
    let leaves = |rule: &Rule| {
        log.stamps()
            .iter()
            .map(|at| at + rule.1)
            .collect::<Vec<_>>()
    };
    let mut moments: Vec<i64> = rules.iter().flat_map(leaves).collect();
    moments.push(queue_ends);
    moments.retain(|moment| *moment >= queue_ends);
    moments.sort_unstable();
    let mut fits = moments
        .into_iter()
        .filter(|moment| log.allows(rules, units, *moment));
    fits.next()
}

/// Turns among checks of both kinds, costs, several rules and refunds, at a clock that stands or
/// runs: the turn is the earliest, in the order of the calls, and no window of what stands ever holds
/// more than the limit.
#[test]
fn turns_are_the_earliest_and_exceed_no_limit() {
    let rules = vec((1..9_i64, 20_000..200_000_i64), 1..4);
    let call = (0..4_u32, 1..4_i64, 0..6_i64, 0..100_i64);
    check(150, &(rules, vec(call, 1..40)), |bench, (rules, calls)| {
        let longest = rules.iter().map(|rule| rule.1).max().unwrap();
        let most = rules.iter().map(|rule| rule.0).max().unwrap();
        let mut log = Oracle::default();
        let mut last_turn = 0;
        for (index, (kind, units, step, percent)) in (0..).zip(calls) {
            bench.step(step * 5_000 + 20);
            let now = bench.now();
            log.trim(longest, now);
            let rule_words = words(&rules);
            match kind {
                0 => {
                    let line = format!(
                        "SLIDEWIN.CHECK k {rule_words} COST {units} PACKED SKIPDENIED WITHINFO"
                    );
                    let reply = bench.redis.with_info(&line);
                    assert_eq!(reply.numbers[0] == 1, log.allows(&rules, units, now));
                    if reply.numbers[0] == 1 {
                        log.add(units, reply.id);
                    }
                }
                1 if index % 3 == 0 => {
                    // What stands and has not come yet may be given back.
                    if let Some(id) = log.newest_stamp().filter(|id| *id > now) {
                        let taken = log.remove(id);
                        let line = format!("SLIDEWIN.REFUND k {id} COST 9");
                        assert_eq!(bench.redis.int(&line), taken);
                        last_turn = 0;
                    }
                }
                _ => {
                    let max_wait = longest * percent / 100;
                    let line = format!(
                        "SLIDEWIN.RESERVE k {rule_words} COST {units} MAXWAIT 0.{max_wait:06}"
                    );
                    let reply = bench.redis.ints(&line);
                    match earliest(&log, &rules, units, now) {
                        None => assert_eq!(reply, [0, -1, 0]),
                        Some(turn) => {
                            let granted = turn - now <= max_wait;
                            assert_eq!(
                                reply[..2],
                                [i64::from(granted), (turn - now + 999) / 1_000]
                            );
                            if granted {
                                assert!((turn..turn + 50).contains(&reply[2]));
                                assert!(reply[2] > last_turn, "in the order of the calls");
                                last_turn = reply[2];
                                log.add(units, reply[2]);
                            }
                        }
                    }
                }
            }
            for (limit, window) in &rules {
                for start in log.stamps() {
                    assert!(
                        log.used(*window, *start + window - 1)
                            - log.used_after(*start + window - 1)
                            <= *limit
                    );
                }
            }
            assert!(log.stamps().len() as i64 <= 2 * most);
        }
    });
}

/// INFO tells turns from denials.
#[test]
fn turns_are_counted() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..3 {
        redis.ints("SLIDEWIN.RESERVE k 1 60");
    }
    let mut count = |field: &str| redis.info_number("slidewin", &format!("slidewin_{field}"));
    assert_eq!(
        [count("reservations"), count("turned_away"), count("checks")],
        [2, 1, 0]
    );
    assert_eq!([count("recorded"), count("allowed")], [2, 0]);
}

/// A turn is a key's own: CHECK and WITHINFO beside it count it as ahead.
#[test]
fn a_recorded_denial_drops_no_turn() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let ids = |redis: &mut Client| -> Vec<(i64, i64)> { redis.run("SLIDEWIN.ENTRIES k") };
    for _ in 0..2 {
        redis.ints("SLIDEWIN.RESERVE k 1 60");
    }
    server.clock().step(SECOND);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 60"), 0);
    let turn = (NOW + MINUTE, 1);
    assert!(ids(&mut redis).contains(&turn));
    server.clock().step(MINUTE - SECOND - 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 60"), 0);
    assert!(ids(&mut redis).contains(&turn));
}

/// 300 clients of ten a second and 300 in half a minute, each asking once and sleeping what it was
/// told, beside as many that ask again when CHECK says so: `make soak` prints both.
#[test]
#[ignore = "takes a minute; run by make soak"]
fn a_queue_of_three_hundred_is_served_in_order() {
    const CLIENTS: usize = 300;
    let server = Server::start();
    let queue = |ask: fn(&mut Client) -> (usize, i64)| -> (Vec<(Duration, Duration)>, usize) {
        let barrier = std::sync::Barrier::new(CLIENTS);
        let started = std::time::Instant::now();
        let turns: Vec<(Duration, Duration, usize)> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let (mut redis, barrier) = (server.connect(), &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        let asked = started.elapsed();
                        let (asks, wait_ms) = ask(&mut redis);
                        std::thread::sleep(Duration::from_millis(wait_ms as u64));
                        (asked, started.elapsed(), asks)
                    })
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        let asks = turns.iter().map(|turn| turn.2).sum();
        (turns.iter().map(|turn| (turn.0, turn.1)).collect(), asks)
    };
    let reserve = |redis: &mut Client| {
        let reply = redis.ints("SLIDEWIN.RESERVE turns 10 1 300 30");
        assert_eq!(reply[0], 1);
        (1, reply[1])
    };
    let (turns, asks) = queue(reserve);
    let mut ends: Vec<Duration> = turns.iter().map(|turn| turn.1).collect();
    ends.sort_unstable();
    for (first, eleventh) in ends.iter().zip(&ends[10..]) {
        // Sleepers wake up late, never early.
        assert!(*eleventh > *first + Duration::from_millis(800));
    }
    let took = ends[CLIENTS - 1];
    println!(
        "| RESERVE, 300 clients | {asks} calls | {took:.1?} for {:.1?} of work |",
        Duration::from_secs(29)
    );
    assert_eq!(asks, CLIENTS);
    assert!(took < Duration::from_secs(31), "{took:?}");

    let check = |redis: &mut Client| {
        let mut asks = 0;
        loop {
            asks += 1;
            let reply = redis.numbers("SLIDEWIN.CHECK loop 10 1 300 30 PACKED SKIPDENIED WITHINFO");
            if reply[0] == 1 {
                return (asks, 0);
            }
            std::thread::sleep(Duration::from_millis(reply[3] as u64));
        }
    };
    let (turns, asks) = queue(check);
    let last = turns.iter().map(|turn| turn.1).max().unwrap();
    println!("| CHECK and ask again, 300 clients | {asks} calls | {last:.1?} |");
}
