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

#[path = "../../tests/suite/support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

mod contestant;

mod bench;

use bench::Bench;
use contestant::Contestant::{
    self, Allowed, Calls, DeniedSkipped, Empty, RecipeLua, RecipeMulti, ThreeRules, WithInfo, Zadd,
};
use contestant::{Load, ALL};
use std::collections::BTreeMap;

const ROUNDS: usize = 9;

/// The median, and how far the extremes lie apart in percent of it.
fn median(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    (
        median,
        (values[values.len() - 1] - values[0]) / median * 100.0,
    )
}

const SIZES: [usize; 4] = [7, 50, 500, 50_000];

/// Those that are measured with so many entries a key: all with 50, a few with any other number.
fn contestants(live: usize) -> impl Iterator<Item = (Contestant, &'static str)> {
    let always = [Zadd, Calls, Allowed, RecipeMulti, RecipeLua];
    let contestants = ALL.into_iter();
    contestants.filter(move |(contestant, _)| live == 50 || always.contains(contestant))
}

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
                let mut turns: Vec<_> = contestants(live).collect();
                if round % 2 == 0 {
                    turns.reverse();
                }
                for (contestant, _) in turns {
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
        for (contestant, name) in contestants(50) {
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
                "| {name} | {micros:.1} | {spread:.0} % | {calls:.0} | {p50:.0} | {p99:.0} | {sent:.0} | {received:.0} | {appended:.0} |"
            );
        }
    }

    fn print_sizes(&self) {
        println!("\n| server CPU µs by live entries | 7 | 50 | 500 | 50,000 |");
        println!("| --- | --- | --- | --- | --- |");
        for (contestant, name) in contestants(7) {
            let micros = SIZES.map(|live| format!("{:.1}", self.cpu(live, contestant)));
            println!("| {name} | {} |", micros.join(" | "));
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
                Some(1.15),
            ),
            (
                "allowed / ZADD, 7 entries",
                (7, Allowed),
                (7, Zadd),
                Some(1.45),
            ),
            (
                "bare API calls / ZADD, 50 entries",
                (50, Calls),
                (50, Zadd),
                None,
            ),
            (
                "bare API calls / ZADD, 7 entries",
                (7, Calls),
                (7, Zadd),
                None,
            ),
            (
                "allowed / bare API calls, 50 entries",
                (50, Allowed),
                (50, Calls),
                None,
            ),
            (
                "allowed / recipe in MULTI",
                (50, Allowed),
                (50, RecipeMulti),
                Some(0.5),
            ),
            ("allowed / Lua", (50, Allowed), (50, RecipeLua), Some(0.42)),
            (
                "denied SKIPDENIED / Lua",
                (50, DeniedSkipped),
                (50, RecipeLua),
                Some(0.2),
            ),
            (
                "denied SKIPDENIED / empty command",
                (50, DeniedSkipped),
                (50, Empty),
                Some(1.7),
            ),
            (
                "WITHINFO / plain",
                (50, WithInfo),
                (50, Allowed),
                Some(1.15),
            ),
            (
                "three rules / one",
                (50, ThreeRules),
                (50, Allowed),
                Some(2.0),
            ),
            (
                "allowed, 50,000 / 500 entries",
                (50_000, Allowed),
                (500, Allowed),
                Some(1.5),
            ),
        ];
        println!("\n| ratio of server CPU | median | of the rounds | budget | |");
        println!("| --- | --- | --- | --- | --- |");
        for (what, one, other, budget) in budgets {
            let [ratio, lowest, highest] = self.ratio(one, other);
            let verdict = match budget {
                Some(budget) if ratio > budget => "over budget",
                _ => "",
            };
            let budget = budget.map_or("none".to_owned(), |budget| format!("{budget:.2}"));
            println!(
                "| {what} | {ratio:.2} | {lowest:.2} to {highest:.2} | {budget} | {verdict} |"
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
