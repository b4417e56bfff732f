//! Replicas, the append-only file and snapshots hold what the master holds.

use crate::support::{wait_until, Client, Server, Settings};
use redis::Value;

/// Traffic of every kind, on a handful of keys.
fn mixed_traffic(redis: &mut Client, seed: u64) {
    let script = "return redis.call('SLIDEWIN.CHECK', KEYS[1], ARGV[1], ARGV[2])";
    let mut random = seed;
    for _ in 0..400 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let key = format!("k{}", (random >> 33) % 7);
        let limit = (random >> 40) % 6;
        match (random >> 50) % 9 {
            0 | 1 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} {limit} 60"))),
            2 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} 4 0.02 {limit} 0.5"))),
            3 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} {limit} 60 SKIPDENIED"))),
            4 => drop(redis.run::<Value>(&format!("SLIDEWIN.CHECK {key} 200 60 COST 140"))),
            5 => drop(redis.run::<Value>(&format!("SLIDEWIN.REFUND {key} COUNT 3"))),
            6 => {
                let check = format!("SLIDEWIN.CHECK {key} {limit} 60");
                redis.transaction(&[&check, "SLIDEWIN.REFUND k1", &check, &check]);
            }
            7 => {
                let limit = limit.to_string();
                redis.send::<i64>(&[
                    b"EVAL",
                    script.as_bytes(),
                    b"1",
                    key.as_bytes(),
                    limit.as_bytes(),
                    b"60",
                ]);
            }
            _ => drop(redis.run::<Value>(&format!("SLIDEWIN.PEEK {key} {limit} 60"))),
        }
    }
}

/// Every key with its bytes and its expiry.
fn content(redis: &mut Client) -> Vec<(String, Vec<u8>, i64)> {
    let mut keys: Vec<String> = redis.run("KEYS *");
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let dump = redis.run(&format!("DUMP {key}"));
            let expiry = redis.int(&format!("PEXPIRETIME {key}"));
            (key, dump, expiry)
        })
        .collect()
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
    assert_eq!(content(&mut with_module.connect()), expected);
    assert_eq!(content(&mut without_module.connect()), expected);
}
