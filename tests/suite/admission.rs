//! Who is allowed, and when.

use crate::support::{Server, NOW, SECOND};
use rstest::rstest;
use std::sync::Barrier;
use std::time::{Duration, Instant};

#[test]
fn calls_are_allowed_up_to_the_limit_and_denied_beyond() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let answers: Vec<i64> = (0..4).map(|_| redis.int("SLIDEWIN.CHECK k 3 60")).collect();
    assert_eq!(answers, [1, 1, 1, 0]);
}

/// Case 17: limits around the boundary of the compact encoding too.
#[rstest]
fn exactly_limit_calls_are_allowed(#[values(1, 2, 3, 128, 129, 130)] limit: i64) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = format!("SLIDEWIN.CHECK k {limit} 60 WITHINFO");
    for used in 1..=limit {
        let reply = redis.numbers(&check);
        assert_eq!(reply[..3], [1, limit, limit - used]);
        assert_eq!(reply[6], used);
    }
    assert_eq!(redis.numbers(&check)[..3], [0, limit, 0]);
}

#[test]
fn the_window_slides() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut at = |micros: i64| {
        let now = server.clock().now();
        server.clock().step(NOW + micros - now);
        redis.int("SLIDEWIN.CHECK k 2 10 SKIPDENIED")
    };
    assert_eq!(at(0), 1);
    assert_eq!(at(4 * SECOND), 1);
    assert_eq!(at(5 * SECOND), 0);
    assert_eq!(at(10 * SECOND), 1, "the first entry is out");
    assert_eq!(at(14 * SECOND - 1), 0, "the second one not yet");
    assert_eq!(at(14 * SECOND), 1);
}

/// Cases 11 and 63: the window is half open, in both encodings.
#[rstest]
fn an_entry_exactly_one_window_old_is_out(#[values(1, 128, 129)] limit: i64) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let out = NOW - 60 * SECOND;

    redis.seed("out", (0..limit).map(|n| out - n));
    let check = |key| format!("SLIDEWIN.CHECK {key} {limit} 60 WITHINFO");
    assert_eq!(redis.numbers(&check("out"))[..3], [1, limit, limit - 1]);
    assert_eq!(redis.entries("out"), [NOW]);

    redis.seed("in", (0..limit).map(|n| out + 1 + n));
    let peek = format!("SLIDEWIN.PEEK in {limit} 60 WITHINFO");
    let wait_of_a_microsecond = 1;
    assert_eq!(
        redis.numbers(&peek)[..4],
        [0, limit, 0, wait_of_a_microsecond]
    );
    assert_eq!(redis.numbers(&check("in"))[0], 0);
}

/// Cases 18 and 72: what has run out does not count, even if the key lives on.
#[test]
fn a_full_log_that_has_run_out_is_empty() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", (0..5).map(|n| NOW - 61 * SECOND + n));
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 5 60 WITHINFO")[..3],
        [1, 5, 4]
    );
    assert_eq!(redis.entries("k"), [NOW]);
}

/// Cases 19 and 41: a slow, steady client is never denied, and its log does not grow.
#[test]
fn a_steady_client_within_the_limit_is_always_allowed() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for second in 0..60 {
        assert_eq!(redis.int("SLIDEWIN.CHECK k 10 10"), 1, "second {second}");
        assert_eq!(redis.int("ZCARD k"), (second + 1).min(10));
        server.clock().step(SECOND);
    }
}

/// Case 4, answered by SKIPDENIED: who asks too often still gets the limit. By default who keeps
/// hammering stays out. The last two are the README's table: 20 calls a minute for ten minutes.
#[rstest]
#[case("SLIDEWIN.CHECK k 2 4 SKIPDENIED", 20, SECOND, 10)]
#[case("SLIDEWIN.CHECK k 2 4", 20, SECOND, 2)]
#[case("SLIDEWIN.CHECK k 10 60", 200, 3 * SECOND, 10)]
#[case("SLIDEWIN.CHECK k 10 60 SKIPDENIED", 200, 3 * SECOND, 100)]
fn denied_attempts_count_unless_skipped(
    #[case] check: &str,
    #[case] calls: usize,
    #[case] step: i64,
    #[case] allowed: i64,
    #[values("", " PACKED")] packed: &str,
) {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let answers = (0..calls).map(|_| {
        let answer = redis.int(&format!("{check}{packed}"));
        server.clock().step(step);
        answer
    });
    assert_eq!(answers.sum::<i64>(), allowed);
}

#[test]
fn two_calls_in_one_microsecond_count_twice() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60");
    redis.int("SLIDEWIN.CHECK k 9 60");
    assert_eq!(redis.entries("k"), [NOW, NOW + 1]);
}

/// Case 2: a script's calls at one instant count each, and denied ones do not grow the log.
#[test]
fn a_thousand_calls_in_one_script_count_a_thousand_times() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let script = "local allowed = 0 \
        for i = 1, 1000 do \
            allowed = allowed + redis.call('SLIDEWIN.CHECK', KEYS[1], ARGV[1], 3600) \
        end \
        return allowed";
    let mut calls = |key: &str, limit: &str| -> i64 {
        redis.send(&[
            b"EVAL",
            script.as_bytes(),
            b"1",
            key.as_bytes(),
            limit.as_bytes(),
        ])
    };
    assert_eq!(calls("half", "500"), 500);
    assert_eq!(calls("all", "1000"), 1000);
    assert_eq!(
        redis.int("ZCARD half"),
        501,
        "what is ahead of the clock stays"
    );
    assert_eq!(redis.int("ZCARD all"), 1000);
}

