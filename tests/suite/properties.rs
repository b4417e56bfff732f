//! Random schedules of calls, each answer held against an independent, naive model.

use crate::support::{Client, Oracle, Rule, Server, WithInfo, NOW};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Rules with windows that the steps between calls are comparable to.
fn rules() -> impl Strategy<Value = Vec<Rule>> {
    vec((0..12_i64, 1_000..200_000_i64), 1..4)
}

pub fn words(rules: &[Rule]) -> String {
    let pairs: Vec<String> = rules
        .iter()
        .map(|(limit, window)| format!("{limit} {}.{:06}", window / 1_000_000, window % 1_000_000))
        .collect();
    pairs.join(" ")
}

/// Runs a property on one server; every case starts with no keys and the clock at `NOW`.
pub fn check<S: Strategy>(cases: u32, strategy: &S, property: impl Fn(&mut Bench, S::Value)) {
    let server = Server::with_stopped_clock();
    let redis = server.connect();
    let bench = std::cell::RefCell::new(Bench { server, redis });
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(strategy, |value| {
            let mut bench = bench.borrow_mut();
            bench.redis.run::<()>("FLUSHALL");
            let since = bench.now() - NOW;
            bench.server.clock().step(-since);
            property(&mut bench, value);
            Ok(())
        })
        .unwrap();
}

/// A server with a stopped clock, and a connection.
pub struct Bench {
    server: Server,
    pub redis: Client,
}

impl Bench {
    /// The time at which the clock stands.
    pub fn now(&mut self) -> i64 {
        self.server.clock().now()
    }

    /// Moves the clock.
    pub fn step(&mut self, micros: i64) {
        self.server.clock().step(micros);
    }

    /// Sets the clock.
    pub fn set(&mut self, micros: i64) {
        let step = micros - self.now();
        self.step(step);
    }
}

/// The recipe that slidewin replaces, as four commands with the module's own time: the same answer
/// to every call. The recipe's log grows without bound, the module's does not.
#[test]
fn decisions_equal_the_recipes() {
    let schedule = (1..12_i64, 1_000..200_000_i64, vec(2_000..60_000_i64, 1..60));
    check(60, &schedule, |bench, (limit, window, steps)| {
        let check = format!("SLIDEWIN.CHECK module {}", words(&[(limit, window)]));
        for step in steps {
            bench.step(step);
            let now = bench.now();
            let redis = &mut bench.redis;
            let cutoff = now - window;
            redis.int(&format!("ZREMRANGEBYSCORE recipe 0 {cutoff}"));
            redis.int(&format!("ZADD recipe {now} {now}"));
            let count = redis.int("ZCARD recipe");
            redis.int(&format!("PEXPIREAT recipe {}", (now + window) / 1_000 + 1));
            assert_eq!(redis.int(&check), i64::from(count <= limit));
            assert!(redis.int("ZCARD module") <= limit);
        }
    });
}

