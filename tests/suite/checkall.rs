//! Several logs in one call, all or nothing.

use crate::properties::{check, words};
use crate::support::{is_redis_6, Client, Oracle, Reply, Server, Settings, WithInfo, NOW, SECOND};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Barrier;

const BOTH: &str = "SLIDEWIN.CHECKALL user 3 60 1 all 5 60 2";

#[test]
fn every_key_records_its_units_with_one_id() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let expected = WithInfo {
        numbers: [1, 3, 2, 0, 60_000, 60_000, 1],
        id: NOW,
        rules: vec![
            vec![3, 60_000, 1, 2, 0, 60_000],
            vec![5, 60_000, 2, 3, 0, 60_000],
        ],
    };
    assert_eq!(redis.with_info(BOTH), expected);
    let entries = |redis: &mut Client, key: &str| -> Vec<(i64, i64)> {
        redis.run(&format!("SLIDEWIN.ENTRIES {key}"))
    };
    assert_eq!(entries(&mut redis, "user"), [(NOW, 1)]);
    assert_eq!(entries(&mut redis, "all"), [(NOW, 2)]);
    assert_eq!(redis.int("PTTL user"), 60_000);
    assert_eq!(redis.run::<String>("TYPE user"), "string");
}

#[test]
fn a_denial_leaves_no_trace_on_any_key() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..2 {
        redis.with_info(BOTH);
    }
    server.clock().step(SECOND);
    let dumps = |redis: &mut Client| -> Vec<Vec<u8>> {
        vec![redis.run("DUMP user"), redis.run("DUMP all")]
    };
    let before = dumps(&mut redis);
    let denied = redis.with_info(BOTH);
    assert_eq!(denied.numbers, [0, 5, 1, 59_000, 59_000, 59_001, 4]);
    assert_eq!(denied.id, 0);
    let waits: Vec<i64> = denied.rules.iter().map(|rule| rule[4]).collect();
    assert_eq!(waits, [0, 59_000], "the second row refused");
    assert_eq!(dumps(&mut redis), before);
    assert_eq!(redis.int("EXISTS new"), 0);
    redis.with_info("SLIDEWIN.CHECKALL new 9 60 1 all 5 60 2");
    assert_eq!(redis.int("EXISTS new"), 0);
}

#[test]
fn a_key_in_several_rows_is_one_log_with_several_rules() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let line = "SLIDEWIN.CHECKALL k 2 1 1 other 9 60 4 k 3 60 1";
    let reply = redis.with_info(line);
    assert_eq!(reply.numbers, [1, 2, 1, 0, 1_000, 1_000, 1]);
    assert_eq!(
        reply.rules,
        [
            [2, 1_000, 1, 1, 0, 1_000],
            [9, 60_000, 4, 5, 0, 60_000],
            [3, 60_000, 1, 2, 0, 60_000]
        ]
    );
    assert_eq!(
        redis.run::<Vec<(i64, i64)>>("SLIDEWIN.ENTRIES k"),
        [(NOW, 1)]
    );
    redis.with_info(line);
    assert_eq!(
        redis.with_info(line).rules[0],
        [2, 1_000, 2, 0, 1_000, 1_000]
    );
}

/// The id is free on every key, of whichever form.
#[test]
fn the_id_is_the_first_that_every_key_has_free() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("set", [NOW, NOW + 4]);
    for _ in 0..2 {
        redis.int("SLIDEWIN.CHECK packed 99 60 PACKED");
    }
    let line = "SLIDEWIN.CHECKALL set 99 60 3 packed 99 60 7 new 99 60 1";
    assert_eq!(redis.with_info(line).id, NOW + 5);
    assert_eq!(redis.with_info(line).id, NOW + 8);
    assert_eq!(
        redis.entries("set")[2..],
        [5, 6, 7, 8, 9, 10].map(|n| NOW + n)
    );
    let packed: Vec<(i64, i64)> = redis.run("SLIDEWIN.ENTRIES packed COUNT 2");
    assert_eq!(packed, [(NOW + 8, 7), (NOW + 5, 7)]);
    assert_eq!(
        redis.int(&format!("SLIDEWIN.REFUND set {} COST 3", NOW + 5)),
        3
    );
    assert_eq!(
        redis.int(&format!("SLIDEWIN.REFUND packed {} COST 7", NOW + 5)),
        7
    );
}

