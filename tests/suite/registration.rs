//! How the commands look to clients, proxies, operators and access control.

use crate::support::{is_redis_6, Reply, Server};
use rstest::rstest;
use std::collections::HashSet;

/// Cases 20, 29 and 30: flags and key positions as clients and clusters read them.
#[rstest]
#[case("slidewin.check", -4, &["write", "denyoom", "module", "fast"], &["RW", "access", "update"])]
#[case("slidewin.peek", -4, &["readonly", "module", "fast"], &["RO", "access"])]
#[case("slidewin.refund", -3, &["write", "module", "fast"], &["RW", "delete"])]
#[case("slidewin.checkall", -5, &["write", "denyoom", "module", "fast"], &["RW", "access", "update"])]
#[case("slidewin.reserve", -4, &["write", "denyoom", "module", "fast"], &["RW", "access", "update"])]
#[case("slidewin.entries", -2, &["readonly", "module"], &["RO", "access"])]
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
    let positions = if name == "slidewin.checkall" {
        [1, -1, 4]
    } else {
        [1, 1, 1]
    };
    assert_eq!(entry[3..6], positions.map(Reply::Int));
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
#[case("SLIDEWIN.REFUND k 7 COST 2")]
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
    assert!(docs("slidewin.refund").contains("KEEP"));
    assert!(docs("slidewin.checkall").contains("all or nothing"));
    assert!(docs("slidewin.reserve").contains("MAXWAIT"));
    assert!(docs("slidewin.entries").contains("COUNT"));
}
