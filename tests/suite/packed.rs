//! Packed logs: the documented bytes, the same answers as a sorted set, and any cost.

use crate::effects::{appended, events, persistent};
use crate::properties::{check, words};
use crate::support::{is_redis_6, Client, Oracle, Rule, Server, WithInfo, NOW, SECOND};
use proptest::collection::vec;
use proptest::prelude::*;
use rstest::rstest;
use std::time::{Duration, Instant};

const MINUTE: i64 = 60 * SECOND;

/// The bytes of a log: its base, and of each call its time and the running total.
fn bytes(base: u64, calls: &[(i64, u64)]) -> Vec<u8> {
    let mut bytes = b"slidewin".to_vec();
    bytes.extend(base.to_le_bytes());
    for (time, total) in calls {
        bytes.extend(time.to_le_bytes());
        bytes.extend(total.to_le_bytes());
    }
    bytes
}

fn value(redis: &mut Client) -> Vec<u8> {
    redis.run("GET k")
}

fn put(redis: &mut Client, value: &[u8]) {
    redis.send::<()>(&[b"SET", b"k", value]);
}

fn calls(redis: &mut Client) -> Vec<(i64, u64)> {
    redis.run("SLIDEWIN.ENTRIES k COUNT 1000000")
}

#[test]
fn a_call_is_sixteen_bytes_whatever_its_cost() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    assert_eq!(
        redis.int("SLIDEWIN.CHECK k 2000000000 60 COST 1000000000 PACKED"),
        1
    );
    server.clock().step(SECOND);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2000000000 60 COST 5"), 1);
    let expected = [(NOW, 1_000_000_000), (NOW + SECOND, 1_000_000_005)];
    assert_eq!(value(&mut redis), bytes(0, &expected));
    assert_eq!(redis.int("PTTL k"), 60_000);
    let reply = redis.with_info("SLIDEWIN.PEEK k 2000000000 60 COST 1000000000 WITHINFO");
    assert_eq!(
        reply.numbers,
        [
            0,
            2_000_000_000,
            999_999_995,
            59_000,
            59_000,
            60_000,
            1_000_000_005
        ]
    );
}

#[test]
fn an_existing_key_keeps_its_form() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for (first, second, kind) in [("", " PACKED", "zset"), (" PACKED", "", "string")] {
        redis.run::<()>("FLUSHALL");
        assert_eq!(redis.int(&format!("SLIDEWIN.CHECK k 9 60{first}")), 1);
        assert_eq!(redis.int(&format!("SLIDEWIN.CHECK k 9 60{second}")), 1);
        assert_eq!(redis.run::<String>("TYPE k"), kind);
    }
}

/// A time below existing entries is inserted, and later totals grow.
#[test]
fn a_call_behind_the_clock_is_inserted() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 COST 2 PACKED");
    server.clock().step(-SECOND);
    redis.int("SLIDEWIN.CHECK k 9 60 COST 3");
    assert_eq!(value(&mut redis), bytes(0, &[(NOW - SECOND, 3), (NOW, 5)]));
}

/// A recorded denial moves the base, which may lie inside a call.
#[test]
fn a_recorded_denial_forgets_by_the_base() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 5 60 COST 4 PACKED");
    server.clock().step(SECOND);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 5 60 COST 3"), 0);
    assert_eq!(value(&mut redis), bytes(2, &[(NOW, 4), (NOW + SECOND, 7)]));
    assert_eq!(calls(&mut redis), [(NOW + SECOND, 3), (NOW, 2)]);
    let peek = redis.numbers("SLIDEWIN.PEEK k 5 60 WITHINFO");
    assert_eq!(peek, [0, 5, 0, 59_000, 59_000, 60_000, 5]);
}

/// Case 131.
#[test]
fn totals_below_the_base_count_as_the_base() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 1 60 PACKED";
    assert_eq!(redis.int(check), 1);
    for step in [1_000, 1_000, -3_000] {
        server.clock().step(step);
        assert_eq!(redis.int(check), 0);
    }
    let now = NOW - 1_000;
    assert_eq!(calls(&mut redis), [(NOW + 2_000, 1), (now, 1)]);
    assert_eq!(
        value(&mut redis).len(),
        16 + 4 * 16,
        "what is ahead stays until its time"
    );
    let peek = redis.numbers("SLIDEWIN.PEEK k 1 60 WITHINFO");
    assert_eq!(peek, [0, 1, 0, 60_003, 60_003, 60_003, 2]);
    assert_eq!(redis.int(&format!("SLIDEWIN.REFUND k {now}")), 1);
    assert_eq!(
        redis.int(&format!("SLIDEWIN.REFUND k {NOW}")),
        0,
        "forgotten"
    );
    assert_eq!(calls(&mut redis), [(NOW + 2_000, 1)]);
}

