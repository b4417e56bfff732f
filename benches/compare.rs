//! slidewin against what people run today: server CPU, throughput, round trips, bytes and memory.
//!
//! Server CPU is what the kernel has charged to the server's main thread, so it holds on a machine
//! that does other work too. A measurement is a burst of 20,000 calls in pipelines of 100, as fast as
//! the server answers, on keys that hold the same number of live entries and are seeded anew before
//! it; the window is such that as many entries run out during the burst as are added. Contestants
//! take turns, several rounds of them, every other round backwards. Tables show medians; a ratio is
//! the median of the rounds' own ratios, whose two sides are moments apart.
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
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Client, Server, Settings};

const ROUNDS: usize = 9;
const CALLS: usize = 20_000;
const DEPTH: usize = 100;
const ROUND_TRIPS: usize = 500;

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
            Empty => "empty module command",
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

/// Keys that hold about `live` entries while they are called at a rate.
#[derive(Clone, Copy)]
struct Load {
    keys: usize,
    live: usize,
    calls_per_second: f64,
}

impl Load {
    fn new(live: usize) -> Self {
        Self {
            keys: (100_000 / live).clamp(10, 20_000),
            live,
            calls_per_second: 100_000.0,
        }
    }

    /// In which a key gets `live` calls at this rate.
    fn window_micros(self) -> i64 {
        let micros = (self.keys * self.live) as f64 * 1e6 / self.calls_per_second;
        (micros as i64).max(1_000)
    }
}

struct Bench {
    server: Server,
    redis: Client,
    script: String,
    next: usize,
    /// How long it took to seed keys of so many entries.
    seeding: BTreeMap<usize, Duration>,
}

impl Bench {
    fn start(options: &str) -> Self {
        let server = Settings::new().options(options).start();
        let mut redis = server.connect();
        let module = compile_empty_module();
        let module = module.to_str().expect("a path in UTF-8");
        redis.run::<()>(&format!("MODULE LOAD {module}"));
        let script = redis.send(&[b"SCRIPT", b"LOAD", LUA.as_bytes()]);
        pin(std::process::id(), 0);
        pin(server.pid(), 1);
        Self {
            server,
            redis,
            script,
            next: 0,
            seeding: BTreeMap::new(),
        }
    }

