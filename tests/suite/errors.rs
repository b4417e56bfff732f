//! What is refused, in which words, and that a refusal touches nothing.

use crate::support::{Client, Server, NOW};
use redis::Value;
use rstest::rstest;

const LIMIT: &str = "ERR limit is not an integer or out of range";
const WINDOW: &str = "ERR window is not a number of seconds between 0.001 and 315360000";
const COST: &str = "ERR cost must be an integer between 1 and 1000000000";
const PACKED: &str = "ERR cost above 1000 needs a packed log";
const ID: &str = "ERR id is not an integer or out of range";
const KEEP: &str = "ERR keep must be an integer between 0 and the cost";
const RULES: &str = "ERR at most 8 limit and window pairs";
const SYNTAX: &str = "ERR syntax error";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_A_LOG: &str = "ERR key holds a sorted set that is not a slidewin log";
const CHECK_ARITY: &str = "ERR wrong number of arguments for 'slidewin.check' command";
const PEEK_ARITY: &str = "ERR wrong number of arguments for 'slidewin.peek' command";
const UNITS: &str = "ERR units must be an integer between 1 and 1000000000";
const ALL_ARITY: &str = "ERR wrong number of arguments for 'slidewin.checkall' command";
const REFUND_ARITY: &str = "ERR wrong number of arguments for 'slidewin.refund' command";

/// Asserts that a call is refused, on an absent key and on a log, and changes neither.
fn assert_refused(line: &str, error: &str) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK log 3 60");
    for key in ["absent", "log"] {
        let before = state(&mut redis, key);
        let line = line.replace("KEY", key);
        assert_eq!(redis.error(&line), error, "{line}");
        assert_eq!(state(&mut redis, key), before, "{line}");
    }
    assert!(redis.is_alive());
}

fn state(redis: &mut Client, key: &str) -> (Value, i64, String) {
    let dump = redis.run(&format!("DUMP {key}"));
    let expiry = redis.int(&format!("PTTL {key}"));
    let changes = redis.info("persistence", "rdb_changes_since_last_save");
    (dump, expiry, changes)
}

/// Case 15: among them that no client sends a time.
#[rstest]
#[case("slidewin.check", CHECK_ARITY)]
#[case("slidewin.check KEY", CHECK_ARITY)]
#[case("slidewin.check KEY 1", CHECK_ARITY)]
#[case("slidewin.check KEY 4 1 1700000000", CHECK_ARITY)]
#[case("slidewin.check KEY 1 1 2 2 3", CHECK_ARITY)]
#[case("slidewin.peek", PEEK_ARITY)]
#[case("slidewin.peek KEY 1", PEEK_ARITY)]
#[case("slidewin.peek KEY 1 1 2", PEEK_ARITY)]
#[case("slidewin.refund", REFUND_ARITY)]
#[case("slidewin.refund KEY", REFUND_ARITY)]
fn too_few_arguments(#[case] line: &str, #[case] error: &str) {
    assert_refused(line, error);
}

/// Cases 6, 46, 47 and 75; every other spelling is a test of the parser (`decimal.rs`).
#[rstest]
fn a_wrong_limit(
    #[values("", "abc", "-1", "1.0", "\"100\"", "9223372036854775808")] limit: &str,
    #[values("CHECK", "PEEK", "RESERVE")] command: &str,
) {
    assert_refused(&format!("SLIDEWIN.{command} KEY {limit} 60"), LIMIT);
}

/// Cases 6, 7, 38, 46 and 47.
#[rstest]
fn a_wrong_window(
    #[values(
        "",
        "abc",
        "0",
        "-1",
        "1e3",
        "0.0009994",
        "315360000.0000005",
        "9223372036854775808"
    )]
    window: &str,
    #[values("CHECK", "PEEK", "RESERVE")] command: &str,
) {
    assert_refused(&format!("SLIDEWIN.{command} KEY 5 {window}"), WINDOW);
}

