//! Replicas, the append-only file and snapshots hold what the master holds, and so does whoever
//! takes over.

use crate::support::{is_redis_6, wait_until, Client, Server, Settings, Stop, SECOND};
use redis::Value;
use std::time::Duration;

const LIBRARY: &str = "#!lua name=limits\n\
    redis.register_function('limited', function(keys, args) \
        return redis.call('SLIDEWIN.CHECK', keys[1], args[1], args[2]) \
    end)";

/// Gives back up to so many units, from one of the newest entries on.
fn refund(redis: &mut Client, key: &str, cost: i64) -> String {
    let newest: Vec<(i64, i64)> = redis.run(&format!("SLIDEWIN.ENTRIES {key} COUNT 2"));
    let id = newest.last().map_or(7, |entry| entry.0);
    format!("SLIDEWIN.REFUND {key} {id} COST {cost}")
}

/// Traffic of every kind on a handful of keys.
fn mixed_traffic(redis: &mut Client, seed: u64) {
    let script = "return redis.call('SLIDEWIN.CHECK', KEYS[1], ARGV[1], ARGV[2])";
    if !is_redis_6() {
        let load = [
            b"FUNCTION",
            b"LOAD".as_slice(),
            b"REPLACE",
            LIBRARY.as_bytes(),
        ];
        redis.send::<String>(&load);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..400 {
        let key = format!("k{}", random.u32(0..7));
        let packed = format!("p{}", random.u32(0..7));
        let limit = random.u32(0..6);
        match random.u32(0..16) {
            10 => drop(
                redis.run::<Value>(&format!("SLIDEWIN.CHECK {packed} {limit} 60 COST 7 PACKED")),
            ),
            11 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {packed} 400 0.01 PACKED"))),
            12 => {
                drop(redis.run::<Value>(&format!("SLIDEWIN.RESERVE {packed} {limit} 60 9000 60")));
            }
            13 => drop(redis.run::<Value>(&format!(
                "SLIDEWIN.CHECKALL {packed} 300 60 3 {key} 300 60 3"
            ))),
            14 => {
                let newest: Vec<(i64, i64)> =
                    redis.run(&format!("SLIDEWIN.ENTRIES {packed} COUNT 3"));
                if let Some((id, units)) = newest.last() {
                    redis.run::<Value>(&format!(
                        "SLIDEWIN.REFUND {packed} {id} COST {units} KEEP 1"
                    ));
                }
            }
            15 => drop(redis.run::<Value>(&format!(
                "SLIDEWIN.CHECK {packed} 9 60 COST 5 PACKED SKIPDENIED"
            ))),
            0 | 1 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} {limit} 60"))),
            2 => drop(
                redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} 4 0.02 {limit} 0.5 WITHINFO")),
            ),
            3 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} {limit} 60 SKIPDENIED"))),
            4 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} 200 60 COST 140"))),
            5 => {
                let refund = refund(redis, &key, 3);
                redis.run::<Value>(&refund);
            }
            6 => drop(redis.run::<Value>(&format!("SLIDEWIN.PEEK {key} {limit} 60"))),
            7 => {
                let check = format!("SLIDEWIN.CHECK {key} {limit} 60");
                let refund = refund(redis, "k1", 1);
                redis.transaction(&[&check, &refund, &check, &check]);
            }
            kind => {
                let limit = limit.to_string();
                let arguments = [b"1", key.as_bytes(), limit.as_bytes(), b"60"];
                let call = if kind == 8 || is_redis_6() {
                    [b"EVAL", script.as_bytes()]
                } else {
                    [b"FCALL", b"limited".as_slice()]
                };
                redis.send::<i64>(&[call.as_slice(), arguments.as_slice()].concat());
            }
        }
    }
    for n in 0..7 {
        // No key expires while it is compared.
        redis.run::<Value>(&format!("SLIDEWIN.CHECK k{n} 200 60"));
        redis.run::<Value>(&format!("SLIDEWIN.CHECK p{n} 200 60 PACKED"));
    }
}

/// Every key with its entries, or its bytes, and its expiry.
fn content(redis: &mut Client) -> Vec<(String, Vec<i64>, Vec<u8>, i64)> {
    let mut keys: Vec<String> = redis.run("KEYS *");
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let is_string = redis.run::<String>(&format!("TYPE {key}")) == "string";
            let (entries, bytes) = if is_string {
                (Vec::new(), redis.run(&format!("GET {key}")))
            } else {
                (redis.entries(&key), Vec::new())
            };
            let expiry = redis.expires_at(&key);
            (key, entries, bytes, expiry)
        })
        .collect()
}

/// Every key's serialized bytes. (Loading a file may change the encoding, replication does not.)
fn dumps(redis: &mut Client) -> Vec<Vec<u8>> {
    let mut keys: Vec<String> = redis.run("KEYS *");
    keys.sort();
    let dump = |key| redis.run(&format!("DUMP {key}"));
    keys.into_iter().map(dump).collect()
}

