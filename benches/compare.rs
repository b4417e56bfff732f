//! slidewin against what people run today: server CPU, throughput, round trips, bytes and memory.
//!
//! Server CPU is what the kernel has charged to the server's main thread, so it holds on a machine
//! that does other work too. Every contestant gets the same offered load, 25,000 calls a second in
//! pipelines of 25, on keys that hold the same number of live entries and are seeded anew before
//! each measurement. Contestants take turns, several rounds of them; the table shows medians.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

#[path = "../tests/suite/support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

use redis::ConnectionLike;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use support::{Client, Server, Settings};

const ROUNDS: usize = 3;
const CALLS_PER_SECOND: usize = 25_000;
const DEPTH: usize = 25;
const PACED: Duration = Duration::from_millis(700);
const UNPACED: Duration = Duration::from_millis(250);
const ROUND_TRIPS: usize = 1_500;

const LUA: &str = "local now = redis.call('TIME') \
    now = now[1] + now[2] / 1000000 \
    local window = tonumber(ARGV[2]) \
    redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window) \
    redis.call('ZADD', KEYS[1], now, string.format('%.6f', now)) \
    local count = redis.call('ZCARD', KEYS[1]) \
    redis.call('EXPIRE', KEYS[1], math.ceil(window)) \
    return count <= tonumber(ARGV[1]) and 1 or 0";

/// What one call sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Contestant {
    Ping,
    Incr,
    Zadd,
    Empty,
    Allowed,
    DeniedRecorded,
    DeniedSkipped,
    WithInfo,
    ThreeRules,
    RecipeMulti,
    RecipePipeline,
    RecipeLua,
}

use Contestant::{
    Allowed, DeniedRecorded, DeniedSkipped, Empty, Incr, Ping, RecipeLua, RecipeMulti,
    RecipePipeline, ThreeRules, WithInfo, Zadd,
};

impl Contestant {
    fn name(self) -> &'static str {
        match self {
            Ping => "PING",
            Incr => "INCR",
            Zadd => "ZADD of a new member",
            Empty => "CHECK of an absent key, limit 0",
            Allowed => "CHECK, allowed",
            DeniedRecorded => "CHECK, denied and recorded",
            DeniedSkipped => "CHECK SKIPDENIED, denied",
            WithInfo => "CHECK WITHINFO, allowed",
            ThreeRules => "CHECK, three rules, allowed",
            RecipeMulti => "recipe in MULTI/EXEC",
            RecipePipeline => "recipe in a pipeline",
            RecipeLua => "recipe as a Lua script",
        }
    }

    /// Whether its keys hold integers or, as the recipe's do, fractional seconds.
    fn is_recipe(self) -> bool {
        matches!(self, RecipeMulti | RecipePipeline | RecipeLua)
    }
}

/// Keys that hold about `live` entries while they are called at the offered rate.
#[derive(Clone, Copy)]
struct Load {
    keys: usize,
    live: usize,
}

impl Load {
    /// In which a key gets `live` calls at the offered rate.
    fn window_micros(self) -> i64 {
        (self.keys * self.live * 1_000_000 / CALLS_PER_SECOND) as i64
    }
}

struct Bench {
    server: Server,
    redis: Client,
    script: String,
    next: usize,
}

impl Bench {
    fn start(options: &str) -> Self {
        let server = Settings::new().options(options).start();
        let mut redis = server.connect();
        let script = redis.send(&[b"SCRIPT", b"LOAD", LUA.as_bytes()]);
        Self {
            server,
            redis,
            script,
            next: 0,
        }
    }

    /// Fills the keys with entries as old as the offered rate would have made them.
    fn seed(&mut self, contestant: Contestant, load: Load) {
        self.redis.run::<()>("FLUSHALL");
        let now = self.redis.time();
        let is_denied = matches!(contestant, DeniedRecorded | DeniedSkipped);
        let window = if is_denied {
            1_000_000
        } else {
            load.window_micros()
        };
        for key in 0..load.keys {
            let mut command = redis::cmd("ZADD");
            command.arg(format!("key:{key}"));
            for n in 0..load.live {
                let offset = (key * load.live + n) as i64 % 997;
                let stamp = now - window + window * n as i64 / load.live as i64 + offset;
                if contestant.is_recipe() {
                    let stamp = format!("{:.6}", stamp as f64 / 1e6);
                    command.arg(&stamp).arg(&stamp);
                } else {
                    command.arg(stamp).arg(stamp);
                }
            }
            command.query::<i64>(&mut self.redis.0).expect("ZADD");
        }
    }