/// A limit or window that contains spaces or bytes beyond ASCII.
#[rstest]
#[case(b" 5", b"60", LIMIT)]
#[case(b"5 ", b"60", LIMIT)]
#[case(b"5\0", b"60", LIMIT)]
#[case(b"\xff\xfe", b"60", LIMIT)]
#[case(b"5", b" 60", WINDOW)]
#[case(b"5", b"60 ", WINDOW)]
#[case(b"5", b"60\0", WINDOW)]
#[case(b"5", b"\xff", WINDOW)]
fn a_number_with_other_bytes(#[case] limit: &[u8], #[case] window: &[u8], #[case] error: &str) {
    let server = Server::start();
    let mut redis = server.connect();
    assert_eq!(
        redis.error_of(&[b"SLIDEWIN.CHECK", b"k", limit, window]),
        error
    );
    assert_eq!(redis.int("EXISTS k"), 0);
}

/// In the second rule as in the first.
#[rstest]
#[case("SLIDEWIN.CHECK KEY 1 1 -5 60", LIMIT)]
#[case("SLIDEWIN.CHECK KEY 1 1 5 0", WINDOW)]
#[case("SLIDEWIN.CHECK KEY 1 1 5 COST 2", WINDOW)]
#[case("SLIDEWIN.CHECK KEY 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9", RULES)]
#[case("SLIDEWIN.PEEK KEY 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9", RULES)]
fn a_wrong_further_rule(#[case] line: &str, #[case] error: &str) {
    assert_refused(line, error);
}

/// Case 44 among them.
#[rstest]
fn a_wrong_cost(
    #[values(
        "0",
        "1000000001",
        "-1",
        "+1",
        "01",
        "1.0",
        "",
        "abc",
        "9223372036854775808"
    )]
    cost: &str,
) {
    assert_refused(&format!("SLIDEWIN.CHECK KEY 5 60 COST {cost}"), COST);
    assert_refused(&format!("SLIDEWIN.PEEK KEY 5 60 COST {cost}"), COST);
    assert_refused(&format!("SLIDEWIN.REFUND KEY 7 COST {cost}"), COST);
}

/// Case 95: also an id that is cut off.
#[rstest]
fn a_wrong_id(
    #[values("0", "-1", "+1", "01", "1.0", "", "abc", "COST", "9223372036854775808")] id: &str,
) {
    assert_refused(&format!("SLIDEWIN.REFUND KEY {id}"), ID);
}

/// The cost may follow, so the two are compared after the last word.
#[rstest]
#[case("KEEP -1", KEEP)]
#[case("KEEP x", KEEP)]
#[case("KEEP 2", KEEP)]
#[case("KEEP 2 COST 1", KEEP)]
#[case("COST 5 KEEP 6", KEEP)]
#[case("KEEP 9223372036854775807 COST 1000000000", KEEP)]
#[case("KEEP 2 COST 0", COST)]
#[case("KEEP 2 NOSUCH", SYNTAX)]
fn a_wrong_keep(#[case] options: &str, #[case] error: &str) {
    assert_refused(&format!("SLIDEWIN.REFUND KEY 7 {options}"), error);
}

/// A cost that would be more than 1,000 entries, on a sorted set or a key that would be one.
#[rstest]
#[case("SLIDEWIN.CHECK KEY 9000 60 COST 1001")]
#[case("SLIDEWIN.CHECK KEY 9000 60 COST 1000000000 SKIPDENIED")]
fn a_cost_that_needs_a_packed_log(#[case] line: &str) {
    assert_refused(line, PACKED);
}

#[test]
fn a_cost_that_the_keys_own_form_does_not_take() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60");
    let before = state(&mut redis, "k");
    for line in [
        "SLIDEWIN.CHECK k 9000 60 COST 1001 PACKED",
        "SLIDEWIN.REFUND k 1700000000000000 COST 1001",
        "SLIDEWIN.CHECKALL new 9000 60 1001 k 9000 60 1001",
    ] {
        assert_eq!(redis.error(line), PACKED, "{line}");
    }
    assert_eq!(redis.int("SLIDEWIN.REFUND absent 7 COST 1001"), 0);
    assert_eq!(state(&mut redis, "k"), before);
    assert_eq!(redis.int("DBSIZE"), 1);
}

