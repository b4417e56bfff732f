//! How the commands look to clients, proxies, operators and access control.

use crate::support::{is_redis_6, server_version, Reply, Server};
use rstest::rstest;
use std::collections::HashSet;

/// Cases 20, 29 and 30: flags and key positions as clients and clusters read them.
#[rstest]
#[case("slidewin.check", -4, &["write", "denyoom", "module", "fast"], &["RW", "access", "update"])]
#[case("slidewin.peek", -4, &["readonly", "module", "fast"], &["RO", "access"])]
#[case("slidewin.refund", -2, &["write", "module", "fast"], &["RW", "delete"])]
fn commands_declare_flags_and_keys(
    #[case] name: &str,
    #[case] arity: i64,
    #[case] flags: &[&str],
    #[case] key_flags: &[&str],
) {
    let server = Server::start();
    let info: Vec<Vec<Reply>> = server.connect().run(&format!("COMMAND INFO {name}"));
    let words =
        |reply: &Reply| -> HashSet<String> { redis::from_redis_value(reply.clone()).unwrap() };
    let expected = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let entry = &info[0];
    let mut flags: HashSet<String> = expected(flags);
    if is_redis_6() {
        flags.remove("module");
    }
    assert_eq!(words(&entry[2]), flags);
    assert_eq!(entry[3..6], [Reply::Int(1), Reply::Int(1), Reply::Int(1)]);
    if is_redis_6() {
        return; // no arity or key specs of modules before 7.0
    }
    assert_eq!(entry[1], Reply::Int(arity));
    let Reply::Array(specs) = &entry[8] else {
        panic!("no key specs: {entry:?}");
    };
    let Reply::Array(spec) = &specs[0] else {
        panic!("no key spec: {specs:?}");
    };
    let key_flags: HashSet<String> = expected(key_flags);
    let position = spec
        .iter()
        .position(|field| *field == Reply::BulkString(b"flags".to_vec()));
    assert_eq!(words(&spec[position.unwrap() + 1]), key_flags);
}

/// Case 30.
#[rstest]
#[case("SLIDEWIN.CHECK k 5 60 10 3600 COST 2")]
#[case("SLIDEWIN.PEEK k 5 60")]
#[case("SLIDEWIN.REFUND k COUNT 2")]
fn the_key_is_the_first_argument(#[case] line: &str) {
    let server = Server::start();
    let keys: Vec<String> = server.connect().run(&format!("COMMAND GETKEYS {line}"));
    assert_eq!(keys, ["k"]);
}

/// Complete documentation, as of a core command.
#[test]
fn commands_are_documented() {
    if is_redis_6() {
        return; // COMMAND DOCS came with 7.0
    }
    let server = Server::start();
    let mut redis = server.connect();
    let mut docs =
        |name: &str| format!("{:?}", redis.run::<Reply>(&format!("COMMAND DOCS {name}")));
    let check = docs("slidewin.check");
    for part in [
        "Records an attempt in a sliding-window log and returns whether it is allowed.",
        "complexity",
        "0.1.0",
        "key_spec_index",
        "multiple",
        "block",
        "limit",
        "window",
        "COST",
        "units",
        "SKIPDENIED",
        "WITHINFO",
        "pure-token",
        "optional",
    ] {
        assert!(check.contains(part), "no {part} in {check}");
    }
    assert!(docs("slidewin.peek").contains("changing nothing"));
    assert!(docs("slidewin.refund").contains("COUNT"));
}