    /// The bytes of one call to the next key, and the number of replies to it.
    fn request(&mut self, contestant: Contestant, load: Load, out: &mut Vec<u8>) -> usize {
        self.next += 1;
        let key = format!("key:{}", self.next % load.keys);
        let window = load.window_micros() as f64 / 1e6;
        let (limit, window) = (format!("{}", load.live * 2), format!("{window:.6}"));
        let mut send = |words: &[&str]| {
            let _ = write!(Text(out), "*{}\r\n", words.len());
            for word in words {
                let _ = write!(Text(out), "${}\r\n{word}\r\n", word.len());
            }
        };
        let full = load.live.to_string();
        match contestant {
            Ping => send(&["PING"]),
            Incr => send(&["INCR", &format!("counter:{key}")]),
            Zadd => {
                let stamp = (micros() + self.next as i64 % 1_000).to_string();
                send(&["ZADD", &key, &stamp, &stamp]);
            }
            Empty => send(&["SLIDEWIN.CHECK", "absent", "0", "3600", "SKIPDENIED"]),
            Allowed => send(&["SLIDEWIN.CHECK", &key, &limit, &window]),
            DeniedRecorded => send(&["SLIDEWIN.CHECK", &key, &full, "3600"]),
            DeniedSkipped => send(&["SLIDEWIN.CHECK", &key, &full, "3600", "SKIPDENIED"]),
            WithInfo => send(&["SLIDEWIN.CHECK", &key, &limit, &window, "WITHINFO"]),
            ThreeRules => {
                // Each rule uses half of its limit, and the shorter ones have to be looked up.
                let part = |part: f64| format!("{:.6}", load.window_micros() as f64 / 1e6 / part);
                let (tenth, half) = ((load.live / 5).to_string(), load.live.to_string());
                send(&[
                    "SLIDEWIN.CHECK",
                    &key,
                    &tenth,
                    &part(10.0),
                    &half,
                    &part(2.0),
                    &limit,
                    &window,
                ]);
            }
            RecipeMulti | RecipePipeline => {
                let now = micros() as f64 / 1e6 + (self.next % 1_000) as f64 / 1e6;
                let cutoff = format!("{:.6}", now - load.window_micros() as f64 / 1e6);
                let now = format!("{now:.6}");
                let seconds = load
                    .window_micros()
                    .div_euclid(1_000_000)
                    .max(1)
                    .to_string();
                if contestant == RecipeMulti {
                    send(&["MULTI"]);
                }
                send(&["ZREMRANGEBYSCORE", &key, "0", &cutoff]);
                send(&["ZADD", &key, &now, &now]);
                send(&["ZCARD", &key]);
                send(&["EXPIRE", &key, &seconds]);
                if contestant == RecipeMulti {
                    send(&["EXEC"]);
                    return 6;
                }
                return 4;
            }
            RecipeLua => {
                let script = self.script.clone();
                send(&["EVALSHA", &script, "1", &key, &limit, &window]);
            }
        }
        1
    }

    fn batch(&mut self, contestant: Contestant, load: Load, calls: usize) -> Vec<redis::Value> {
        let mut request = Vec::new();
        let replies = (0..calls)
            .map(|_| self.request(contestant, load, &mut request))
            .sum();
        self.redis
            .0
            .req_packed_commands(&request, 0, replies)
            .expect("replies")
    }

    /// Server microseconds per call at the offered load.
    fn cpu_per_call(&mut self, contestant: Contestant, load: Load) -> f64 {
        let interval = Duration::from_secs(1) * DEPTH as u32 / CALLS_PER_SECOND as u32;
        let (started, mut calls) = (Instant::now(), 0);
        let before = self.cpu();
        while started.elapsed() < PACED {
            self.batch(contestant, load, DEPTH);
            calls += DEPTH;
            let due = interval * (calls / DEPTH) as u32;
            std::thread::sleep(due.saturating_sub(started.elapsed()));
        }
        (self.cpu() - before) / calls as f64
    }

    fn calls_per_second(&mut self, contestant: Contestant, load: Load) -> f64 {
        let (started, mut calls) = (Instant::now(), 0);
        while started.elapsed() < UNPACED {
            self.batch(contestant, load, 4 * DEPTH);
            calls += 4 * DEPTH;
        }
        calls as f64 / started.elapsed().as_secs_f64()
    }