/// Under unchanged rules the capped log decides, and waits, like one that keeps everything; the
/// numbers are those of the log, by their definitions; obeying a wait works and a millisecond less
/// does not; PEEK says before what CHECK then answers.
#[test]
fn answers_are_those_of_an_uncapped_log() {
    let schedule = (
        rules(),
        any::<bool>(),
        vec((1..5_i64, 2_000..60_000_i64), 1..40),
    );
    check(120, &schedule, |bench, (rules, skip_denied, calls)| {
        let mut oracle = Oracle::default();
        let most = rules.iter().map(|rule| rule.0).max().unwrap();
        let skip = if skip_denied { " SKIPDENIED" } else { "" };
        for (units, step) in calls {
            bench.step(step);
            let now = bench.now();
            let arguments = format!("k {} COST {units} WITHINFO", words(&rules));
            let plain = format!("SLIDEWIN.PEEK k {} COST {units}", words(&rules));
            let plain = bench.redis.int(&plain);
            let before = bench.redis.with_info(&format!("SLIDEWIN.PEEK {arguments}"));
            let after = bench
                .redis
                .with_info(&format!("SLIDEWIN.CHECK {arguments}{skip}"));

            let allowed = oracle.allows(&rules, units, now);
            assert_eq!(plain, i64::from(allowed));
            let kill_switch = rules.iter().any(|rule| rule.0 == 0);
            if allowed || !(skip_denied || kill_switch) {
                oracle.record(units.min(most), now);
            } else {
                assert_eq!(before, after);
            }
            let expected = i64::from(allowed);
            assert_eq!([before.numbers[0], after.numbers[0]], [expected; 2]);
            assert_eq!(after.id, if allowed { now } else { 0 });
            let entries = bench.redis.entries("k");
            let longest = rules.iter().map(|rule| rule.1).max().unwrap();
            let mut kept = oracle.newest(most);
            kept.retain(|stamp| *stamp > now - longest);
            assert_eq!(entries, kept);

            let retry = if allowed {
                0
            } else {
                oracle.retry_after_ms(&rules, units, now)
            };
            assert_eq!(after.numbers[3], retry);
            assert_is_by_definition(&rules, &Oracle::of(entries), now, &after);
            if retry > 0 {
                let peek = format!("SLIDEWIN.PEEK {arguments}");
                bench.step(retry * 1_000 - 1_000);
                assert_eq!(
                    bench.redis.with_info(&peek).numbers[0],
                    0,
                    "a millisecond early"
                );
                bench.step(1_000);
                assert_eq!(bench.redis.with_info(&peek).numbers[0], 1, "after the wait");
                bench.step(-retry * 1_000);
            }
        }
    });
}

fn assert_is_by_definition(rules: &[Rule], log: &Oracle, now: i64, reply: &WithInfo) {
    let [allowed, limit, remaining, retry, reset, full, used] = reply.numbers;
    let each = &reply.rules;
    let is_binding = |rule: &&Rule| {
        let rule_used = log.used(rule.1, now);
        (limit, remaining, used) == (rule.0, (rule.0 - rule_used).max(0), rule_used)
            && reset == log.reset_after_ms(**rule, now)
            && full == log.full_after_ms(**rule, now)
    };
    assert!(rules.iter().any(|rule| is_binding(&rule)), "{reply:?}");
    if rules.len() == 1 {
        assert!(each.is_empty());
        return;
    }
    assert_eq!(each.len(), rules.len());
    let longest_wait = |wait: i64| if wait < 0 { i64::MAX } else { wait };
    for (rule, fields) in rules.iter().zip(each) {
        let rule_used = log.used(rule.1, now);
        let rule_remaining = (rule.0 - rule_used).max(0);
        assert_eq!(fields[..2], [rule.0, (rule.1 + 999) / 1_000]);
        assert_eq!(fields[2..4], [rule_used, rule_remaining]);
        assert_eq!(fields[5], log.reset_after_ms(*rule, now));
        assert!(longest_wait(fields[4]) <= longest_wait(retry));
        assert!(allowed == 0 || remaining <= rule_remaining);
    }
}

/// Limits that change from call to call: lowered ones wait for the right entry.
#[test]
fn waits_are_exact_when_limits_change() {
    let schedule = vec((rules(), 1..5_i64, 2_000..60_000_i64), 1..30);
    check(120, &schedule, |bench, calls| {
        for (rules, units, step) in calls {
            bench.step(step);
            let now = bench.now();
            let arguments = format!("k {} COST {units} WITHINFO", words(&rules));
            let check = format!("SLIDEWIN.CHECK {arguments} SKIPDENIED");
            let plain = format!("SLIDEWIN.PEEK k {} COST {units}", words(&rules));
            let plain = bench.redis.int(&plain);
            let reply = bench.redis.with_info(&check);
            assert_eq!(plain, reply.numbers[0]);
            let log = Oracle::of(bench.redis.entries("k"));
            assert_is_by_definition(&rules, &log, now, &reply);
            if reply.numbers[0] == 0 {
                assert_eq!(reply.numbers[3], log.retry_after_ms(&rules, units, now));
            }
        }
    });
}

