//! As people see it: connections without pipelining, encodings to choose from, and a server that saves.

use super::contestant::LUA;
use super::load::cell;
use crate::support::{wait_until, Client, Server, Settings};
use std::process::Command;

/// What redis-benchmark measures: calls per second, and the 99th of a hundred in milliseconds.
fn measure(place: &[String], script: &str, line: &str) -> (f64, f64) {
    let words: Vec<String> = line
        .split(' ')
        .map(|word| word.replace("SCRIPT", script))
        .collect();
    let output = Command::new("redis-benchmark")
        .args(place)
        .args(["-q", "--csv", "-n", "100000", "-c", "50", "-r", "10000"])
        .args(words)
        .output()
        .expect("redis-benchmark");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = text.lines().last().unwrap_or_default().to_owned();
    let fields: Vec<f64> = row
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    assert!(fields.len() > 6, "no figures in {text}");
    (fields[1], fields[6])
}

fn start() -> (Server, Client, String) {
    let server = Settings::new().tcp().start();
    let mut redis = server.connect();
    if let Some(cell) = cell() {
        redis.run::<()>(&format!("MODULE LOAD {cell}"));
    }
    let script = redis.send(&[b"SCRIPT", b"LOAD", LUA.as_bytes()]);
    (server, redis, script)
}

const CALLS: [(&str, &str); 7] = [
    (
        "SET key value EX 60",
        "SET s:__rand_int__ 12345678901234567890 EX 60",
    ),
    ("CHECK", "SLIDEWIN.CHECK k:__rand_int__ 100 60"),
    (
        "CHECK PACKED",
        "SLIDEWIN.CHECK p:__rand_int__ 100 60 PACKED",
    ),
    (
        "CHECK SKIPDENIED, denied",
        "SLIDEWIN.CHECK d:__rand_int__ 0 60 SKIPDENIED",
    ),
    ("RESERVE", "SLIDEWIN.RESERVE r:__rand_int__ 100 60"),
    (
        "recipe as a Lua script",
        "EVALSHA SCRIPT 1 l:__rand_int__ 100 60",
    ),
    ("redis-cell", "CL.THROTTLE c:__rand_int__ 100 100 60"),
];

/// Fifty connections that send one call after the other, over TCP and over a unix socket.
pub fn print_connections() {
    println!("\n| 50 connections, one call at a time | TCP calls/s | p99 ms | unix socket calls/s | p99 ms |");
    println!("| --- | --- | --- | --- | --- |");
    let (server, _redis, script) = start();
    let tcp = ["-p".to_owned(), server.port().to_string()];
    let unix = ["-s".to_owned(), server.socket().display().to_string()];
    for (name, line) in CALLS {
        if line.starts_with("CL.") && cell().is_none() {
            continue;
        }
        let (calls, p99) = measure(&tcp, &script, line);
        let (unix_calls, unix_p99) = measure(&unix, &script, line);
        println!("| {name} | {calls:.0} | {p99:.2} | {unix_calls:.0} | {unix_p99:.2} |");
    }
}

/// A sorted-set log of 50 under several bounds of the compact encoding.
pub fn print_encodings() {
    println!(
        "\n| zset-max-listpack-entries | CHECK at 50 entries, calls/s pipelined | bytes a key |"
    );
    println!("| --- | --- | --- |");
    for bound in [16, 32, 128, 512] {
        let (server, mut redis, script) = start();
        redis.run::<()>(&format!("CONFIG SET zset-max-listpack-entries {bound}"));
        let place = [
            "-p".to_owned(),
            server.port().to_string(),
            "-P".to_owned(),
            "50".to_owned(),
        ];
        let line = "SLIDEWIN.CHECK k:__rand_int__ 50 3600";
        // A measurement calls each of 10,000 keys about ten times.
        for _ in 0..5 {
            measure(&place, &script, line);
        }
        let (calls, _) = measure(&place, &script, line);
        let key: String = redis.run("RANDOMKEY");
        let bytes = redis.int(&format!("MEMORY USAGE {key} SAMPLES 0"));
        println!("| {bound} | {calls:.0} | {bytes} |");
    }
}

/// While a snapshot is taken, and while the append-only file is rewritten.
pub fn print_while_saving() {
    println!("\n| while the server saves | calls/s | p99 ms |\n| --- | --- | --- |");
    let (server, mut redis, script) = start();
    redis.run::<()>("CONFIG SET appendonly yes");
    redis.run::<()>("DEBUG POPULATE 1000000 filler 100");
    let place = ["-p".to_owned(), server.port().to_string()];
    let line = "SLIDEWIN.CHECK k:__rand_int__ 100 60";
    let row = |name: &str| {
        let (calls, p99) = measure(&place, &script, line);
        println!("| {name} | {calls:.0} | {p99:.2} |");
    };
    row("idle, append-only file on");
    for (name, command, field) in [
        ("BGSAVE", "BGSAVE", "rdb_bgsave_in_progress"),
        ("BGREWRITEAOF", "BGREWRITEAOF", "aof_rewrite_in_progress"),
    ] {
        redis.run::<redis::Value>(command);
        row(name);
        wait_until("it has saved", || redis.info("persistence", field) == "0");
    }
}

/// A minute of a tenant with a budget of requests and tokens, as `examples/llm_budget.py` spends it: every
/// call is estimated at 2,000 tokens; half of them use 1,000, the others 2,300.
pub fn print_budget() {
    let (_server, mut redis, _) = start();
    for call in 0..600 {
        let charge = "SLIDEWIN.CHECKALL {t}:requests 600 60 1 {t}:tokens 1000000 60 2000";
        let fields: Vec<redis::Value> = redis.run(charge);
        let [redis::Value::Int(1), .., redis::Value::Int(id), _] = fields.as_slice() else {
            panic!("not allowed: {fields:?}");
        };
        redis.int(&if call % 2 == 0 {
            format!("SLIDEWIN.REFUND {{t}}:tokens {id} COST 2000 KEEP 1000")
        } else {
            "SLIDEWIN.CHECK {t}:tokens 1000000 60 COST 300 PACKED".to_owned()
        });
    }
    println!("\n| a minute of 600 requests and 990,000 tokens | server µs a call |\n| --- | --- |");
    for command in ["CHECKALL", "REFUND", "CHECK"] {
        let field = format!("cmdstat_slidewin.{}", command.to_lowercase());
        let stats = redis.info("commandstats", &field);
        let micros = stats
            .split(',')
            .find_map(|part| part.strip_prefix("usec_per_call="));
        println!("| {command} | {} |", micros.expect("a time"));
    }
    println!("\n| key | bytes |\n| --- | --- |");
    for key in ["{t}:requests", "{t}:tokens"] {
        println!("| {key} | {} |", redis.int(&format!("MEMORY USAGE {key}")));
    }
}
