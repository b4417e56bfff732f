//! What a call writes, replicates and announces: plain commands and the events of core, and nothing
//! at all when nothing changed.

use crate::support::{is_redis_6, Client, Server, Settings, NOW, SECOND};
use rstest::rstest;
use std::fs;

pub fn persistent() -> Server {
    Settings::new()
        .stopped_at(NOW)
        .options("--appendonly yes --appendfsync always")
        .start()
}

/// The commands that a call appends to the file. (Redis 6 wraps even a single one of a module in a
/// transaction.)
pub fn appended(server: &Server, redis: &mut Client, line: &str) -> Vec<String> {
    let before = server.append_only_file().len();
    redis.run::<redis::Value>(line);
    let mut commands = server.append_only_file().split_off(before);
    if is_redis_6() && commands.len() == 3 {
        commands = commands.split_off(1);
        commands.pop();
    }
    commands
}

/// Case 8: what is recorded is persisted, as commands that any server replays.
#[test]
fn an_attempt_is_persisted_as_one_transaction_of_plain_commands() {
    let server = persistent();
    let mut redis = server.connect();
    assert_eq!(
        appended(&server, &mut redis, "SLIDEWIN.CHECK k 3 60 COST 2"),
        [
            "MULTI".to_owned(),
            format!("ZADD k {NOW} {NOW} {} {}", NOW + 1, NOW + 1),
            format!("PEXPIREAT k {}", NOW / 1_000 + 60_001),
            "EXEC".to_owned(),
        ]
    );
}

#[test]
fn trim_and_cap_are_one_removal_by_rank() {
    let server = persistent();
    let mut redis = server.connect();
    redis.seed(
        "k",
        [NOW - 61 * SECOND, NOW - 60 * SECOND, NOW - 9, NOW - 8],
    );
    assert_eq!(
        appended(&server, &mut redis, "SLIDEWIN.CHECK k 2 60")[1..3],
        [
            "ZREMRANGEBYRANK k 0 2".to_owned(),
            format!("ZADD k {NOW} {NOW}")
        ]
    );
    redis.seed("denied", [NOW - 61 * SECOND, NOW - 60 * SECOND, NOW - 1]);
    assert_eq!(
        appended(&server, &mut redis, "SLIDEWIN.CHECK denied 1 60 SKIPDENIED"),
        ["ZREMRANGEBYRANK denied 0 1"]
    );
}

#[test]
fn a_log_that_has_run_out_is_unlinked() {
    let server = persistent();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 61 * SECOND, NOW - 60 * SECOND]);
    assert_eq!(
        appended(&server, &mut redis, "SLIDEWIN.CHECK k 2 60")[1..3],
        ["UNLINK k".to_owned(), format!("ZADD k {NOW} {NOW}")]
    );
    redis.seed("gone", [NOW - 60 * SECOND]);
    assert_eq!(
        appended(&server, &mut redis, "SLIDEWIN.CHECK gone 0 60 SKIPDENIED"),
        ["UNLINK gone"]
    );
}

#[test]
fn a_refund_is_a_removal_by_score() {
    let server = persistent();
    let mut redis = server.connect();
    redis.run::<i64>("SLIDEWIN.CHECK k 9 60 COST 5");
    let refund = |cost: &str| format!("SLIDEWIN.REFUND k {NOW} COST {cost}");
    assert_eq!(
        appended(&server, &mut redis, &refund("5 KEEP 3")),
        [format!("ZREMRANGEBYSCORE k {} {}", NOW + 3, NOW + 4)]
    );
    assert_eq!(
        appended(&server, &mut redis, &refund("5")),
        [format!("ZREMRANGEBYSCORE k {NOW} {}", NOW + 4)]
    );
}

/// Nothing written, replicated, signalled or announced: a read in all but name.
#[rstest]
fn a_call_that_changes_nothing_leaves_no_trace(
    #[values(
        "SLIDEWIN.CHECK k 3 60 SKIPDENIED",
        "SLIDEWIN.CHECK k 3 60 SKIPDENIED WITHINFO",
        "SLIDEWIN.CHECK k 2 60 9 1 COST 5 SKIPDENIED",
        "SLIDEWIN.CHECK absent 0 60 SKIPDENIED",
        "SLIDEWIN.CHECK absent 0 60",
        "SLIDEWIN.PEEK k 3 60 WITHINFO",
        "SLIDEWIN.REFUND absent 7",
        "SLIDEWIN.REFUND k 7 COST 1000",
        "SLIDEWIN.REFUND k 9223372036854775807 COST 1000",
        "SLIDEWIN.REFUND k 1700000000000000 COST 3 KEEP 3",
        "SLIDEWIN.CHECK k 0 60"
    )]
    line: &str,
) {
    let server = persistent();
    let mut redis = server.connect();
    let mut other = server.connect();
    redis.run::<i64>("SLIDEWIN.CHECK k 3 60 COST 3");
    redis.run::<()>("PERSIST k");
    let size = |server: &Server| fs::metadata(server.append_only_path()).unwrap().len();
    let changes = |redis: &mut Client| redis.info("persistence", "rdb_changes_since_last_save");
    let before = (
        size(&server),
        changes(&mut redis),
        redis.run::<Vec<u8>>("DUMP k"),
    );

    other.run::<()>("WATCH k absent");
    let events = events(&server, || {
        for _ in 0..10 {
            redis.run::<redis::Value>(line);
        }
    });
    assert_eq!(events, Vec::<String>::new());
    assert_eq!(other.transaction(&["ZCARD k"]), [3]);
    let after = (
        size(&server),
        changes(&mut redis),
        redis.run::<Vec<u8>>("DUMP k"),
    );
    assert_eq!(after, before);
    assert_eq!(redis.int("PTTL k"), -1);
}

