//! Any words over the wire: the server lives, and answers only what the manual says.

use crate::support::{Client, Reply, Server};
use fastrand::Rng;
use redis::ConnectionLike;

/// Vectors tried by default; `SLIDEWIN_FUZZ` names another number (`make fuzz`).
const VECTORS: u64 = 100_000;

/// Half of them logs.
const KEYS: [&str; 15] = [
    "log", "short", "absent", "packed", "turns", "log", "short", "absent", "packed", "board",
    "string", "list", "hash", "set", "stream",
];

const NUMBERS: [&str; 34] = [
    "0",
    "1",
    "2",
    "3",
    "10",
    "1000",
    "1001",
    "-1",
    "-0",
    "+1",
    "00",
    "01",
    "0.001",
    "0.0009",
    "0.000999",
    "0.25",
    "1.0",
    "1.",
    ".5",
    "60",
    "315360000",
    "315360000.000001",
    "315360001",
    "2147483647",
    "2147483648",
    "4294967296",
    "9007199254740992",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e3",
    "0x10",
    "nan",
    "inf",
];

const OPTIONS: [&str; 10] = [
    "COST",
    "SKIPDENIED",
    "WITHINFO",
    "KEEP",
    "COUNT",
    "MAXWAIT",
    "PACKED",
    "cost",
    "withinfo",
    "cosT",
];

const ERRORS: [&str; 18] = [
    "ERR limit is not an integer or out of range",
    "ERR window is not a number of seconds between 0.001 and 315360000",
    "ERR cost must be an integer between 1 and 1000000000",
    "ERR cost above 1000 needs a packed log",
    "ERR count must be an integer between 1 and 1000000",
    "ERR maxwait is not a number of seconds between 0 and the longest window",
    "ERR turns need a packed log",
    "ERR units must be an integer between 1 and 1000000000",
    "ERR rows of one key differ in their units",
    "ERR at most 8 rows",
    "ERR id is not an integer or out of range",
    "ERR keep must be an integer between 0 and the cost",
    "ERR at most 8 limit and window pairs",
    "ERR syntax error",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "ERR key holds a sorted set that is not a slidewin log",
    "ERR wrong number of arguments for 'slidewin.",
    "ERR wrong number of arguments for 'SLIDEWIN.",
];

fn word(random: &mut Rng) -> Vec<u8> {
    match random.u32(0..100) {
        0..60 => random.choice(NUMBERS).unwrap().as_bytes().to_vec(),
        60..85 => random.choice(OPTIONS).unwrap().as_bytes().to_vec(),
        85..99 => bytes(random, 24),
        _ if random.u32(0..100) == 0 => bytes(random, 1024 * 1024),
        _ => bytes(random, 2_000),
    }
}

fn bytes(random: &mut Rng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.usize(0..=most)];
    random.fill(&mut bytes);
    bytes
}

/// A command with anything from nothing to forty words after it, often of the right shape.
fn vector(random: &mut Rng) -> Vec<Vec<u8>> {
    let commands = [
        "SLIDEWIN.CHECK",
        "SLIDEWIN.PEEK",
        "SLIDEWIN.REFUND",
        "SLIDEWIN.CHECKALL",
        "SLIDEWIN.RESERVE",
        "SLIDEWIN.ENTRIES",
        "slidewin.check",
    ];
    let mut words = vec![random.choice(commands).unwrap().as_bytes().to_vec()];
    if random.u32(0..20) > 0 {
        words.push(match random.u32(0..10) {
            0 => bytes(random, 40),
            _ => random.choice(KEYS).unwrap().as_bytes().to_vec(),
        });
        let well_formed = random.u32(0..4) > 0;
        if well_formed {
            for _ in 0..random.u32(1..=3) {
                words.push(random.u32(0..2_000).to_string().into_bytes());
                words.push(format!("{}.{:03}", random.u32(0..90), random.u32(1..999)).into_bytes());
                if words[0] == b"SLIDEWIN.CHECKALL" {
                    words.push(random.u32(1..1_000).to_string().into_bytes());
                    words.push(random.choice(KEYS).unwrap().as_bytes().to_vec());
                }
            }
        }
        if words[0] == b"SLIDEWIN.CHECKALL" && random.bool() {
            words.pop();
        }
        match random.u32(0..4) {
            0 => words.extend((0..random.usize(0..=40)).map(|_| word(random))),
            1 => words.extend((0..random.usize(0..=3)).map(|_| word(random))),
            2 => words.extend([
                b"COST".to_vec(),
                random.u32(1..=1_000).to_string().into_bytes(),
            ]),
            _ => {}
        }
    }
    words
}

fn assert_expected(words: &[Vec<u8>], reply: &Reply) {
    let expected = match reply {
        Reply::Int(number) => (0..=1_000_000_000).contains(number),
        Reply::Array(rows) if words[0] == b"SLIDEWIN.ENTRIES" => rows
            .iter()
            .all(|row| matches!(row, Reply::Array(row) if matches!(row[..], [Reply::Int(_), Reply::Int(1..)]))),
        Reply::Array(fields) => {
            let numbers = if fields.len() == 3 { 3 } else { 8 };
            let mut numbers = fields.iter().take(numbers);
            [3, 8, 9].contains(&fields.len())
                && numbers.all(|field| matches!(field, Reply::Int(-1..)))
        }
        Reply::ServerError(error) => {
            let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
            ERRORS.iter().any(|known| text.starts_with(known))
        }
        _ => false,
    };
    let shown: Vec<String> = words
        .iter()
        .map(|word| word.escape_ascii().to_string())
        .collect();
    assert!(expected, "{shown:?}: {reply:?}");
}