#[rstest]
#[case("COST 1 KEEP 0", 4, 0)]
#[case("KEEP 3 COST 4", 1, 3)]
#[case("COST 1000000000 KEEP 4", 0, 4)]
fn a_refund_in_part_keeps_the_rest(#[case] options: &str, #[case] taken: i64, #[case] kept: u64) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for _ in 0..3 {
        redis.int("SLIDEWIN.CHECK k 99 60 COST 4 PACKED");
    }
    for id in [NOW, NOW + 1, NOW + 2] {
        let line = format!("SLIDEWIN.REFUND k {id} {options}");
        assert_eq!(redis.int(&line), taken);
        assert_eq!(redis.int(&line), 0, "again");
    }
    let totals = [(NOW, kept), (NOW + 1, 2 * kept), (NOW + 2, 3 * kept)];
    assert_eq!(
        value(&mut redis),
        bytes(0, &totals),
        "the ids are not free yet"
    );
}

#[test]
fn a_log_in_which_nothing_is_left_disappears() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 99 60 COST 4 PACKED");
    redis.int("SLIDEWIN.CHECK k 99 60 COST 4 PACKED");
    server.clock().step(2);
    assert_eq!(redis.int(&format!("SLIDEWIN.REFUND k {NOW} COST 4")), 4);
    assert_eq!(redis.int("EXISTS k"), 1);
    assert_eq!(
        redis.int(&format!("SLIDEWIN.REFUND k {} COST 4", NOW + 1)),
        4
    );
    assert_eq!(redis.int("EXISTS k"), 0);
}

#[test]
fn thousands_of_refunded_calls_leave_a_small_log() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 99 60 PACKED");
    for call in 1..=5_000 {
        server.clock().step(10);
        assert_eq!(redis.int("SLIDEWIN.CHECK k 99 60 COST 7"), 1);
        assert_eq!(
            redis.int(&format!("SLIDEWIN.REFUND k {} COST 7", NOW + call * 10)),
            7
        );
        assert!(redis.int("STRLEN k") <= 16 * 36);
    }
    assert_eq!(calls(&mut redis), [(NOW, 1)]);
}

/// The same while calls come that nobody gives back.
#[test]
fn what_was_refunded_goes_with_later_calls() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    for call in 0..400 {
        redis.int("SLIDEWIN.CHECK k 999 60 PACKED");
        if call < 200 {
            redis.int(&format!("SLIDEWIN.REFUND k {}", NOW + call * 10));
        }
        server.clock().step(10);
    }
    assert_eq!(calls(&mut redis).len(), 200);
    assert!(redis.int("STRLEN k") <= 16 * (1 + 250));
}

#[test]
fn what_has_run_out_goes_when_it_is_half() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 999999 1 PACKED";
    let mut longest = 0;
    for _ in 0..500 {
        redis.int(check);
        longest = longest.max(redis.int("STRLEN k"));
        server.clock().step(20_000);
    }
    assert!(
        (16 * 98..=16 * 103).contains(&longest),
        "50 live ones: {longest}"
    );
    assert_eq!(redis.numbers("SLIDEWIN.PEEK k 999999 1 WITHINFO")[6], 49);
    server.clock().step(SECOND);
    redis.int(check);
    assert_eq!(redis.int("STRLEN k"), 32, "all had run out");
    assert_eq!(redis.int("PTTL k"), 1_000);
}

/// Case 97 and the horizon, for this form.
#[test]
fn impossible_entries_are_cut_off() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    put(
        &mut redis,
        &bytes(
            7,
            &[
                (NOW - 1, 8),
                (NOW + 2 * MINUTE + 2, 9),
                (NOW + 2 * MINUTE + 4, 12),
            ],
        ),
    );
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60 SKIPDENIED"), 0);
    assert_eq!(calls(&mut redis), [(NOW + 2 * MINUTE + 2, 1), (NOW - 1, 1)]);
    server.clock().step(-5);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 2 60"), 1);
    assert_eq!(value(&mut redis), bytes(7, &[(NOW - 5, 8), (NOW - 1, 9)]));
    assert_eq!(redis.int("PTTL k"), 60_001);
}