    /// Microseconds of one call at a time: the median and the 99th of a hundred.
    fn round_trips(&mut self, contestant: Contestant, load: Load) -> (f64, f64) {
        let mut times: Vec<f64> = (0..ROUND_TRIPS)
            .map(|_| {
                let started = Instant::now();
                self.batch(contestant, load, 1);
                started.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        (times[ROUND_TRIPS / 2], times[ROUND_TRIPS * 99 / 100])
    }

    /// Microseconds that the server's main thread has run.
    fn cpu(&self) -> f64 {
        let pid = self.server.pid();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap();
        let nanos: f64 = stat.split(' ').next().unwrap().parse().unwrap();
        nanos / 1_000.0
    }

    /// Bytes that a call adds to the append-only file.
    fn appended(&mut self, contestant: Contestant, load: Load) -> f64 {
        let size = |bench: &Self| {
            std::thread::sleep(Duration::from_millis(20));
            let path = bench.server.append_only_path();
            std::fs::metadata(path).unwrap().len() as f64
        };
        let before = size(self);
        for _ in 0..10 {
            self.batch(contestant, load, 100);
        }
        (size(self) - before) / 1_000.0
    }

    /// Bytes that a call sends and receives.
    fn network(&mut self, contestant: Contestant, load: Load) -> (f64, f64) {
        let mut read = |field| self.redis.info_number("stats", field) as f64;
        let before = (
            read("total_net_input_bytes"),
            read("total_net_output_bytes"),
        );
        let idle = (
            read("total_net_input_bytes"),
            read("total_net_output_bytes"),
        );
        let own = (idle.0 - before.0, idle.1 - before.1);
        for _ in 0..10 {
            self.batch(contestant, load, 100);
        }
        let mut read = |field| self.redis.info_number("stats", field) as f64;
        let after = (
            read("total_net_input_bytes"),
            read("total_net_output_bytes"),
        );
        let per_call = |after: f64, idle: f64, own: f64| (after - idle - own) / 1_000.0;
        (
            per_call(after.0, idle.0, own.0),
            per_call(after.1, idle.1, own.1),
        )
    }
}

struct Text<'a>(&'a mut Vec<u8>);

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

fn micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_micros() as i64
}

/// The median, and how far the extremes lie apart in percent of it.
fn median(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    (
        median,
        (values[values.len() - 1] - values[0]) / median * 100.0,
    )
}

const FIFTY: [Contestant; 12] = [
    Ping,
    Incr,
    Zadd,
    Empty,
    Allowed,
    DeniedRecorded,
    DeniedSkipped,
    WithInfo,
    ThreeRules,
    RecipeMulti,
    RecipePipeline,
    RecipeLua,
];
const SIZES: [usize; 4] = [7, 50, 500, 50_000];
const GROWING: [Contestant; 4] = [Zadd, Allowed, RecipeMulti, RecipeLua];

fn load(live: usize) -> Load {
    Load {
        keys: (100_000 / live).clamp(10, 2_000),
        live,
    }
}

/// What every round measured.
#[derive(Default)]
struct Results {
    cpu: BTreeMap<(usize, Contestant), Vec<f64>>,
    speed: BTreeMap<Contestant, Vec<f64>>,
    trips: BTreeMap<Contestant, Vec<(f64, f64)>>,
}

impl Results {
    fn measure() -> Self {
        let mut results = Self::default();
        let mut bench = Bench::start("");
        for round in 1..=ROUNDS {
            eprintln!("bench: round {round} of {ROUNDS}");
            for live in SIZES {
                let contestants = if live == 50 { &FIFTY[..] } else { &GROWING };
                for contestant in contestants.iter().copied() {
                    let load = load(live);
                    bench.seed(contestant, load);
                    let micros = bench.cpu_per_call(contestant, load);
                    let key = (live, contestant);
                    results.cpu.entry(key).or_default().push(micros);
                    if live == 50 {
                        let trip = bench.round_trips(contestant, load);
                        results.trips.entry(contestant).or_default().push(trip);
                        let calls = bench.calls_per_second(contestant, load);
                        results.speed.entry(contestant).or_default().push(calls);
                    }
                }
            }
        }
        results
    }

    fn cpu(&self, live: usize, contestant: Contestant) -> f64 {
        median(self.cpu[&(live, contestant)].clone()).0
    }