fn replica_of(master: &Server, settings: Settings) -> Server {
    let replica = settings.start();
    let mut redis = replica.connect();
    redis.run::<()>(&format!("REPLICAOF 127.0.0.1 {}", master.port()));
    wait_until("the replica is in sync", || {
        redis.info("replication", "master_link_status") == "up"
    });
    replica
}

/// Cases 9, 26, 32 and 66: replicas decide nothing, and need no module.
#[test]
fn replicas_hold_the_masters_bytes() {
    let master = Settings::new().tcp().start();
    let with_module = replica_of(&master, Settings::new());
    let without_module = replica_of(&master, Settings::bare());
    let mut redis = master.connect();
    mixed_traffic(&mut redis, 1);
    assert_eq!(redis.int("WAIT 2 10000"), 2);
    let expected = content(&mut redis);
    assert!(expected.len() > 3);
    for replica in [&with_module, &without_module] {
        assert_eq!(content(&mut replica.connect()), expected);
        assert!(dumps(&mut replica.connect()) == dumps(&mut redis));
    }

    let offset = redis.info("replication", "master_repl_offset");
    redis.int("SLIDEWIN.CHECK k0 0 60 SKIPDENIED");
    redis.int("SLIDEWIN.PEEK k0 0 60");
    assert_eq!(redis.info("replication", "master_repl_offset"), offset);
}

/// The module does not keep a replica from loading straight from the socket, beside its old data.
#[test]
fn a_replica_may_load_without_its_disk() {
    let master = Settings::new().tcp().start();
    mixed_traffic(&mut master.connect(), 4);
    let replica = replica_of(
        &master,
        Settings::new().options("--repl-diskless-load swapdb"),
    );
    let log = replica.log();
    assert!(!log.contains("Skipping diskless-load"), "{log}");
    let expected = content(&mut master.connect());
    assert_eq!(content(&mut replica.connect()), expected);
}

/// Case 9: replicas whose own clocks are wrong hold the same.
#[test]
fn a_replicas_clock_does_not_matter() {
    let master = Settings::new().tcp().start();
    let ahead = replica_of(&master, Settings::new().ahead_by(3 * SECOND));
    let behind = replica_of(&master, Settings::new().ahead_by(-3 * SECOND));
    let mut redis = master.connect();
    for n in 0..100 {
        redis.int(&format!("SLIDEWIN.CHECK k{} 5 60", n % 10));
    }
    assert_eq!(redis.int("WAIT 2 10000"), 2);
    let expected = content(&mut redis);
    assert_eq!(content(&mut ahead.connect()), expected);
    assert_eq!(content(&mut behind.connect()), expected);
}

/// Case 65: a key that expires when a call looks at it disappears everywhere.
#[test]
fn an_expired_log_disappears_from_replicas() {
    let master = Settings::new().tcp().start();
    let replica = replica_of(&master, Settings::bare());
    let mut redis = master.connect();
    redis.run::<()>("DEBUG SET-ACTIVE-EXPIRE 0");
    for n in 0..20 {
        redis.int(&format!("SLIDEWIN.CHECK k{n} 5 0.05"));
    }
    std::thread::sleep(Duration::from_millis(60));
    for n in 0..20 {
        assert_eq!(
            redis.int(&format!("SLIDEWIN.CHECK k{n} 0 0.05 SKIPDENIED")),
            0
        );
    }
    assert_eq!(redis.int("WAIT 1 10000"), 1);
    assert_eq!(redis.int("DBSIZE"), 0);
    assert_eq!(replica.connect().int("DBSIZE"), 0);
}

/// Case 20: writes are the master's; a peek is a read.
#[test]
fn a_replica_refuses_writes_and_peeks() {
    let master = Settings::new().tcp().start();
    let replica = replica_of(&master, Settings::new());
    let mut redis = master.connect();
    redis.int("SLIDEWIN.CHECK k 1 60");
    redis.int("WAIT 1 10000");
    let mut reader = replica.connect();
    for line in ["SLIDEWIN.CHECK k 5 60", "SLIDEWIN.REFUND k 7"] {
        let error = reader.error(line);
        assert_eq!(
            error,
            "READONLY You can't write against a read only replica."
        );
    }
    assert_eq!(reader.int("SLIDEWIN.PEEK k 1 60"), 0);
    assert_eq!(reader.int("SLIDEWIN.PEEK k 2 60"), 1);
    assert_eq!(reader.int("ZCARD k"), 1);
}