#[test]
fn effects_are_plain_string_commands() {
    let mut server = persistent();
    let mut redis = server.connect();
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let expires = |at: i64| {
        format!(
            "PEXPIREAT k {}",
            at.div_euclid(1_000) + 60_000 + i64::from(at % 1_000 > 0)
        )
    };
    let check = "SLIDEWIN.CHECK k 3 60 COST 2 PACKED";

    let new = bytes(0, &[(NOW, 2)]);
    let log = appended(&server, &mut redis, check);
    assert_eq!(
        log[1..3],
        [format!("APPEND k {}", text(&new)), expires(NOW)]
    );

    server.clock().step(SECOND);
    let log = appended(&server, &mut redis, check);
    let entry = &bytes(0, &[(NOW + SECOND, 4)])[16..];
    let base = text(&1_u64.to_le_bytes());
    assert_eq!(
        log[1..4],
        [
            format!("SETRANGE k 8 {base}"),
            format!("APPEND k {}", text(entry)),
            expires(NOW + SECOND),
        ]
    );

    server.clock().step(-2 * SECOND);
    let log = appended(&server, &mut redis, "SLIDEWIN.CHECK k 9 60");
    let tail = &bytes(0, &[(NOW - SECOND, 2), (NOW, 3), (NOW + SECOND, 5)])[16..];
    assert_eq!(log, [format!("SETRANGE k 16 {}", text(tail))]);

    let refund = format!("SLIDEWIN.REFUND k {NOW} COST 2");
    let log = appended(&server, &mut redis, &refund);
    let tail = &bytes(0, &[(NOW, 2), (NOW + SECOND, 4)])[16..];
    assert_eq!(log, [format!("SETRANGE k 32 {}", text(tail))]);

    assert_eq!(
        appended(&server, &mut redis, "SLIDEWIN.CHECK k 1 60 SKIPDENIED"),
        [""; 0]
    );
    assert_eq!(appended(&server, &mut redis, &refund), [""; 0]);
}

/// A rewrite keeps the expiry, which SET would take away.
#[test]
fn a_rewrite_is_told_as_one_value_and_its_expiry() {
    let server = persistent();
    let mut redis = server.connect();
    let old = (0..16).map(|n| (NOW - MINUTE - 16 + n, 1 + n.unsigned_abs()));
    let live = (0..3).map(|n| (NOW - 3 + n, 17 + n.unsigned_abs()));
    put(&mut redis, &bytes(0, &old.chain(live).collect::<Vec<_>>()));
    redis.run::<i64>("PEXPIRE k 90000");
    let log = appended(&server, &mut redis, "SLIDEWIN.CHECK k 3 60 SKIPDENIED");
    let left = bytes(16, &[(NOW - 3, 17), (NOW - 2, 18), (NOW - 1, 19)]);
    assert_eq!(value(&mut redis), left);
    let expected = [
        format!("SET k {}", String::from_utf8_lossy(&left)),
        format!("PEXPIREAT k {}", NOW / 1_000 + 90_000),
    ];
    assert_eq!(log[1..3], expected);
    assert_eq!(redis.int("PTTL k"), 90_000);
    assert_eq!(redis.info_number("slidewin", "slidewin_trimmed"), 16);
}

#[test]
fn events_are_those_of_the_string_commands() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 60 PACKED";
    let new = |events: &[&str]| -> Vec<String> {
        let events = events
            .iter()
            .filter(|event| !(is_redis_6() && event.starts_with("new")));
        events.map(|event| (*event).to_owned()).collect()
    };
    let first = events(&server, || redis.int(check));
    assert_eq!(first, new(&["new k", "append k", "expire k"]));
    server.clock().step(SECOND);
    assert_eq!(
        events(&server, || redis.int(check)),
        ["append k", "expire k"]
    );
    server.clock().step(SECOND);
    assert_eq!(
        events(&server, || redis.int(check)),
        ["setrange k", "append k", "expire k"]
    );
    redis.run::<i64>("PERSIST k");
    server.clock().step(2 * MINUTE);
    let anew = events(&server, || redis.int(check));
    assert_eq!(anew, new(&["del k", "new k", "append k", "expire k"]));
    server.clock().step(1);
    let refund = format!("SLIDEWIN.REFUND k {}", NOW + 2 * MINUTE + 2 * SECOND);
    assert_eq!(events(&server, || redis.int(&refund)), ["del k"]);
}