/// Case 93: under a clock that steps back and forth the capped log decides, and waits, like one that
/// is only trimmed. (A call's microseconds are its own here: where two calls want the same, the
/// capped log may have them free.)
#[test]
fn answers_under_a_stepping_clock_are_those_of_an_uncapped_log() {
    let rules = vec((1..8_i64, 20_000..200_000_i64), 1..4);
    let calls = vec((1..9_i64, any::<bool>(), 0..100_i64), 1..40);
    check(200, &(rules, calls), |bench, (rules, calls)| {
        let longest = rules.iter().map(|rule| rule.1).max().unwrap();
        let most = rules.iter().map(|rule| rule.0).max().unwrap();
        let mut oracle = Oracle::default();
        for (index, (units, skip_denied, percent)) in (0..).zip(calls) {
            bench.set(NOW + longest * percent / 100_000 * 1_000 + 10 * index);
            let now = bench.now();
            oracle.trim(longest, now);
            let skip = if skip_denied { " SKIPDENIED" } else { "" };
            let line = format!(
                "SLIDEWIN.CHECK k {} COST {units} WITHINFO{skip}",
                words(&rules)
            );
            let allowed = oracle.allows(&rules, units, now);
            if allowed || !skip_denied {
                oracle.record(units.min(most), now);
            }
            let retry = if allowed {
                0
            } else {
                oracle.retry_after_ms(&rules, units, now)
            };
            let reply = bench.redis.with_info(&line);
            assert_eq!(
                [reply.numbers[0], reply.numbers[3]],
                [i64::from(allowed), retry]
            );
            assert!(bench.redis.int("ZCARD k") <= 2 * most + 8);
        }
    });
}

/// Case 95: whatever calls overlap and whichever of them are refunded, in no window are there more
/// calls than the limit that were not refunded.
#[test]
fn refunds_let_no_more_than_the_limit_stand() {
    let rules = vec((1..6_i64, 20_000..200_000_i64), 1..3);
    let calls = vec((1..4_i64, 0..40_000_i64, 0..3_usize, any::<bool>()), 1..40);
    check(200, &(rules, calls), |bench, (rules, calls)| {
        // Every call is running until it is refunded or forgotten.
        let mut standing: Vec<(i64, i64)> = Vec::new();
        for (units, step, refunds, skip_denied) in calls {
            bench.step(step);
            let skip = if skip_denied { " SKIPDENIED" } else { "" };
            let line = format!(
                "SLIDEWIN.CHECK k {} COST {units} WITHINFO{skip}",
                words(&rules)
            );
            let reply = bench.redis.with_info(&line);
            if reply.numbers[0] == 1 {
                standing.push((reply.id, units));
            }
            for _ in 0..refunds.min(standing.len()) {
                let which = usize::try_from(step).unwrap() % standing.len();
                let (id, units) = standing.swap_remove(which);
                for _ in 0..2 {
                    bench
                        .redis
                        .int(&format!("SLIDEWIN.REFUND k {id} COST {units}"));
                }
            }
            for (limit, window) in &rules {
                for (start, _) in &standing {
                    let within = |(id, _): &&(i64, i64)| (*start..start + window).contains(id);
                    let units: i64 = standing.iter().filter(within).map(|call| call.1).sum();
                    assert!(
                        units <= *limit,
                        "{units} of {limit} in {window} from {start}"
                    );
                }
            }
        }
    });
}

/// A refund at once restores the log.
#[test]
fn a_refund_restores_the_log() {
    let schedule = (rules(), vec((1..5_i64, 2_000..60_000_i64), 1..30));
    check(60, &schedule, |bench, (rules, calls)| {
        let longest = rules.iter().map(|rule| rule.1).max().unwrap();
        for (units, step) in calls {
            bench.step(step);
            let now = bench.now();
            let mut before = bench.redis.entries("k");
            before.retain(|stamp| *stamp > now - longest);
            let check = format!(
                "SLIDEWIN.CHECK k {} COST {units} SKIPDENIED WITHINFO",
                words(&rules)
            );
            let reply = bench.redis.with_info(&check);
            if reply.numbers[0] == 1 {
                let refund = format!("SLIDEWIN.REFUND k {} COST {units}", reply.id);
                assert_eq!(bench.redis.int(&refund), units);
                assert_eq!(bench.redis.entries("k"), before);
                assert_eq!(bench.redis.with_info(&check).numbers[0], 1);
            }
        }
    });
}