/// What had run out on one key is gone before any other key is touched, and all is one transaction.
#[test]
fn effects_of_all_keys_are_one_transaction() {
    let server = Settings::new()
        .stopped_at(NOW)
        .options("--appendonly yes --appendfsync always")
        .start();
    let mut redis = server.connect();
    redis.seed("set", [NOW - 61 * SECOND]);
    let before = server.append_only_file().len();
    redis.run::<Reply>("SLIDEWIN.CHECKALL new 9 60 5 set 9 60 1");
    let expiry = NOW / 1_000 + 60_000;
    let log = server.append_only_file().split_off(before);
    let commands: Vec<&str> = log
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let expected = [
        "MULTI",
        "UNLINK",
        "APPEND",
        "PEXPIREAT",
        "APPEND",
        "PEXPIREAT",
        "EXEC",
    ];
    assert_eq!(commands, expected);
    assert_eq!(log[3], format!("PEXPIREAT new {expiry}"));
    assert_eq!(log[5], format!("PEXPIREAT set {expiry}"));
    assert_eq!(redis.run::<String>("TYPE set"), "string", "it began anew");
}

#[test]
fn every_key_is_seen_by_clients_and_access_rules() {
    let server = Server::start();
    let mut redis = server.connect();
    let keys: Vec<String> =
        redis.run("COMMAND GETKEYS SLIDEWIN.CHECKALL a 1 60 1 b 1 60 1 c 1 60 1");
    assert_eq!(keys, ["a", "b", "c"]);
    redis.run::<()>("ACL SETUSER app on nopass resetchannels ~rl:* -@all +slidewin.checkall");
    redis.run::<()>("AUTH app x");
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECKALL rl:a 1 60 1 rl:b 1 60 1")[0],
        1
    );
    let error = redis.error("SLIDEWIN.CHECKALL rl:a 9 60 1 other 1 60 1");
    assert!(error.starts_with("NOPERM "), "{error}");
}

