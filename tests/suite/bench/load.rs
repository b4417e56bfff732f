//! A server under measurement: its keys, its load, and what the kernel and Redis say it cost.

use super::contestant::Contestant::{self, Ping, Zadd};
use super::contestant::{Content, Load, LUA, LUA_BOTH};
use crate::support::{compile, Client, Server, Settings};
use redis::ConnectionLike;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// The calls of a burst.
pub const CALLS: usize = 20_000;
/// The calls that are sent at once.
pub const DEPTH: usize = 100;
/// The bursts of a measurement, which is their median: what is added in one runs out in it, too.
pub const BURSTS: usize = 3;
const ROUND_TRIPS: usize = 500;

/// A server, and a client that measures it.
pub struct Bench {
    server: Server,
    pub redis: Client,
    scripts: [String; 2],
    next: usize,
    /// How long it took to seed keys of so many entries.
    seeding: BTreeMap<usize, Duration>,
}

impl Bench {
    /// Starts a server with slidewin and the module of the floors.
    pub fn start(options: &str) -> Self {
        let server = Settings::new().options(options).start();
        let mut redis = server.connect();
        let module = compile("tests/suite/bench/floor.c");
        let module = module.to_str().expect("a path in UTF-8");
        redis.run::<()>(&format!("MODULE LOAD {module}"));
        if let Some(cell) = cell() {
            redis.run::<()>(&format!("MODULE LOAD {cell}"));
        }
        let mut load = |script: &str| redis.send(&[b"SCRIPT", b"LOAD", script.as_bytes()]);
        let scripts = [load(LUA), load(LUA_BOTH)];
        pin(std::process::id(), 0);
        pin(server.pid(), 1);
        Self {
            server,
            redis,
            scripts,
            next: 0,
            seeding: BTreeMap::new(),
        }
    }

    /// Fills the keys as the rate would have left them, at the moment when this returns: of each key
    /// one entry runs out between two calls to it.
    pub fn seed(&mut self, contestant: Contestant, load: Load) {
        self.redis.run::<()>("FLUSHALL");
        self.next = 0;
        let begun = Instant::now();
        let seeding = self.seeding.get(&load.live).copied().unwrap_or_default();
        let start = self.redis.time() + seeding.as_micros() as i64;
        let window = if contestant.is_denied() {
            3_600_000_000
        } else {
            load.window_micros()
        };
        let step = load.window_micros() as f64 / load.live as f64;
        // ZADD removes nothing: half of what the burst adds is left out, so that the mean is right.
        let missing = match contestant {
            Zadd => (BURSTS * CALLS / load.keys / 2).min(load.live - 1),
            _ => 0,
        };
        let all_keys: Vec<usize> = match contestant.content() {
            Content::Own => Vec::new(),
            _ => (0..load.keys).collect(),
        };
        for keys in all_keys.chunks(100) {
            let mut pipe = redis::pipe();
            for key in keys {
                let name = format!("key:{key}");
                let phase = *key as f64 / load.keys as f64 - 0.5;
                let stamp =
                    |n: i64| start - load.window_micros() + ((n as f64 + phase) * step) as i64;
                let stamps = (missing..load.live).map(|n| stamp(n as i64));
                match contestant.content() {
                    Content::Packed => {
                        // What has run out stays for a while: as much as there is on average.
                        let old = if contestant.is_denied() {
                            0
                        } else {
                            key * 7_919 % load.live
                        };
                        let stamps = (-(old as i64)..load.live as i64).map(stamp);
                        pipe.cmd("SET").arg(&name).arg(packed(stamps));
                    }
                    Content::Recipe => {
                        let command = pipe.cmd("ZADD").arg(&name);
                        for stamp in stamps {
                            let stamp = format!("{:.6}", stamp as f64 / 1e6);
                            command.arg(&stamp).arg(&stamp);
                        }
                    }
                    Content::SortedSet | Content::Own => {
                        let command = pipe.cmd("ZADD").arg(&name);
                        for stamp in stamps {
                            command.arg(stamp).arg(stamp);
                        }
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

    /// Lets the next calls go to other keys.
    pub fn jump(&mut self, calls: usize) {
        self.next += calls;
    }

    /// Sends calls at once and returns their replies.
    pub fn batch(&mut self, contestant: Contestant, load: Load, calls: usize) -> Vec<redis::Value> {
        let mut request = Vec::new();
        let replies = (0..calls)
            .map(|_| {
                self.next += 1;
                contestant.write_call(self.next, load, &self.scripts, &mut request)
            })
            .sum();
        self.redis
            .0
            .req_packed_commands(&request, 0, replies)
            .expect("replies")
    }

    /// Server microseconds per call, and calls per second.
    pub fn burst(&mut self, contestant: Contestant, load: Load) -> (f64, f64) {
        let (started, before) = (Instant::now(), self.cpu());
        for _ in 0..CALLS / DEPTH {
            self.batch(contestant, load, DEPTH);
        }
        let micros = self.cpu() - before;
        let calls = CALLS as f64;
        (micros / calls, calls / started.elapsed().as_secs_f64())
    }

    /// Microseconds of one call at a time: the median and the 99th of a hundred.
    pub fn round_trips(&mut self, contestant: Contestant, load: Load) -> (f64, f64) {
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

    /// Bytes that a call adds to the append-only file while as many entries run out as are added: 50
    /// calls to each of 40 keys, 2,000 calls a second, for a second.
    pub fn appended(&mut self, contestant: Contestant) -> f64 {
        let load = Load {
            keys: 40,
            live: 50,
            calls_per_second: 2_000.0,
        };
        let size = |bench: &Self| {
            std::thread::sleep(Duration::from_millis(20));
            let path = bench.server.append_only_path();
            std::fs::metadata(path).unwrap().len() as f64
        };
        self.seed(contestant, load);
        let (before, started) = (size(self), Instant::now());
        for batch in 1..=100 {
            self.batch(contestant, load, 20);
            let due = Duration::from_millis(10 * batch);
            std::thread::sleep(due.saturating_sub(started.elapsed()));
        }
        (size(self) - before) / 2_000.0
    }

    /// Bytes that a call sends and receives.
    pub fn network(&mut self, contestant: Contestant, load: Load) -> (f64, f64) {
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

/// The library of redis-cell, if it is to be compared with.
pub fn cell() -> Option<String> {
    std::env::var("SLIDEWIN_CELL")
        .ok()
        .filter(|path| !path.is_empty())
}

/// A packed log of calls of one unit.
fn packed(stamps: impl Iterator<Item = i64>) -> Vec<u8> {
    let mut bytes = b"slidewin\0\0\0\0\0\0\0\0".to_vec();
    for (total, stamp) in (1_u64..).zip(stamps) {
        bytes.extend(stamp.to_le_bytes());
        bytes.extend(total.to_le_bytes());
    }
    bytes
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