#[rstest]
#[case("SLIDEWIN.CHECK KEY 5 60 COST")]
#[case("SLIDEWIN.CHECK KEY 5 60 COST 1 COST 1")]
#[case("SLIDEWIN.CHECK KEY 5 60 SKIPDENIED SKIPDENIED")]
#[case("SLIDEWIN.CHECK KEY 5 60 WITHINFO SKIPDENIED withinfo")]
#[case("SLIDEWIN.CHECK KEY 5 60 NOSUCH")]
#[case("SLIDEWIN.CHECK KEY 5 60 COSTS 1")]
#[case("SLIDEWIN.CHECK KEY 5 60 COST 1 5 60")]
#[case("SLIDEWIN.CHECK KEY 5 60 WITHINFO ")]
#[case("SLIDEWIN.CHECK KEY 5 60 nan 60")]
#[case("SLIDEWIN.CHECK KEY 5 60 PACKED PACKED")]
#[case("SLIDEWIN.PEEK KEY 5 60 SKIPDENIED")]
#[case("SLIDEWIN.PEEK KEY 5 60 PACKED")]
#[case("SLIDEWIN.ENTRIES KEY COUNT")]
#[case("SLIDEWIN.ENTRIES KEY COUNTS 1")]
#[case("SLIDEWIN.ENTRIES KEY COUNT 1 1")]
#[case("SLIDEWIN.RESERVE KEY 5 60 MAXWAIT")]
#[case("SLIDEWIN.RESERVE KEY 5 60 MAXWAIT 1 MAXWAIT 1")]
#[case("SLIDEWIN.RESERVE KEY 5 60 COST 1 COST 1")]
#[case("SLIDEWIN.RESERVE KEY 5 60 WITHINFO")]
#[case("SLIDEWIN.RESERVE KEY 5 60 PACKED")]
#[case("SLIDEWIN.REFUND KEY 7 COST")]
#[case("SLIDEWIN.REFUND KEY 7 KEEP")]
#[case("SLIDEWIN.REFUND KEY 7 1")]
#[case("SLIDEWIN.REFUND KEY 7 COUNT 1")]
#[case("SLIDEWIN.REFUND KEY 7 COST 1 COST 1")]
#[case("SLIDEWIN.REFUND KEY 7 KEEP 0 KEEP 0")]
#[case("SLIDEWIN.REFUND KEY 7 COST 1 1")]
fn an_unknown_repeated_or_cut_off_option(#[case] line: &str) {
    assert_refused(line, SYNTAX);
}

/// Case 1: a value of another type is neither parsed nor touched.
#[rstest]
fn a_key_of_another_type(
    #[values(
        "SET k hello",
        "SET k slidewin",
        "SET k slidewin000000001",
        "SET k Slidewin00000000",
        "SET k 1234567890123456",
        "LPUSH k a",
        "HSET k f v",
        "SADD k a",
        "XADD k 1-1 f v",
        "PFADD k a"
    )]
    create: &str,
    #[values(
        "SLIDEWIN.CHECK k 10 60",
        "SLIDEWIN.PEEK k 10 60",
        "SLIDEWIN.REFUND k 7",
        "SLIDEWIN.CHECK k 10 60 PACKED",
        "SLIDEWIN.ENTRIES k",
        "SLIDEWIN.RESERVE k 10 60",
        "SLIDEWIN.CHECKALL new 10 60 1 k 10 60 1"
    )]
    line: &str,
) {
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<Value>(create);
    let before = state(&mut redis, "k");
    assert_eq!(redis.error(line), WRONG_TYPE);
    assert_eq!(state(&mut redis, "k"), before);
    assert_eq!(redis.int("TTL k"), -1);
}

/// Case 1: the empty string is a value.
#[test]
fn a_key_that_holds_the_empty_string() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.send::<()>(&[b"SET", b"k", b""]);
    assert_eq!(redis.error("SLIDEWIN.CHECK k 10 60"), WRONG_TYPE);
}