/// However calls on overlapping keys race, no limit is exceeded and no key is charged for a denial.
#[test]
fn racing_calls_on_overlapping_keys_charge_exactly_what_they_grant() {
    let server = Server::start();
    let barrier = Barrier::new(12);
    let sets = [["a", "b"], ["b", "c"], ["c", "a"]];
    let granted: Vec<(usize, i64)> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..12)
            .map(|caller| {
                let (mut redis, barrier) = (server.connect(), &barrier);
                scope.spawn(move || {
                    let [first, second] = sets[caller % 3];
                    let line = format!("SLIDEWIN.CHECKALL {first} 50 60 1 {second} 50 60 1");
                    barrier.wait();
                    let granted = (0..40).map(|_| redis.numbers(&line)[0]).sum::<i64>();
                    (caller % 3, granted)
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .collect()
    });
    let mut redis = server.connect();
    for key in ["a", "b", "c"] {
        let touches = |(set, _): &&(usize, i64)| sets[*set].contains(&key);
        let expected: i64 = granted.iter().filter(touches).map(|grant| grant.1).sum();
        let used = redis.numbers(&format!("SLIDEWIN.PEEK {key} 50 60 WITHINFO"))[6];
        assert_eq!(used, expected, "{key}");
        assert!(used <= 50);
    }
}

/// Allowed exactly when every row's rule holds; and a denial changes nothing. Keys are of either form.
#[test]
fn decisions_are_those_of_every_row() {
    let rules = || vec((0..9_i64, 20_000..200_000_i64), 1..3);
    let calls = vec(
        (0..7_usize, 1..4_i64, 1..4_i64, 1..4_i64, 0..30_000_i64),
        1..30,
    );
    let schedule = ([rules(), rules(), rules()], any::<bool>(), calls);
    check(100, &schedule, |bench, (rules, first_is_a_set, calls)| {
        let mut logs = [Oracle::default(), Oracle::default(), Oracle::default()];
        if first_is_a_set {
            bench.redis.int(&format!("SLIDEWIN.CHECK k0 99 {}", 0.2));
            logs[0].record(1, bench.now());
        }
        bench.step(1_000);
        for (keys, a, b, c, step) in calls {
            bench.step(step / 1_000 * 1_000 + 1_000);
            let now = bench.now();
            let units = [a, b, c];
            let asked: Vec<usize> = (0..3).filter(|key| (keys + 1) & (1 << key) > 0).collect();
            let rows: Vec<String> = asked
                .iter()
                .flat_map(|key| {
                    let units = units[*key];
                    let row = move |rule| format!("k{key} {} {}", words(&[rule]), units);
                    rules[*key].iter().copied().map(row)
                })
                .collect();
            let allowed = asked
                .iter()
                .all(|key| logs[*key].allows(&rules[*key], units[*key], now));
            let peeks = |redis: &mut Client| -> Vec<WithInfo> {
                let peek =
                    |key: usize| format!("SLIDEWIN.PEEK k{key} {} WITHINFO", words(&rules[key]));
                (0..3).map(|key| redis.with_info(&peek(key))).collect()
            };
            let before = peeks(&mut bench.redis);
            let reply = bench
                .redis
                .with_info(&format!("SLIDEWIN.CHECKALL {}", rows.join(" ")));
            assert_eq!(reply.numbers[0], i64::from(allowed));
            assert_eq!(reply.rules.len(), rows.len());
            if allowed {
                assert_eq!(reply.id, now);
                for key in asked {
                    logs[key].record(units[key], now);
                }
            } else {
                assert_eq!(peeks(&mut bench.redis), before);
            }
        }
    });
}

/// A call of one row is a CHECK of one rule, but for the list of rules.
#[test]
fn one_row_is_a_check_of_a_packed_log_that_skips_denied_calls() {
    let calls = vec((1..5_i64, 0..40_000_i64), 1..40);
    check(
        60,
        &(0..9_i64, 20_000..200_000_i64, calls),
        |bench, (limit, window, calls)| {
            let rule = words(&[(limit, window)]);
            for (units, step) in calls {
                bench.step(step);
                let all = format!("SLIDEWIN.CHECKALL a {rule} {units}");
                let one =
                    format!("SLIDEWIN.CHECK b {rule} COST {units} PACKED SKIPDENIED WITHINFO");
                let (all, one) = (bench.redis.with_info(&all), bench.redis.with_info(&one));
                assert_eq!((all.numbers, all.id), (one.numbers, one.id));
                assert_eq!(all.rules.len(), 1);
            }
            let ids = |redis: &mut Client, key: &str| -> Vec<(i64, i64)> {
                redis.run(&format!("SLIDEWIN.ENTRIES {key}"))
            };
            assert_eq!(ids(&mut bench.redis, "a"), ids(&mut bench.redis, "b"));
        },
    );
}

/// Each key tells its own watchers, and events come in their order when all is done.
#[test]
fn each_key_is_announced() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut other = server.connect();
    other.run::<()>("WATCH b");
    let events = crate::effects::events(&server, || {
        redis.numbers("SLIDEWIN.CHECKALL a 1 60 1 b 1 60 1")
    });
    let expected = [
        "new a", "new b", "append a", "expire a", "append b", "expire b",
    ];
    let from = if is_redis_6() { 2 } else { 0 };
    assert_eq!(events, expected[from..]);
    other.run::<()>("MULTI");
    other.run::<()>("PING");
    assert_eq!(other.run::<Reply>("EXEC"), Reply::Nil);
}