/// Case 29: a user needs the command and the key, and no hidden right to what it does inside.
#[test]
fn a_user_with_the_command_and_the_key_suffices() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<()>(
        "ACL SETUSER app on nopass resetchannels ~rl:* -@all +slidewin.check +slidewin.refund +multi +exec",
    );
    redis.run::<()>("AUTH app x");
    assert_eq!(redis.int("SLIDEWIN.CHECK rl:1 2 60 9 3600"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK rl:1 2 60 9 3600"), 1);
    assert_eq!(redis.int("SLIDEWIN.CHECK rl:1 2 60 9 3600"), 0);
    assert_eq!(redis.int("SLIDEWIN.REFUND rl:1"), 1);
    for line in [
        "SLIDEWIN.CHECK other 2 60",
        "SLIDEWIN.PEEK rl:1 2 60",
        "ZCARD rl:1",
    ] {
        let error = redis.error(line);
        assert!(error.starts_with("NOPERM "), "{line}: {error}");
    }
}

/// A user who may read and not write may peek and nothing else.
#[test]
fn a_reader_may_peek() {
    if is_redis_6() {
        return; // key permissions for reading only came with 7.0
    }
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<()>(
        "ACL SETUSER reader on nopass %R~rl:* -@all +slidewin.peek +slidewin.check +slidewin.refund",
    );
    redis.int("SLIDEWIN.CHECK rl:1 1 60");
    redis.run::<()>("AUTH reader x");
    assert_eq!(redis.int("SLIDEWIN.PEEK rl:1 1 60"), 0);
    assert_eq!(redis.int("SLIDEWIN.PEEK rl:2 1 60"), 1);
    for line in ["SLIDEWIN.CHECK rl:1 1 60", "SLIDEWIN.REFUND rl:1"] {
        let error = redis.error(line);
        assert!(error.starts_with("NOPERM "), "{line}: {error}");
    }
}

/// Case 29: where modules may name categories (7.2 and later), a category suffices.
#[rstest]
#[case("write", "SLIDEWIN.CHECK rl:1 5 60", "SLIDEWIN.PEEK rl:1 5 60")]
#[case("write", "SLIDEWIN.REFUND rl:1", "SLIDEWIN.PEEK rl:1 5 60")]
#[case("read", "SLIDEWIN.PEEK rl:1 5 60", "SLIDEWIN.CHECK rl:1 5 60")]
#[case("sortedset", "SLIDEWIN.CHECK rl:1 5 60", "GET rl:1")]
#[case("fast", "SLIDEWIN.PEEK rl:1 5 60", "ZRANGE rl:1 0 -1")]
fn commands_belong_to_categories(
    #[case] category: &str,
    #[case] granted: &str,
    #[case] denied: &str,
) {
    if is_redis_6() || server_version().contains("v=7.0.") {
        return;
    }
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<()>(&format!("ACL SETUSER u on nopass ~rl:* +@{category}"));
    redis.run::<()>("AUTH u x");
    redis.int(granted);
    assert!(redis.error(denied).starts_with("NOPERM "));
    assert!(redis
        .error(&granted.replace("rl:1", "other"))
        .starts_with("NOPERM "));
}

#[test]
fn info_counts_what_happened() {
    let server = Server::stopped();
    let mut redis = server.connect();
    redis.pipeline(&vec!["SLIDEWIN.CHECK k 2 60".to_owned(); 5]);
    redis.int("SLIDEWIN.CHECK k 9 60 COST 4");
    redis.int("SLIDEWIN.CHECK k 1 60 SKIPDENIED");
    redis.int("SLIDEWIN.PEEK k 1 60");
    redis.int("SLIDEWIN.REFUND k COUNT 3");
    redis.run::<()>("SET s v");
    redis.error("SLIDEWIN.CHECK s 1 60");
    redis.run::<i64>("ZADD z 1 a");
    redis.error("SLIDEWIN.PEEK z 1 60");
    redis.error("SLIDEWIN.CHECK k x 60");

    let info: String = redis.run("INFO slidewin");
    let lines: Vec<&str> = info.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "# slidewin",
            "slidewin_checks:7",
            "slidewin_allowed:3",
            "slidewin_denied:4",
            "slidewin_peeks:1",
            "slidewin_refunded:3",
            "slidewin_recorded:9",
            "slidewin_trimmed:3",
            "slidewin_refused_keys:2",
        ]
    );
    let everything: String = redis.run("INFO everything");
    assert!(everything.contains("slidewin_checks:7"));
}