/// Somebody else's commands between calls: what is no log any more is refused, untouched.
#[test]
fn others_may_write_to_the_value() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60 PACKED");
    redis.run::<i64>("APPEND k x");
    let before = value(&mut redis);
    for line in [
        "SLIDEWIN.CHECK k 9 60 PACKED",
        "SLIDEWIN.PEEK k 9 60",
        "SLIDEWIN.ENTRIES k",
    ] {
        assert!(redis.error(line).starts_with("WRONGTYPE "), "{line}");
    }
    assert_eq!(value(&mut redis), before);
    redis.run::<i64>("APPEND k 0123456789abcde");
    assert!((0..=1).contains(&redis.int("SLIDEWIN.CHECK k 9 60")));
    redis.run::<i64>("SETRANGE k 0 Slide");
    assert!(redis
        .error("SLIDEWIN.CHECK k 9 60")
        .starts_with("WRONGTYPE "));
}

/// 512 MB is what a string can have; a call that is denied, or drops what has run out, goes on.
#[test]
#[ignore = "needs gigabytes; run by make soak"]
fn a_log_of_the_largest_string_is_full() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let largest = 512 << 20;
    redis.send::<i64>(&[
        b"SETRANGE",
        b"k",
        (largest - 16).to_string().as_bytes(),
        &[0; 16],
    ]);
    redis.send::<i64>(&[b"SETRANGE", b"k", b"0", &bytes(0, &[])]);
    let started = Instant::now();
    assert_eq!(
        redis.int("SLIDEWIN.CHECK k 9 60"),
        1,
        "all of it has run out"
    );
    println!("| 512 MB of zeros, dropped | {:?} |", started.elapsed());
    assert_eq!(redis.int("STRLEN k"), 32);

    redis.int("DEL k");
    let entries: Vec<(i64, u64)> = (0..1 << 20)
        .map(|n| (NOW - (1 << 20) + n, 1 + n.unsigned_abs()))
        .collect();
    let million = &bytes(0, &entries)[16..];
    redis.send::<()>(&[b"SET", b"k", &bytes(0, &[])]);
    for block in 0..32_i64 {
        let shifted: Vec<u8> = (0..1 << 20)
            .flat_map(|n| {
                let at = (block << 20) + n;
                [NOW - (32 << 20) + at, at + 1]
                    .map(i64::to_le_bytes)
                    .concat()
            })
            .collect();
        let part = if block == 31 {
            &shifted[..shifted.len() - 16]
        } else {
            &shifted
        };
        assert_eq!(part.len() % 16, 0);
        redis.send::<i64>(&[b"APPEND", b"k", part]);
    }
    assert_eq!(million.len(), 16 << 20);
    assert_eq!(redis.int("STRLEN k"), largest);
    let started = Instant::now();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 9 600 SKIPDENIED"), 0);
    println!("| 512 MB, denied | {:?} |", started.elapsed());
    assert_eq!(
        redis.error("SLIDEWIN.CHECK k 9000000000 600"),
        "ERR log is full"
    );
    assert_eq!(redis.int("STRLEN k"), largest);
}

/// A time ahead by less than a step: what the units of a sorted set take, beside a step of the clock.
const STEP: i64 = 50_000;

/// Rules whose windows end between two steps of the clock.
fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule =
        (1..3_000_i64, 1..20_i64).prop_map(|(limit, steps)| (limit, steps * STEP + STEP / 2));
    vec(rule, 1..4)
}

/// Asserts that two replies say the same, but for ids and as many microseconds as there are units.
fn assert_same(set: &WithInfo, packed: &WithInfo, units: i64) {
    let near =
        |one: i64, other: i64| (one - other).abs() <= 1 + units / 1_000 && (one < 0) == (other < 0);
    assert_eq!(set.numbers[0], packed.numbers[0], "{set:?} {packed:?}");
    assert_eq!(set.rules.len(), packed.rules.len());
    for (one, other) in set.rules.iter().zip(&packed.rules) {
        assert_eq!(one[..4], other[..4], "{set:?} {packed:?}");
        let waits = near(one[4], other[4]) && near(one[5], other[5]);
        assert!(waits, "{set:?} {packed:?}");
    }
    if set.rules.is_empty() {
        for field in [1, 2, 6] {
            assert_eq!(
                set.numbers[field], packed.numbers[field],
                "{set:?} {packed:?}"
            );
        }
        let waits = [4, 5].map(|field| near(set.numbers[field], packed.numbers[field]));
        assert_eq!(waits, [true; 2], "{set:?} {packed:?}");
    }
    // With several rules, whichever binds: a microsecond may decide between two.
    assert!(
        near(set.numbers[3], packed.numbers[3]),
        "{set:?} {packed:?}"
    );
}