/// Case 14: somebody's leaderboard under a wrong key name is refused, not trimmed away.
#[rstest]
#[case("ZADD k 1700000000 alice")]
#[case("ZADD k 1700000000000000 not-a-number")]
#[case("ZADD k 1700000000000000 1700000000000001")]
#[case("ZADD k 1700000000000000 01700000000000000")]
#[case("ZADD k 1700000000.5 1700000000.5")]
#[case("ZADD k -5 -5")]
#[case("ZADD k -inf y +inf x")]
#[case("ZADD k +inf x")]
#[case("ZADD k 9007199254740992 9007199254740992")]
#[case("ZADD k 1e300 1e300")]
fn a_sorted_set_that_is_not_a_log(#[case] create: &str) {
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<i64>(create);
    let before = state(&mut redis, "k");
    for line in [
        "SLIDEWIN.CHECK k 0 60",
        "SLIDEWIN.PEEK k 10 60",
        "SLIDEWIN.REFUND k 1700000000",
    ] {
        assert_eq!(redis.error(line), NOT_A_LOG);
    }
    assert_eq!(state(&mut redis, "k"), before);
}

/// Case 14: entries of an older unit are very old entries.
#[test]
fn a_log_in_seconds_has_run_out() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.seed("k", [1_700_000_000, 1_700_000_001]);
    assert_eq!(redis.int("SLIDEWIN.CHECK k 1 60"), 1);
    assert_eq!(redis.entries("k"), [NOW]);
}

#[rstest]
fn a_wrong_count(#[values("0", "1000001", "-1", "x", "")] count: &str) {
    let error = "ERR count must be an integer between 1 and 1000000";
    assert_refused(&format!("SLIDEWIN.ENTRIES KEY COUNT {count}"), error);
}

#[rstest]
fn a_wrong_maxwait(
    #[values("60.000001", "-1", "x", "", "inf", "1e3", ".5", "99999999999999")] wait: &str,
) {
    let error = "ERR maxwait is not a number of seconds between 0 and the longest window";
    assert_refused(
        &format!("SLIDEWIN.RESERVE KEY 5 60 3 1 MAXWAIT {wait}"),
        error,
    );
}

#[test]
fn a_turn_on_a_sorted_set() {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK k 3 60");
    let before = state(&mut redis, "k");
    assert_eq!(
        redis.error("SLIDEWIN.RESERVE k 3 60"),
        "ERR turns need a packed log"
    );
    assert_eq!(state(&mut redis, "k"), before);
}

/// A row of CHECKALL after a good one, which it takes down with it.
#[rstest]
#[case("other x 60 1", LIMIT)]
#[case("other 1 0 1", WINDOW)]
#[case("other 1 60 0", UNITS)]
#[case("other 1 60 1000000001", UNITS)]
#[case("other 1 60 1.0", UNITS)]
#[case("KEY 1 60 2", "ERR rows of one key differ in their units")]
#[case("other 1 60", ALL_ARITY)]
#[case("other", ALL_ARITY)]
#[case("other 1 60 1 5", ALL_ARITY)]
#[case(
    "a 1 1 1 b 1 1 1 c 1 1 1 d 1 1 1 e 1 1 1 f 1 1 1 g 1 1 1 h 1 1 1",
    "ERR at most 8 rows"
)]
#[case("board 9 60 1", NOT_A_LOG)]
#[case("string 9 60 1", WRONG_TYPE)]
#[case("list 9 60 1", WRONG_TYPE)]
fn a_wrong_row(#[case] row: &str, #[case] error: &str) {
    let server = Server::with_stopped_clock();
    let mut redis = server.connect();
    redis.int("SLIDEWIN.CHECK log 3 60");
    redis.run::<i64>("ZADD board 12 alice");
    redis.run::<()>("SET string 123456789012345");
    redis.run::<i64>("RPUSH list a");
    for key in ["absent", "log"] {
        let before = state(&mut redis, key);
        let line = format!("slidewin.checkall KEY 9 60 1 {row}").replace("KEY", key);
        assert_eq!(redis.error(&line), error, "{line}");
        assert_eq!(state(&mut redis, key), before, "{line}");
    }
    assert_eq!(redis.run::<String>("OBJECT ENCODING string"), "int");
    assert_eq!(redis.int("DBSIZE"), 4);
}

/// An argument error is found before the key is looked at.
#[test]
fn arguments_are_checked_before_the_key() {
    let server = Server::start();
    let mut redis = server.connect();
    redis.run::<()>("SET k v");
    assert_eq!(redis.error("SLIDEWIN.CHECK k x 60"), LIMIT);
    assert_eq!(redis.error("SLIDEWIN.REFUND k 7 COST 0"), COST);
}