    fn print_contestants(&self) {
        let mut bench = Bench::start("--appendonly yes --appendfsync no");
        println!("| 50 live entries a key | server CPU µs | spread | calls/s | p50 µs | p99 µs | bytes in | bytes out | AOF bytes |");
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for contestant in FIFTY {
            let load = load(50);
            let (micros, spread) = median(self.cpu[&(50, contestant)].clone());
            let (calls, _) = median(self.speed[&contestant].clone());
            let trips = &self.trips[&contestant];
            let (p50, _) = median(trips.iter().map(|trip| trip.0).collect());
            let (p99, _) = median(trips.iter().map(|trip| trip.1).collect());
            bench.seed(contestant, load);
            let (sent, received) = bench.network(contestant, load);
            let appended = bench.appended(contestant, load);
            println!(
                "| {} | {micros:.1} | {spread:.0} % | {calls:.0} | {p50:.0} | {p99:.0} | {sent:.0} | {received:.0} | {appended:.0} |",
                contestant.name()
            );
        }
    }

    fn print_sizes(&self) {
        println!("\n| server CPU µs by live entries | 7 | 50 | 500 | 50,000 |");
        println!("| --- | --- | --- | --- | --- |");
        for contestant in GROWING {
            let micros = SIZES.map(|live| format!("{:.1}", self.cpu(live, contestant)));
            println!("| {} | {} |", contestant.name(), micros.join(" | "));
        }
    }

    fn print_budgets(&self) {
        let at = |live, contestant| self.cpu(live, contestant);
        let budgets = [
            (
                "allowed / ZADD, 50 entries",
                at(50, Allowed) / at(50, Zadd),
                1.15,
            ),
            (
                "allowed / ZADD, 7 entries",
                at(7, Allowed) / at(7, Zadd),
                1.45,
            ),
            (
                "allowed / recipe in MULTI",
                at(50, Allowed) / at(50, RecipeMulti),
                0.5,
            ),
            ("allowed / Lua", at(50, Allowed) / at(50, RecipeLua), 0.42),
            (
                "denied SKIPDENIED / Lua",
                at(50, DeniedSkipped) / at(50, RecipeLua),
                0.20,
            ),
            (
                "denied SKIPDENIED / absent key",
                at(50, DeniedSkipped) / at(50, Empty),
                1.7,
            ),
            ("WITHINFO / plain", at(50, WithInfo) / at(50, Allowed), 1.15),
            (
                "three rules / one",
                at(50, ThreeRules) / at(50, Allowed),
                2.0,
            ),
            (
                "allowed, 50,000 / 500 entries",
                at(50_000, Allowed) / at(500, Allowed),
                1.5,
            ),
        ];
        println!("\n| ratio of server CPU | measured | budget | |\n| --- | --- | --- | --- |");
        for (what, ratio, budget) in budgets {
            let verdict = if ratio > budget { "over budget" } else { "" };
            println!("| {what} | {ratio:.2} | {budget:.2} | {verdict} |");
        }
    }
}

/// Memory of a key by its entries, and what a larger compact encoding saves.
fn print_memory() {
    let mut bench = Bench::start("");
    println!("\n| entries a key | bytes | bytes an entry | with zset-max-listpack-entries 512 |");
    println!("| --- | --- | --- | --- |");
    for entries in [10, 100, 128, 129, 512, 1_000, 100_000] {
        let mut bytes = [128, 512].map(|compact| {
            let redis = &mut bench.redis;
            redis.run::<()>(&format!("CONFIG SET zset-max-listpack-entries {compact}"));
            redis.run::<()>("FLUSHALL");
            for _ in 0..entries / 1_000 {
                redis.int("SLIDEWIN.CHECK k 1000000 3600 COST 1000");
            }
            if entries % 1_000 > 0 {
                redis.int(&format!(
                    "SLIDEWIN.CHECK k 1000000 3600 COST {}",
                    entries % 1_000
                ));
            }
            redis.int("MEMORY USAGE k SAMPLES 0")
        });
        bytes.sort_unstable_by(|a, b| b.cmp(a));
        let each = bytes[0] as f64 / f64::from(entries);
        println!("| {entries} | {} | {each:.0} | {} |", bytes[0], bytes[1]);
    }
}

fn main() {
    let results = Results::measure();
    eprintln!("bench: bytes and memory");
    println!("{}\n", support::server_version().trim());
    results.print_contestants();
    results.print_sizes();
    print_memory();
    results.print_budgets();
}