/// The same calls on a key of either form: the same answers, with any mix of costs and rules.
#[test]
fn both_forms_answer_the_same() {
    let calls = vec((1..1_000_i64, 1..6_i64, any::<bool>()), 1..40);
    check(150, &(rules(), calls), |bench, (rules, calls)| {
        let rules = words(&rules);
        let mut recorded = 0;
        for (cost, steps, skip_denied) in calls {
            bench.step(steps * STEP);
            let skip = if skip_denied { " SKIPDENIED" } else { "" };
            let peek = |key| format!("SLIDEWIN.PEEK {key} {rules} COST {cost} WITHINFO");
            let check =
                |key| format!("SLIDEWIN.CHECK {key} {rules} COST {cost} PACKED WITHINFO{skip}");
            let first = check("set").replace(" PACKED", "");
            let redis = &mut bench.redis;
            assert_same(
                &redis.with_info(&peek("set")),
                &redis.with_info(&peek("k")),
                recorded,
            );
            recorded += cost;
            assert_same(
                &redis.with_info(&first),
                &redis.with_info(&check("k")),
                recorded,
            );
        }
    });
}

/// The same with refunds in part, of any call that stands, where denials leave no trace. (No two calls
/// come at one instant: what one gave back of a sorted set, the other might take.)
#[test]
fn both_forms_answer_the_same_beside_refunds() {
    let call = (1..1_000_i64, 1..6_i64, 0..3_usize, 0..100_i64);
    check(
        150,
        &(rules(), vec(call, 1..40)),
        |bench, (rules, calls)| {
            let longest = rules.iter().map(|rule| rule.1).max().unwrap();
            let rules = words(&rules);
            let mut granted: Vec<(i64, i64, i64)> = Vec::new();
            let mut recorded = 0;
            for (cost, steps, refunds, percent) in calls {
                bench.step(steps * STEP);
                let now = bench.now();
                let redis = &mut bench.redis;
                let options = format!("{rules} COST {cost} SKIPDENIED WITHINFO");
                let set = redis.with_info(&format!("SLIDEWIN.CHECK set {options}"));
                let packed = redis.with_info(&format!("SLIDEWIN.CHECK k {options} PACKED"));
                recorded += cost;
                assert_same(&set, &packed, recorded);
                if set.numbers[0] == 1 {
                    granted.push((set.id, packed.id, cost));
                }
                for _ in 0..refunds.min(granted.len()) {
                    let which = usize::try_from(percent).unwrap() % granted.len();
                    let (in_set, in_packed, cost) = granted.swap_remove(which);
                    let keep = cost * percent / 100;
                    let mut refund = |key: &str, id| {
                        redis.int(&format!(
                            "SLIDEWIN.REFUND {key} {id} COST {cost} KEEP {keep}"
                        ))
                    };
                    let (one, other) = (refund("set", in_set), refund("k", in_packed));
                    // Of a call that has run out, the reply hangs on what was trimmed already.
                    if in_packed > now - longest {
                        assert_eq!(one, other);
                    }
                }
            }
        },
    );
}

/// Under a clock that steps back and forth, so far that nothing is impossible, a packed log may count
/// what a sorted set has forgotten, never less.
#[test]
fn a_packed_log_never_allows_what_a_sorted_set_denies() {
    let calls = vec((1..400_i64, 0..21_i64, any::<bool>()), 1..40);
    check(150, &(rules(), calls), |bench, (rules, calls)| {
        let longest = rules.iter().map(|rule| rule.1).max().unwrap();
        let rules = words(&rules);
        for (cost, steps, skip_denied) in calls {
            bench.set(NOW + steps.min(longest / STEP) * STEP);
            let skip = if skip_denied { " SKIPDENIED" } else { "" };
            let mut answer = |key: &str, packed: &str| {
                let line = format!("SLIDEWIN.CHECK {key} {rules} COST {cost}{packed}{skip}");
                bench.redis.int(&line)
            };
            let (set, packed) = (answer("set", ""), answer("k", " PACKED"));
            assert!(packed <= set, "allowed what the sorted set denied");
            if packed < set {
                return; // from here on the two hold different calls
            }
        }
    });
}