fn create_keys(redis: &mut Client) {
    redis.int("SLIDEWIN.CHECK log 1000000 3600 COST 200");
    redis.int("SLIDEWIN.CHECK packed 1000000 3600 COST 200 PACKED");
    redis.run::<Reply>("SLIDEWIN.RESERVE turns 100 3600");
    redis.run::<i64>("ZADD board 12 alice 17 bob");
    redis.run::<()>("SET string v");
    redis.run::<i64>("RPUSH list a b");
    redis.run::<i64>("HSET hash f v");
    redis.run::<i64>("SADD set a");
    redis.run::<String>("XADD stream 1-1 f v");
}

/// Case 50.
#[test]
fn any_words_are_answered_by_the_manual() {
    let vectors = std::env::var("SLIDEWIN_FUZZ").map_or(VECTORS, |text| text.parse().unwrap());
    let server = Server::start();
    let mut redis = server.connect();
    create_keys(&mut redis);
    let mut random = Rng::with_seed(50);
    let mut tried = 0;
    while tried < vectors {
        let batch: Vec<_> = (0..200).map(|_| vector(&mut random)).collect();
        let mut request = Vec::new();
        for words in &batch {
            let mut command = redis::Cmd::new();
            for word in words {
                command.arg(word.as_slice());
            }
            request.extend(command.get_packed_command());
        }
        let replies = redis
            .0
            .req_packed_commands(&request, 0, batch.len())
            .unwrap();
        assert_eq!(replies.len(), batch.len());
        for (words, reply) in batch.iter().zip(&replies) {
            assert_expected(words, reply);
        }
        tried += 200;
    }
    let process = redis.info_number("server", "process_id");
    assert_eq!(process, i64::from(server.pid()));
    assert_eq!(redis.run::<String>("GET string"), "v");
    assert_eq!(redis.int("ZCARD board"), 2);
    let checks = redis.info_number("slidewin", "slidewin_checks");
    assert!(
        checks > tried as i64 / 20,
        "only {checks} of {tried} were well-formed"
    );
    println!("| any words | {tried} vectors | {checks} decided | same process |");
}

/// Random values of a packed log, from random bytes with the right head to truncated, unsorted and
/// half overwritten ones: every command answers, or refuses what is no log.
#[test]
fn any_bytes_of_a_packed_log_are_answered() {
    let rounds =
        std::env::var("SLIDEWIN_FUZZ").map_or(3_000, |text| text.parse::<u64>().unwrap() / 10);
    let server = Server::start();
    let mut redis = server.connect();
    let mut random = Rng::with_seed(131);
    for _ in 0..rounds {
        let value = packed_value(&mut redis, &mut random);
        redis.send::<()>(&[b"SET", b"k", &value]);
        let id = value
            .get(16..24)
            .map_or(7, |id| i64::from_le_bytes(id.try_into().unwrap()));
        let id = id.clamp(1, i64::MAX);
        for line in [
            "SLIDEWIN.PEEK k 5 60 9 1 WITHINFO".to_owned(),
            "SLIDEWIN.ENTRIES k COUNT 1000000".to_owned(),
            format!("SLIDEWIN.REFUND k {id} COST 100 KEEP 3"),
            "SLIDEWIN.RESERVE k 5 60 COST 2".to_owned(),
            "SLIDEWIN.CHECK k 5 60 9 1 PACKED WITHINFO".to_owned(),
            "SLIDEWIN.CHECKALL k 5 60 3 log 9 60 1".to_owned(),
            "SLIDEWIN.CHECK k 1 0.001 COST 1000000000 PACKED SKIPDENIED".to_owned(),
            "SETRANGE k 20 garbage".to_owned(),
            "APPEND k 0123456789abcdef".to_owned(),
            "SLIDEWIN.CHECK k 5 60 PACKED WITHINFO".to_owned(),
        ] {
            let words: Vec<Vec<u8>> = line
                .split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect();
            let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            match redis.try_send::<Reply>(&slices) {
                Ok(reply) if line.starts_with("SLIDEWIN") => assert_answered(&line, &reply),
                Ok(_) => {}
                Err(error) => assert_eq!(error.code(), Some("WRONGTYPE"), "{line}: {error}"),
            }
        }
        redis.int("DEL k");
    }
    assert_eq!(
        redis.info_number("server", "process_id"),
        i64::from(server.pid())
    );
}

/// Every number of an answer is one; of broken bytes no more can be said.
fn assert_answered(line: &str, reply: &Reply) {
    match reply {
        Reply::Int(_) => {}
        Reply::Array(fields) => fields.iter().for_each(|field| assert_answered(line, field)),
        other => panic!("{line}: {other:?}"),
    }
}

/// A value that begins like a packed log.
fn packed_value(redis: &mut Client, random: &mut Rng) -> Vec<u8> {
    let now = redis.time();
    let mut value = b"slidewin".to_vec();
    let base = if random.bool() {
        random.u64(0..5)
    } else {
        random.u64(..)
    };
    value.extend(base.to_le_bytes());
    let mut total = base;
    for index in 0..random.i64(0..50) {
        let time = match random.u32(0..10) {
            0 => random.i64(..),
            1 => now + random.i64(-100_000_000..100_000_000),
            _ => now - 70_000_000 + index * 1_500_000,
        };
        total = match random.u32(0..10) {
            0 => random.u64(..),
            _ => total.wrapping_add(random.u64(0..4)),
        };
        value.extend(time.to_le_bytes());
        value.extend(total.to_le_bytes());
    }
    match random.u32(0..10) {
        0 => value.truncate(random.usize(0..=value.len())),
        1 => value.fill(0),
        2 => value[random.usize(0..16)] ^= 0x55,
        _ => {}
    }
    value
}
