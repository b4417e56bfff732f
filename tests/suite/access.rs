//! What a user needs to call the commands.

use crate::support::{is_redis_6, server_version, Server};
use rstest::rstest;

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
    assert_eq!(redis.int("SLIDEWIN.REFUND rl:1 7"), 0);
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
    for line in ["SLIDEWIN.CHECK rl:1 1 60", "SLIDEWIN.REFUND rl:1 7"] {
        let error = redis.error(line);
        assert!(error.starts_with("NOPERM "), "{line}: {error}");
    }
}

/// Case 29: where modules may name categories (7.2 and later), a category suffices.
#[rstest]
#[case("write", "SLIDEWIN.CHECK rl:1 5 60", "SLIDEWIN.PEEK rl:1 5 60")]
#[case("write", "SLIDEWIN.REFUND rl:1 7", "SLIDEWIN.PEEK rl:1 5 60")]
#[case("read", "SLIDEWIN.PEEK rl:1 5 60", "SLIDEWIN.CHECK rl:1 5 60")]
#[case("sortedset", "SLIDEWIN.CHECK rl:1 5 60", "GET rl:1")]
#[case("string", "SLIDEWIN.CHECK rl:1 5 60 PACKED", "ZCARD rl:1")]
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