#[test]
fn a_recorded_attempt_dirties_a_watch() {
    let server = Server::start();
    let mut watcher = server.connect();
    watcher.run::<()>("WATCH k");
    server.connect().int("SLIDEWIN.CHECK k 3 60");
    watcher.run::<()>("MULTI");
    watcher.run::<()>("PING");
    assert_eq!(watcher.run::<redis::Value>("EXEC"), redis::Value::Nil);
}

/// Invalidation as for a core write command: of what changed, and of nothing else.
#[test]
fn a_change_invalidates_client_side_caches() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let mut listener = server.connect();
    let id = listener.int("CLIENT ID");
    let mut invalidations = listener.0.as_pubsub();
    invalidations.subscribe("__redis__:invalidate").unwrap();
    let mut cache = server.connect();
    cache.run::<()>(&format!("CLIENT TRACKING ON REDIRECT {id}"));

    for line in [
        "SLIDEWIN.CHECK k 1 60",
        "SLIDEWIN.PEEK k 1 60",
        "SLIDEWIN.CHECK k 1 60 SKIPDENIED",
        "SLIDEWIN.REFUND k 1700000000000000",
    ] {
        cache.int("ZCARD k");
        cache.run::<redis::Value>("GET other");
        redis.int(line);
        redis.run::<()>("SET other v");
        let mut next = || -> Vec<String> {
            let message = invalidations.get_message().unwrap();
            message.get_payload().unwrap()
        };
        if line.contains("PEEK") || line.contains("SKIPDENIED") {
            assert_eq!(next(), ["other"], "{line}");
        } else {
            assert_eq!(
                (next(), next()),
                (vec!["k".into()], vec!["other".into()]),
                "{line}"
            );
        }
    }
}

#[test]
fn events_are_those_of_the_plain_commands() {
    let mut server = Server::with_stopped_clock();
    let mut redis = server.connect();
    let check = "SLIDEWIN.CHECK k 2 60";
    let appears = ["new k", "zadd k", "expire k"];
    let appears = &appears[usize::from(is_redis_6())..];
    assert_eq!(events(&server, || redis.int(check)), appears);
    assert_eq!(events(&server, || redis.int(check)), ["zadd k", "expire k"]);
    server.clock().step(500);
    assert_eq!(
        events(&server, || redis.int(check)),
        ["zremrangebyrank k", "zadd k"],
        "the expiry had not to be moved"
    );
    let mut refund = |id: i64| {
        let line = format!("SLIDEWIN.REFUND k {id}");
        events(&server, || redis.int(&line))
    };
    assert_eq!(refund(NOW + 1), ["zremrangebyscore k"]);
    assert_eq!(
        refund(NOW + 500),
        ["zremrangebyscore k", "del k"],
        "nothing is left"
    );
}

/// Case 99: the old key goes before the new one comes.
#[test]
fn events_of_a_log_that_had_run_out_are_in_order() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [NOW - 61 * SECOND]);
    let expected = ["del k", "new k", "zadd k", "expire k"].into_iter();
    let expected = expected.filter(|event| !(is_redis_6() && event.starts_with("new")));
    let events = events(&server, || redis.int("SLIDEWIN.CHECK k 2 60"));
    assert_eq!(events, expected.collect::<Vec<_>>());
}

/// The keyspace events that something causes, each with its key.
pub fn events<T>(server: &Server, cause: impl FnOnce() -> T) -> Vec<String> {
    let mut redis = server.connect();
    let classes = if is_redis_6() { "KA" } else { "KAn" };
    redis.run::<()>(&format!("CONFIG SET notify-keyspace-events {classes}"));
    let mut listener = server.connect();
    let mut pubsub = listener.0.as_pubsub();
    pubsub.psubscribe("__keyspace@0__:*").unwrap();
    cause();
    redis.run::<i64>("PUBLISH __keyspace@0__:end end");
    let mut events = Vec::new();
    loop {
        let message = pubsub.get_message().unwrap();
        let event: String = message.get_payload().unwrap();
        if event == "end" {
            return events;
        }
        let channel = message.get_channel_name();
        let key = channel.strip_prefix("__keyspace@0__:").unwrap();
        events.push(format!("{event} {key}"));
    }
}