/// Costs up to a billion, against a list of calls.
#[test]
fn any_cost_is_counted_exactly() {
    let rules = vec((1..4_000_000_000_i64, 20_000..200_000_i64), 1..4);
    let calls = vec((1..1_000_000_000_i64, 0..40_000_i64, any::<bool>()), 1..30);
    check(150, &(rules, calls), |bench, (rules, calls)| {
        let mut log: Vec<(i64, i64)> = Vec::new();
        let used = |log: &[(i64, i64)], window: i64, now: i64| -> i64 {
            let live = log.iter().filter(|call| call.0 > now - window);
            live.map(|call| call.1).sum()
        };
        for (cost, step, refund) in calls {
            bench.step(step);
            let now = bench.now();
            let line = format!(
                "SLIDEWIN.CHECK k {} COST {cost} PACKED SKIPDENIED WITHINFO",
                words(&rules)
            );
            let reply = bench.redis.with_info(&line);
            let fits = |rule: &Rule| used(&log, rule.1, now) + cost <= rule.0;
            assert_eq!(reply.numbers[0], i64::from(rules.iter().all(fits)));
            if reply.numbers[0] == 1 {
                log.push((reply.id, cost));
                if refund {
                    let keep = cost / 3;
                    let line = format!("SLIDEWIN.REFUND k {} COST {cost} KEEP {keep}", reply.id);
                    assert_eq!(bench.redis.int(&line), cost - keep);
                    log.last_mut().unwrap().1 = keep;
                }
            }
            for (index, (limit, window)) in rules.iter().enumerate() {
                let peek = format!("SLIDEWIN.PEEK k {} WITHINFO", words(&[rules[index]]));
                let used = used(&log, *window, now);
                assert_eq!(bench.redis.numbers(&peek)[6], used);
                assert_eq!(bench.redis.numbers(&peek)[2], (limit - used).max(0));
            }
        }
    });
}

/// Waits are those of a list, to the millisecond.
#[test]
fn waits_are_exact() {
    let rules = vec((1..12_i64, 20_000..200_000_i64), 1..4);
    let calls = vec((1..5_i64, 2_000..40_000_i64, any::<bool>()), 1..40);
    check(150, &(rules, calls), |bench, (rules, calls)| {
        let most = rules.iter().map(|rule| rule.0).max().unwrap();
        let mut log = Oracle::default();
        for (units, step, skip_denied) in calls {
            bench.step(step);
            let now = bench.now();
            let skip = if skip_denied { " SKIPDENIED" } else { "" };
            let line = format!(
                "SLIDEWIN.CHECK k {} COST {units} PACKED WITHINFO{skip}",
                words(&rules)
            );
            let reply = bench.redis.with_info(&line);
            let allowed = log.allows(&rules, units, now);
            if allowed || !skip_denied {
                log.add(units.min(most), now);
            }
            let wait = if allowed {
                0
            } else {
                log.retry_after_ms(&rules, units, now)
            };
            assert_eq!(
                [reply.numbers[0], reply.numbers[3]],
                [i64::from(allowed), wait]
            );
        }
    });
}

/// Large logs: no call holds the server, and what stands above a refund is rewritten at once.
#[test]
fn large_logs_stay_exact_and_quick() {
    let server = Server::start();
    let mut redis = server.connect();
    let now = redis.time();
    let entries: Vec<(i64, u64)> = (0..200_000)
        .map(|n| (now - MINUTE + n * 100, 1 + n.unsigned_abs()))
        .collect();
    put(&mut redis, &bytes(0, &entries));
    let started = Instant::now();
    assert_eq!(redis.int("SLIDEWIN.CHECK k 200001 3600 SKIPDENIED"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 200001 3600 SKIPDENIED"), 0);
    let refund = format!("SLIDEWIN.REFUND k {}", entries[0].0);
    assert_eq!([redis.int(&refund), redis.int(&refund)], [1, 0]);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 200001 3600 SKIPDENIED"), 1);
    assert_eq!(
        redis.numbers("SLIDEWIN.PEEK k 300000 3600 WITHINFO")[6],
        200_001
    );
    assert!(started.elapsed() < Duration::from_secs(5));
}
