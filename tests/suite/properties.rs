//! Random schedules of calls, each answer held against an independent, naive model.

use crate::support::{Client, Oracle, Reply, Rule, Server, NOW};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Rules with windows that the steps between calls are comparable to.
fn rules() -> impl Strategy<Value = Vec<Rule>> {
    vec((0..12_i64, 1_000..200_000_i64), 1..4)
}

fn words(rules: &[Rule]) -> String {
    let pairs: Vec<String> = rules
        .iter()
        .map(|(limit, window)| format!("{limit} {}.{:06}", window / 1_000_000, window % 1_000_000))
        .collect();
    pairs.join(" ")
}

/// Runs a property on one server; every case starts with no keys and the clock at `NOW`.
pub fn check<S: Strategy>(cases: u32, strategy: &S, property: impl Fn(&mut Bench, S::Value)) {
    let server = Server::stopped();
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

    /// A WITHINFO reply: the first seven numbers, and the arrays of the rules.
    fn info(&mut self, line: &str) -> ([i64; 7], Vec<Vec<i64>>) {
        let Reply::Array(fields) = self.redis.run(line) else {
            panic!("{line}: not an array");
        };
        let number = |field: &Reply| match field {
            Reply::Int(number) => *number,
            other => panic!("{line}: {other:?}"),
        };
        let seven: Vec<i64> = fields[..7].iter().map(number).collect();
        let rules = match fields.get(7) {
            None => Vec::new(),
            Some(Reply::Array(rules)) => rules
                .iter()
                .map(|rule| match rule {
                    Reply::Array(fields) => fields.iter().map(number).collect(),
                    other => panic!("{line}: {other:?}"),
                })
                .collect(),
            Some(other) => panic!("{line}: {other:?}"),
        };
        (seven.try_into().unwrap(), rules)
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
            let before = bench.info(&format!("SLIDEWIN.PEEK {arguments}"));
            let after = bench.info(&format!("SLIDEWIN.CHECK {arguments}{skip}"));

            let allowed = oracle.allows(&rules, units, now);
            assert_eq!(plain, i64::from(allowed));
            if allowed || !skip_denied {
                oracle.record(units.min(most), now);
            } else {
                assert_eq!(before, after);
            }
            assert_eq!(
                (before.0[0], after.0[0]),
                (i64::from(allowed), i64::from(allowed))
            );
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
            assert_eq!(after.0[3], retry);
            assert_is_by_definition(&rules, &Oracle::of(entries), now, &after);
            if retry > 0 {
                let peek = format!("SLIDEWIN.PEEK {arguments}");
                bench.step(retry * 1_000 - 1_000);
                assert_eq!(bench.info(&peek).0[0], 0, "a millisecond early");
                bench.step(1_000);
                assert_eq!(bench.info(&peek).0[0], 1, "after the wait");
                bench.step(-retry * 1_000);
            }
        }
    });
}

fn assert_is_by_definition(
    rules: &[Rule],
    log: &Oracle,
    now: i64,
    (seven, each): &([i64; 7], Vec<Vec<i64>>),
) {
    let [allowed, limit, remaining, retry, reset, full, used] = *seven;
    let is_binding = |rule: &&Rule| {
        let rule_used = log.used(rule.1, now);
        (limit, remaining, used) == (rule.0, (rule.0 - rule_used).max(0), rule_used)
            && reset == log.reset_after_ms(**rule, now)
            && full == log.full_after_ms(**rule, now)
    };
    assert!(rules.iter().any(|rule| is_binding(&rule)), "{seven:?}");
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
            let reply = bench.info(&check);
            assert_eq!(plain, reply.0[0]);
            let log = Oracle::of(bench.redis.entries("k"));
            assert_is_by_definition(&rules, &log, now, &reply);
            if reply.0[0] == 0 {
                assert_eq!(reply.0[3], log.retry_after_ms(&rules, units, now));
            }
        }
    });
}

/// REFUND after SKIPDENIED calls takes back exactly what the last one took.
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
            let check = format!("SLIDEWIN.CHECK k {} COST {units} SKIPDENIED", words(&rules));
            if bench.redis.int(&check) == 1 {
                let refund = format!("SLIDEWIN.REFUND k COUNT {units}");
                assert_eq!(bench.redis.int(&refund), units);
                assert_eq!(bench.redis.entries("k"), before);
                assert_eq!(bench.redis.int(&check), 1);
            }
        }
    });
}