/// Case 34: time stands still in a transaction on some servers.
#[test]
fn calls_in_a_transaction_count_each() {
    let server = Server::start();
    let mut redis = server.connect();
    let replies = redis.transaction(&["SLIDEWIN.CHECK k 99 60"; 100]);
    assert_eq!(replies.iter().sum::<i64>(), 99);
    assert_eq!(redis.entries("k").len(), 99);
}

/// Case 34: a script that outlives the window of its first call may call again.
#[test]
fn a_script_longer_than_the_window_sees_it_slide() {
    let server = Server::start();
    let mut redis = server.connect();
    let script = "local function time() \
            local now = redis.call('TIME') return now[1] + now[2] / 1000000 \
        end \
        local first = redis.call('SLIDEWIN.CHECK', KEYS[1], 1, '0.001') \
        local n = 0 \
        for i = 1, 3000000 do n = n + i end \
        return {first, redis.call('SLIDEWIN.CHECK', KEYS[1], 1, '0.001')}";
    let replies: (i64, i64) = redis.send(&[b"EVAL", script.as_bytes(), b"1", b"k"]);
    assert_eq!(replies, (1, 1));
    assert_ne!(redis.int("PTTL k"), -1);
}

/// Case 3: the decision and the record are one step.
#[test]
fn parallel_connections_never_exceed_the_limit() {
    let server = Server::start();
    let barrier = Barrier::new(60);
    let allowed: i64 = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..60)
            .map(|_| {
                let mut redis = server.connect();
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    (0..10)
                        .map(|_| redis.int("SLIDEWIN.CHECK k 30 60"))
                        .sum::<i64>()
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .sum()
    });
    assert_eq!(allowed, 30);
    assert_eq!(server.connect().int("ZCARD k"), 30);
}

/// Case 40: in no stretch of real time of the window's length is more allowed than the limit, and no
/// call fails. A stretch is judged by calls that lie wholly in it, from request to reply.
#[test]
fn a_limit_holds_in_every_stretch_of_real_time() {
    let server = Server::start();
    let window = Duration::from_millis(100);
    let started = Instant::now();
    let allowed: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..20)
            .map(|_| {
                let mut redis = server.connect();
                scope.spawn(move || {
                    let mut allowed = Vec::new();
                    while started.elapsed() < 15 * window {
                        let sent = started.elapsed();
                        if redis.int("SLIDEWIN.CHECK k 5 0.1 SKIPDENIED") == 1 {
                            allowed.push((sent, started.elapsed()));
                        }
                    }
                    allowed
                })
            })
            .collect();
        let calls = callers.into_iter().map(|caller| caller.join().unwrap());
        calls.flatten().collect()
    });
    assert!(allowed.len() > 5 * 8, "only {} were allowed", allowed.len());
    for (start, _) in &allowed {
        let within =
            |(sent, answered): &&(Duration, Duration)| sent >= start && *answered < *start + window;
        let count = allowed.iter().filter(within).count();
        assert!(count <= 5, "{count} allowed within {window:?}");
    }
}

/// Case 48: a high limit is a limit.
#[test]
fn a_limit_of_thousands_is_exact() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let answers = redis.pipeline(&vec!["SLIDEWIN.CHECK k 6000 1".to_owned(); 6_001]);
    assert!(answers[..6_000].iter().all(|answer| *answer == 1));
    assert_eq!(answers[6_000], 0);
}

/// Cases 6 and 45: a limit of 0 is a kill switch, from the first call on.
#[rstest]
fn a_limit_of_zero_denies_everything_and_stores_nothing(
    #[values("SLIDEWIN.CHECK k 0 60", "SLIDEWIN.CHECK k 0 60 SKIPDENIED")] check: &str,
) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let answers = redis.pipeline(&vec![check.to_owned(); 1_000]);
    assert_eq!(answers, [0; 1_000]);
    assert_eq!(redis.int("EXISTS k"), 0);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 60"), 1);
}

/// Case 7: the longest windows and the highest limit neither overflow nor let anything through.
#[test]
fn the_extremes_of_limit_and_window_work() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(redis.int("SLIDEWIN.CHECK long 1 315360000"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK long 1 315360000"), 0);
    assert_eq!(redis.int("PTTL long"), 315_360_000_000);

    let most = i64::MAX;
    let reply = redis.numbers(&format!("SLIDEWIN.CHECK high {most} 60 WITHINFO"));
    assert_eq!(reply, [1, most, most - 1, 0, 60_000, 60_000, 1]);
    assert!(redis.int("MEMORY USAGE high") < 500);
}

/// Case 10: the shortest window holds for its whole millisecond.
#[test]
fn the_shortest_window_counts() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 1 0.001";
    assert_eq!(redis.transaction(&[check, check]), [1, 0]);
}

/// Case 5: keys are bytes, and none is mistaken for another.
#[test]
fn keys_of_any_bytes_are_different_logs() {
    let server = Server::start();
    let mut redis = server.connect();
    for key in [
        b"\xff\xfe".as_slice(),
        b"\xff\xfd",
        b"a\0b",
        b"a\0c",
        b"a",
        b"",
    ] {
        assert_eq!(redis.send::<i64>(&[b"SLIDEWIN.CHECK", key, b"1", b"60"]), 1);
        assert_eq!(redis.send::<i64>(&[b"EXISTS", key]), 1);
    }
    assert_eq!(redis.int("DBSIZE"), 6);
}