/// Cases 8 and 26: the append-only file holds plain commands in balanced transactions.
#[test]
fn the_append_only_file_replays_without_the_module() {
    let settings = Settings::new().options("--appendonly yes --appendfsync always");
    let master = settings.start();
    let mut redis = master.connect();
    mixed_traffic(&mut redis, 2);
    let mut in_transaction = false;
    for command in master.append_only_file() {
        match command.split(' ').next().unwrap() {
            "MULTI" => assert!(!std::mem::replace(&mut in_transaction, true)),
            "EXEC" => assert!(std::mem::replace(&mut in_transaction, false)),
            "ZADD" | "ZREMRANGEBYRANK" | "ZREMRANGEBYSCORE" | "APPEND" | "SETRANGE" | "SET"
            | "PEXPIREAT" | "UNLINK" | "DEL" | "FUNCTION" => {}
            _ => panic!("not a plain command: {command}"),
        }
    }
    assert!(!in_transaction);
    let expected = content(&mut redis);
    redis.run::<()>("DEBUG LOADAOF");
    assert_eq!(content(&mut redis), expected);
    redis.run::<()>("DEBUG RELOAD");
    assert_eq!(content(&mut redis), expected);

    let bare = Settings::bare().options("--appendonly yes");
    let copy = bare.start_from(&master);
    assert_eq!(content(&mut copy.connect()), expected);
}

/// A snapshot is read by a server that has never heard of the module.
#[test]
fn a_snapshot_loads_without_the_module() {
    let master = Server::start();
    let mut redis = master.connect();
    mixed_traffic(&mut redis, 3);
    redis.run::<()>("SAVE");
    let copy = Settings::bare().start_from(&master);
    assert_eq!(content(&mut copy.connect()), content(&mut redis));
}

/// A rewrite of the append-only file in the middle of traffic loses and doubles nothing.
#[test]
fn a_rewrite_under_traffic_keeps_every_entry() {
    let settings = Settings::new().options("--appendonly yes --appendfsync always");
    let mut server = settings.start();
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let mut redis = server.connect();
        let stop = &stop;
        scope.spawn(move || {
            let seeds = (0..).take_while(|_| !stop.is_set());
            seeds.for_each(|seed| mixed_traffic(&mut redis, seed));
        });
        stop.after(|| {
            let mut operator = server.connect();
            for _ in 0..3 {
                operator.run::<Value>("BGREWRITEAOF");
                wait_until("the rewrite ends", || {
                    operator.info("persistence", "aof_rewrite_in_progress") == "0"
                        && operator.info("persistence", "aof_rewrite_scheduled") == "0"
                });
            }
        });
    });
    let expected = content(&mut server.connect());
    assert!(expected.len() > 3);
    server.kill_and_restart();
    assert_eq!(content(&mut server.connect()), expected);
}

/// kill -9 under load, with every write on disk before its reply: every acknowledged unit is there,
/// and no unit that was not asked for.
#[test]
fn a_killed_master_keeps_every_acknowledged_entry() {
    let settings = Settings::new().options("--appendonly yes --appendfsync always");
    let mut server = settings.start();
    let mut entries = 0;
    for round in 0..20 {
        let (acknowledged, asked) = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    let mut redis = server.connect();
                    scope.spawn(move || {
                        let check: [&[u8]; 4] = [b"SLIDEWIN.CHECK", b"k", b"1000000", b"3600"];
                        let answers = std::iter::from_fn(|| redis.try_send::<i64>(&check).ok());
                        answers.sum::<i64>()
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(20 + round));
            server.kill_and_restart();
            let acknowledged: i64 = callers
                .into_iter()
                .map(|caller| caller.join().unwrap())
                .sum();
            (acknowledged, acknowledged + 4)
        });
        let added = server.connect().int("ZCARD k") - entries;
        assert!(
            (acknowledged..=asked).contains(&added),
            "{acknowledged} acknowledged, {added} there"
        );
        assert!(acknowledged > 0);
        entries += added;
    }
}

/// Cases 32 and 67: the promoted replica goes on counting where the master stopped.
#[test]
fn a_promoted_replica_goes_on_counting() {
    let master = Settings::new().tcp().start();
    let replica = replica_of(&master, Settings::bare());
    let mut redis = master.connect();
    for _ in 0..50 {
        redis.int("SLIDEWIN.CHECK k 60 3600");
    }
    assert_eq!(redis.int("WAIT 1 10000"), 1);
    drop(master);
    let mut redis = replica.connect();
    redis.run::<()>("REPLICAOF NO ONE");
    assert!(redis
        .error("SLIDEWIN.CHECK k 60 3600")
        .starts_with("ERR unknown command"));
    assert_eq!(redis.int("ZCARD k"), 50);
    let load = format!("MODULE LOAD {}", crate::support::module().display());
    redis.run::<()>(&load);
    assert_eq!(
        redis.numbers("SLIDEWIN.CHECK k 60 3600 WITHINFO")[..3],
        [1, 60, 9]
    );
}