    /// Fills the keys as the rate would have left them, at the moment when this returns: of each key
    /// one entry runs out between two calls to it.
    fn seed(&mut self, contestant: Contestant, load: Load) {
        self.redis.run::<()>("FLUSHALL");
        self.next = 0;
        let begun = Instant::now();
        let seeding = self.seeding.get(&load.live).copied().unwrap_or_default();
        let start = self.redis.time() + seeding.as_micros() as i64;
        let is_denied = matches!(contestant, DeniedRecorded | DeniedSkipped);
        let window = if is_denied {
            3_600_000_000
        } else {
            load.window_micros()
        };
        let step = load.window_micros() as f64 / load.live as f64;
        // ZADD removes nothing: half of what the burst adds is left out, so that the mean is right.
        let grows = if contestant == Zadd {
            CALLS / load.keys / 2
        } else {
            0
        };
        for keys in (0..load.keys).collect::<Vec<_>>().chunks(100) {
            let mut pipe = redis::pipe();
            for key in keys {
                let name = format!("key:{key}");
                let phase = *key as f64 / load.keys as f64 - 0.5;
                let command = pipe.cmd("ZADD").arg(&name);
                for n in grows.min(load.live - 1)..load.live {
                    let age = load.window_micros() - ((n as f64 + phase) * step) as i64;
                    let stamp = start - age;
                    if contestant.is_recipe() {
                        let stamp = format!("{:.6}", stamp as f64 / 1e6);
                        command.arg(&stamp).arg(&stamp);
                    } else {
                        command.arg(stamp).arg(stamp);
                    }
                }
                if contestant != Zadd {
                    let expiry = (start + window) / 1_000;
                    pipe.cmd("PEXPIREAT").arg(name).arg(expiry);
                }
            }
            let _: redis::Value = pipe.query(&mut self.redis.0).expect("seeds");
        }
        // Awake until then: a server that slept begins slowly.
        while begun.elapsed() < seeding {
            self.batch(Ping, load, DEPTH);
        }
        self.seeding.insert(load.live, begun.elapsed());
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
            Empty => send(&["BENCH.EMPTY", &key, &full, "3600", "SKIPDENIED"]),
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
                let seconds = (load.window_micros() / 1_000_000 + 1).to_string();
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

    /// Server microseconds per call, and calls per second.
    fn burst(&mut self, contestant: Contestant, load: Load) -> (f64, f64) {
        let (started, before) = (Instant::now(), self.cpu());
        for _ in 0..CALLS / DEPTH {
            self.batch(contestant, load, DEPTH);
        }
        let micros = self.cpu() - before;
        let calls = CALLS as f64;
        (micros / calls, calls / started.elapsed().as_secs_f64())
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

/// Keeps a process on one processor, where there is such a one: a call costs another time when the
/// scheduler puts client and server on one processor than when it puts them on two.
fn pin(process: u32, processor: usize) {
    let number = processor.to_string();
    let mut taskset = Command::new("taskset");
    taskset.args(["-a", "-c", "-p", &number, &process.to_string()]);
    let output = taskset.output();
    if !output.is_ok_and(|output| output.status.success()) {
        eprintln!("bench: process {process} is not kept on processor {processor}");
    }
}

/// Compiles the module of the floor, for the server to load.
fn compile_empty_module() -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/empty.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "the empty module does not compile");
    library
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

/// What every round measured.
#[derive(Default)]
struct Results {
    cpu: BTreeMap<(usize, Contestant), Vec<f64>>,
    speed: BTreeMap<(usize, Contestant), Vec<f64>>,
    trips: BTreeMap<Contestant, Vec<(f64, f64)>>,
}

impl Results {
    fn measure() -> Self {
        let mut results = Self::default();
        let mut bench = Bench::start("");
        for round in 0..=ROUNDS {
            eprintln!("bench: round {round} of {ROUNDS}");
            for live in SIZES {
                let mut contestants = if live == 50 {
                    FIFTY.to_vec()
                } else {
                    GROWING.to_vec()
                };
                if round % 2 == 0 {
                    contestants.reverse();
                }
                for contestant in contestants {
                    results.measure_one(&mut bench, live, contestant);
                }
            }
            if round == 0 {
                // It only told how fast each contestant is.
                results.cpu.clear();
                results.trips.clear();
            }
        }
        results
    }

    fn measure_one(&mut self, bench: &mut Bench, live: usize, contestant: Contestant) {
        let key = (live, contestant);
        let speed = self.speed.entry(key).or_default();
        let mut load = Load::new(live);
        if !speed.is_empty() {
            load.calls_per_second = median(speed.clone()).0;
        }
        bench.seed(contestant, load);
        let (micros, calls_per_second) = bench.burst(contestant, load);
        speed.push(calls_per_second);
        self.cpu.entry(key).or_default().push(micros);
        if live == 50 {
            let trip = bench.round_trips(contestant, load);
            self.trips.entry(contestant).or_default().push(trip);
        }
    }

    fn cpu(&self, live: usize, contestant: Contestant) -> f64 {
        median(self.cpu[&(live, contestant)].clone()).0
    }

    fn print_contestants(&self) {
        let mut bench = Bench::start("--appendonly yes --appendfsync no");
        println!("| 50 live entries a key | server CPU µs | spread | calls/s | p50 µs | p99 µs | bytes in | bytes out | AOF bytes |");
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for contestant in FIFTY {
            let load = Load::new(50);
            let (micros, spread) = median(self.cpu[&(50, contestant)].clone());
            let (calls, _) = median(self.speed[&(50, contestant)].clone());
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

    /// The median of the rounds' own ratios, and the lowest and highest of them.
    fn ratio(&self, one: (usize, Contestant), other: (usize, Contestant)) -> [f64; 3] {
        let pairs = self.cpu[&one].iter().zip(&self.cpu[&other]);
        let mut ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
        ratios.sort_by(f64::total_cmp);
        [
            ratios[ratios.len() / 2],
            ratios[0],
            ratios[ratios.len() - 1],
        ]
    }

    fn print_budgets(&self) {
        let budgets = [
            (
                "allowed / ZADD, 50 entries",
                (50, Allowed),
                (50, Zadd),
                1.15,
            ),
            ("allowed / ZADD, 7 entries", (7, Allowed), (7, Zadd), 1.45),
            (
                "allowed / recipe in MULTI",
                (50, Allowed),
                (50, RecipeMulti),
                0.5,
            ),
            ("allowed / Lua", (50, Allowed), (50, RecipeLua), 0.42),
            (
                "denied SKIPDENIED / Lua",
                (50, DeniedSkipped),
                (50, RecipeLua),
                0.2,
            ),
            (
                "denied SKIPDENIED / empty command",
                (50, DeniedSkipped),
                (50, Empty),
                1.7,
            ),
            ("WITHINFO / plain", (50, WithInfo), (50, Allowed), 1.15),
            ("three rules / one", (50, ThreeRules), (50, Allowed), 2.0),
            (
                "allowed, 50,000 / 500 entries",
                (50_000, Allowed),
                (500, Allowed),
                1.5,
            ),
        ];
        println!("\n| ratio of server CPU | median | of the rounds | budget | |");
        println!("| --- | --- | --- | --- | --- |");
        for (what, one, other, budget) in budgets {
            let [ratio, lowest, highest] = self.ratio(one, other);
            let verdict = if ratio > budget { "over budget" } else { "" };
            println!(
                "| {what} | {ratio:.2} | {lowest:.2} to {highest:.2} | {budget:.2} | {verdict} |"
            );
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
