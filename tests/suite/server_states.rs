//! A server that is full, loading, cut off or busy: its own errors, unchanged, and no half of a call.

use crate::support::{is_redis_6, wait_until, Client, Server, Settings, Stop};
use rstest::rstest;
use std::io::Write;

/// Case 25: a full server refuses before anything has changed, in a transaction the whole of it.
#[test]
fn a_full_server_refuses_whole_calls() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 9 60");
    redis.run::<()>("CONFIG SET maxmemory 1");
    let refused = |redis: &mut Client, line: &str| {
        let error = redis.error(line);
        assert!(error.starts_with("OOM command not allowed"), "{error}");
    };
    refused(&mut redis, "SLIDEWIN.CHECK k 9 60");
    refused(&mut redis, "SLIDEWIN.CHECKALL k 9 60 1 new 9 60 1");
    refused(&mut redis, "SLIDEWIN.RESERVE new 9 60");
    let used = redis.info_number("memory", "used_memory");
    for n in 0..1_000 {
        refused(&mut redis, &format!("SLIDEWIN.CHECK new{n} 9 60"));
    }
    let growth = redis.info_number("memory", "used_memory") - used;
    assert!(growth < 64 * 1024, "used_memory grew by {growth}");
    assert_eq!(redis.int("DBSIZE"), 1);
    redis.run::<()>("MULTI");
    assert!(redis
        .error("SLIDEWIN.CHECK k 9 60")
        .starts_with("OOM command not allowed"));
    assert!(redis.error("EXEC").starts_with("EXECABORT"));
    assert_eq!(redis.int("ZCARD k"), 1);
    assert_eq!(redis.int("SLIDEWIN.PEEK k 1 60"), 0, "reading goes on");
    let refund = format!("SLIDEWIN.REFUND k {}", redis.entries("k")[0]);
    assert_eq!(redis.int(&refund), 1, "and so does giving back");
    redis.run::<()>("CONFIG SET maxmemory 0");
    assert_eq!(redis.int("SLIDEWIN.CHECK k 9 60"), 1);
}

/// Case 68: an evicted log restarts as an empty one; nothing in the module says otherwise.
#[rstest]
fn an_evicted_log_restarts_empty(#[values("volatile-ttl", "allkeys-lru")] policy: &str) {
    let server = Server::start();
    let mut redis = server.connect();
    let full = redis.numbers("SLIDEWIN.CHECK k 9 1 COST 9 WITHINFO");
    assert_eq!(full[..3], [1, 9, 0]);
    redis.run::<()>(&format!("CONFIG SET maxmemory-policy {policy}"));
    redis.run::<()>("CONFIG SET maxmemory 1");
    let _: Result<(), _> = redis.try_send(&[b"SET", b"other", b"v"]);
    assert_eq!(redis.int("EXISTS k"), 0);
    assert!(redis.info_number("stats", "evicted_keys") > 0);
    redis.run::<()>("CONFIG SET maxmemory 0");
    let fresh = redis.numbers("SLIDEWIN.CHECK k 9 60 WITHINFO");
    assert_eq!(fresh[..3], [1, 9, 8]);
}

/// Case 67.
#[test]
fn a_loading_server_says_so() {
    if is_redis_6() {
        return; // it cannot be told to look at its clients after so few keys
    }
    let server = Server::start();
    let mut redis = server.connect();
    let keys: Vec<String> = (0..3_000)
        .map(|n| format!("SLIDEWIN.CHECK k{n} 9 600"))
        .collect();
    redis.pipeline(&keys);
    redis.run::<()>("CONFIG SET key-load-delay 500");
    redis.run::<()>("CONFIG SET loading-process-events-interval-bytes 1024");
    let mut caller = server.connect();
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || stop.after(|| redis.run::<()>("DEBUG RELOAD")));
        let check: [&[u8]; 4] = [b"SLIDEWIN.CHECK", b"k1", b"9", b"600"];
        wait_until("the server is loading", || {
            assert!(!stop.is_set(), "it has loaded without a word");
            caller.try_send::<i64>(&check).is_err()
        });
        let error = caller.error("SLIDEWIN.CHECK k1 9 600");
        assert!(error.starts_with("LOADING "), "{error}");
    });
    assert_eq!(caller.int("DBSIZE"), 3_000);
    assert_eq!(caller.int("SLIDEWIN.CHECK k2 9 600"), 1);
}

/// Case 67.
#[test]
fn a_replica_without_its_master_says_so() {
    let server = Settings::new()
        .options("--replica-serve-stale-data no")
        .start();
    let mut redis = server.connect();
    redis.run::<()>("REPLICAOF 127.0.0.1 1");
    let error = redis.error("SLIDEWIN.PEEK k 9 60");
    assert!(error.starts_with("MASTERDOWN "), "{error}");
}

#[test]
fn a_busy_server_says_so() {
    let server = Settings::new().options("--lua-time-limit 50").start();
    let mut busy = server.connect();
    let mut redis = server.connect();
    std::thread::scope(|scope| {
        let script = "redis.call('SLIDEWIN.PEEK', KEYS[1], 1, 60) while true do end";
        let busy = &mut busy;
        scope.spawn(move || {
            let error = busy.error_of(&[b"EVAL", script.as_bytes(), b"1", b"k"]);
            assert!(error.contains("killed"), "{error}");
        });
        let check: [&[u8]; 4] = [b"SLIDEWIN.CHECK", b"k", b"9", b"60"];
        wait_until("the server is busy", || {
            redis.try_send::<i64>(&check).is_err()
        });
        assert!(redis.error("SLIDEWIN.CHECK k 9 60").starts_with("BUSY "));
        redis.run::<()>("SCRIPT KILL");
    });
    assert!(redis.int("SLIDEWIN.CHECK k 99999 60") == 1);
}

/// Calls that wait out a pause are decided when it ends.
#[test]
fn a_paused_call_is_decided_afterwards() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 1 0.05");
    server.connect().run::<()>("CLIENT PAUSE 100");
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 0.05"), 1);
}

/// Replies to a client that has gone disturb nobody.
#[test]
fn a_client_may_leave_before_its_reply() {
    let server = Server::start();
    let mut redis = server.connect();
    let check = b"*4\r\n$14\r\nSLIDEWIN.CHECK\r\n$1\r\nk\r\n$5\r\n10000\r\n$2\r\n60\r\n";
    for _ in 0..20 {
        let mut client = server.connect_raw();
        client.write_all(&check.repeat(100)).unwrap();
    }
    wait_until("the calls are counted", || redis.int("ZCARD k") > 0);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 10000 60"), 1);
}
