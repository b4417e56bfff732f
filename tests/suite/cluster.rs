//! A real cluster: calls find their node, during migration and failover too.

use crate::support::{server_version, slot, wait_until, Client, Cluster, Server, Settings, Stop};
use std::time::Duration;

/// Cases 30, 31 and 70: a generic command call is routed by its first argument, and a call touches
/// no key but the one named.
#[test]
fn a_thousand_keys_spread_over_the_masters() {
    let cluster = Cluster::start();
    let mut redis = cluster.connect();
    for n in 0..1_000 {
        let answer: i64 = redis::cmd("SLIDEWIN.CHECK")
            .arg(format!("user:{n}"))
            .arg(&["5", "60"])
            .query(&mut redis)
            .unwrap();
        assert_eq!(answer, 1);
    }
    let mut keys = Vec::new();
    for master in cluster.masters() {
        let found: Vec<String> = master.connect().run("KEYS *");
        assert!(found.len() > 200, "{} keys on one of three", found.len());
        keys.extend(found);
    }
    keys.sort();
    let mut expected: Vec<String> = (0..1_000).map(|n| format!("user:{n}")).collect();
    expected.sort();
    assert_eq!(keys, expected);
}

/// Cases 20, 30 and 31: the wrong node says where to go, a replica too; a hash tag keeps keys together.
#[test]
fn the_wrong_node_answers_moved() {
    let cluster = Cluster::start();
    let mut client = cluster.nodes[0].connect();
    let slot = slot(&mut client, "user:1");
    let right = cluster.master_of(slot);
    let moved = format!("MOVED {slot} 127.0.0.1:{}", right.port());
    for node in &cluster.nodes {
        let mut redis = node.connect();
        if node.port() == right.port() {
            assert_eq!(redis.int("SLIDEWIN.CHECK user:1 5 60"), 1);
        } else {
            for line in [
                "SLIDEWIN.CHECK user:1 5 60",
                "SLIDEWIN.PEEK user:1 5 60",
                "SLIDEWIN.REFUND user:1 7",
                "SLIDEWIN.CHECKALL user:1 5 60 1 {user:1}:b 5 60 1",
                "SLIDEWIN.RESERVE user:1 5 60",
                "SLIDEWIN.ENTRIES user:1",
            ] {
                assert_eq!(redis.error(line), moved);
            }
        }
    }
    let mut redis = right.connect();
    let crossing = "SLIDEWIN.CHECKALL user:1 5 60 1 user:2 5 60 1";
    assert!(redis.error(crossing).starts_with("CROSSSLOT "));
    let together = "SLIDEWIN.CHECKALL {user:1}:a 5 60 1 {user:1}:b 5 60 1";
    assert_eq!(redis.numbers(together)[0], 1);
    assert_eq!(redis.ints("SLIDEWIN.RESERVE {user:1}:jobs 5 60")[0], 1);
    let tagged = |name: &str| format!("{{user:1}}:{name}");
    for name in ["login", "api"] {
        let key = tagged(name);
        assert_eq!(crate::support::slot(&mut client, &key), slot);
    }
}

/// A slot on the move: a log is served where it is, and the count goes on where it arrives.
#[test]
fn a_migrating_slot_answers_ask_and_goes_on_counting() {
    let cluster = Cluster::start();
    let mut client = cluster.nodes[0].connect();
    let slot = slot(&mut client, "user:1");
    let source = cluster.master_of(slot);
    let is_other = |node: &&Server| node.port() != source.port();
    let target = cluster.masters().iter().find(is_other).unwrap();
    let (mut from, mut to) = (source.connect(), target.connect());
    let check = "SLIDEWIN.CHECK user:1 5 60 9 3600 WITHINFO";
    let remaining = |redis: &mut Client| -> i64 {
        let reply: Vec<redis::Value> = redis.run(check);
        redis::from_redis_value(reply[2].clone()).unwrap()
    };

    assert_eq!(remaining(&mut from), 4);
    let both = "SLIDEWIN.CHECKALL {user:1}:a 5 60 1 {user:1}:b 5 60 1";
    assert_eq!(from.numbers(both)[2], 4);
    let (source_id, target_id): (String, String) =
        (from.run("CLUSTER MYID"), to.run("CLUSTER MYID"));
    to.run::<()>(&format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}"));
    from.run::<()>(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}"));
    assert_eq!(remaining(&mut from), 3, "not moved yet");
    for key in ["user:1", "{user:1}:a", "{user:1}:b"] {
        from.run::<()>(&format!("MIGRATE 127.0.0.1 {} {key} 0 5000", target.port()));
    }
    let ask = format!("ASK {slot} 127.0.0.1:{}", target.port());
    assert_eq!(from.error(check), ask);
    assert_eq!(from.error(both), ask);
    to.run::<()>("ASKING");
    assert_eq!(to.numbers(both)[2], 3, "several keys, too");
    to.run::<()>("ASKING");
    assert_eq!(remaining(&mut to), 2, "the count went along");
    for client in [&mut to, &mut from] {
        client.run::<()>(&format!("CLUSTER SETSLOT {slot} NODE {target_id}"));
    }
    assert_eq!(remaining(&mut to), 1);
    let answer: i64 = redis::cmd("SLIDEWIN.PEEK")
        .arg(&["user:1", "5", "60"])
        .query(&mut cluster.connect())
        .unwrap();
    assert_eq!(answer, 1);
}

/// Case 67: a replica takes over under load; nothing acknowledged is lost, nothing counted twice.
#[test]
fn a_failover_under_load_loses_no_entry() {
    let cluster = Cluster::start();
    let mut client = cluster.nodes[0].connect();
    let slot = slot(&mut client, "user:1");
    let master = cluster.master_of(slot);
    let index = cluster
        .nodes
        .iter()
        .position(|node| node.port() == master.port());
    let replica = &cluster.nodes[index.unwrap() + 3];
    let stop = Stop::default();
    let (allowed, failed) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut redis = cluster.connect();
            let (mut allowed, mut failed) = (0, 0);
            while !stop.is_set() {
                let answer: redis::RedisResult<i64> = redis::cmd("SLIDEWIN.CHECK")
                    .arg(&["user:1", "1000000", "3600"])
                    .query(&mut redis);
                match answer {
                    Ok(answer) => allowed += answer,
                    Err(_) => failed += 1,
                }
            }
            (allowed, failed)
        });
        stop.after(|| {
            std::thread::sleep(Duration::from_millis(100));
            let mut promoted = replica.connect();
            let is_master = |redis: &mut Client| redis.info("replication", "role") == "master";
            wait_until("the replica is master", || {
                // Asked again, for a young cluster may lose the request on its bus.
                let _: Result<(), _> = promoted.try_send(&[b"CLUSTER", b"FAILOVER"]);
                std::thread::sleep(Duration::from_millis(1_500));
                is_master(&mut promoted)
            });
            std::thread::sleep(Duration::from_millis(100));
        });
        load.join().unwrap()
    });
    let entries = replica.connect().int("ZCARD user:1");
    assert!(allowed > 0);
    assert!(
        (allowed..=allowed + failed).contains(&entries),
        "{allowed} allowed, {failed} failed, {entries} entries"
    );
}

/// Case 92: all slots at once move to a new node while calls go on, where the server can do that
/// (Valkey 9.1, Redis 8.4): counts, ids and expiries go along, of either form.
#[test]
fn slots_migrate_atomically_under_load() {
    let (is_valkey, version) = (crate::support::is_valkey(), server_version());
    let nodes: Vec<Server> = (0..2).map(|_| Settings::new().cluster().start()).collect();
    let (mut from, mut to) = (nodes[0].connect(), nodes[1].connect());
    let known = if is_valkey {
        "CLUSTER|MIGRATESLOTS"
    } else {
        "CLUSTER|MIGRATION"
    };
    let info: Vec<redis::Value> = from.run(&format!("COMMAND INFO {known}"));
    if info
        .iter()
        .all(|entry| *entry == redis::Value::Nil || *entry == redis::Value::Array(vec![]))
    {
        println!("no such command: {version}");
        return;
    }
    from.run::<()>("CLUSTER ADDSLOTSRANGE 0 16383");
    to.run::<()>(&format!("CLUSTER MEET 127.0.0.1 {}", nodes[0].port()));
    for client in [&mut from, &mut to] {
        wait_until("both nodes see all slots", || {
            let info: String = client.run("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2")
        });
    }
    let target: String = to.run("CLUSTER MYID");
    let stop = Stop::default();
    let (allowed, failed) = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let urls = nodes
                .iter()
                .map(|node| format!("redis://127.0.0.1:{}", node.port()));
            let client = redis::cluster::ClusterClient::new(urls).unwrap();
            let mut redis = client.get_connection().unwrap();
            let mut allowed = vec![0; 200];
            let mut failed = 0;
            for call in (0..).take_while(|_| !stop.is_set()) {
                let key = call % 200;
                let mut check = redis::cmd("SLIDEWIN.CHECK");
                check.arg(format!("k{key}")).arg("1000000").arg("3600");
                if key % 2 == 0 {
                    check.arg("PACKED");
                }
                match check.query::<i64>(&mut redis) {
                    Ok(answer) => allowed[key] += answer,
                    Err(_) => failed += 1,
                }
            }
            (allowed, failed)
        });
        stop.after(|| {
            wait_until("there are logs", || from.int("DBSIZE") == 200);
            if is_valkey {
                let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 16383 NODE {target}");
                assert_eq!(from.run::<String>(&line), "OK");
            } else {
                to.run::<redis::Value>("CLUSTER MIGRATION IMPORT 0 16383");
            }
            wait_until("the slots have moved", || {
                let nodes: String = to.run("CLUSTER NODES");
                let own = nodes.lines().find(|line| line.contains("myself"));
                own.is_some_and(|line| line.ends_with(" 0-16383"))
            });
            std::thread::sleep(Duration::from_millis(100));
        });
        load.join().unwrap()
    });
    assert!(allowed.iter().sum::<i64>() > 400);
    let mut more = 0;
    for (key, allowed) in allowed.iter().enumerate() {
        let used = to.numbers(&format!("SLIDEWIN.PEEK k{key} 1000000 3600 WITHINFO"))[6];
        assert!(used >= *allowed, "k{key}: {allowed} allowed, {used} there");
        more += used - allowed;
        assert!(to.int(&format!("PTTL k{key}")) > 3_500_000);
        let kind: String = to.run(&format!("TYPE k{key}"));
        assert_eq!(kind, if key % 2 == 0 { "string" } else { "zset" });
    }
    assert!(more <= failed, "{failed} failed, {more} too many");
}
