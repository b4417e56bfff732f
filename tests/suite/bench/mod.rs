//! slidewin against what people run today: server CPU, throughput, round trips, bytes and memory.
//!
//! Server CPU is what the kernel has charged to the server's main thread, so it holds on a machine
//! that does other work too. A measurement is the median of three bursts of 20,000 calls in pipelines
//! of 100, as fast as the server answers, on keys that hold the same number of live entries and are
//! seeded anew before them; the window is such that as many entries run out as are added. Contestants
//! take turns, several rounds of them, every other round backwards. Tables show medians; a ratio is
//! the median of the rounds' own ratios, whose two sides are moments apart.

mod cluster;
mod contestant;
mod load;
mod people;

use crate::support::server_version;
use contestant::Contestant::{
    self, Allowed, Calls, Cell, CellDenied, DeniedSkipped, Empty, OneOfAll, Packed, PackedCalls,
    PackedCost, PackedDenied, PackedInfo, RecipeLua, RecipeMulti, Set, ThreeRules, Turn, TwoByLua,
    TwoChecks, TwoOfAll, WithInfo, Zadd,
};
use contestant::{Load, ALL};
use load::{cell, Bench, BURSTS, CALLS, DEPTH};
use std::collections::BTreeMap;

const ROUNDS: usize = 7;

/// The median, and how far the extremes lie apart in percent of it.
fn median(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    let spread = values[values.len() - 1] - values[0];
    (median, spread / median * 100.0)
}

const SIZES: [usize; 5] = [7, 20, 50, 500, 50_000];

/// The number of entries that stands for a million keys with three entries each.
const MILLION: usize = 3;

/// Those that are measured with so many entries a key: all with 50, a few with any other number.
fn contestants(live: usize) -> impl Iterator<Item = (Contestant, &'static str)> {
    let beside_cell = [Allowed, Packed, Cell];
    let by_size = [Calls, Allowed, Packed, RecipeMulti, RecipeLua];
    let others = if live == 20 {
        beside_cell.as_slice()
    } else {
        by_size.as_slice()
    };
    let others = others.to_vec();
    let with_cell = cell().is_some();
    ALL.into_iter()
        .filter(move |(contestant, _)| live == 50 || others.contains(contestant))
        .filter(move |(contestant, _)| with_cell || !contestant.is_cell())
}

/// A ratio of server CPU between two contestants, and what it may be at most.
type Budget = (&'static str, (usize, Contestant), (usize, Contestant), f64);

const BUDGETS: [Budget; 26] = [
    ("allowed / bare API calls", (50, Allowed), (50, Calls), 1.12),
    (
        "allowed / recipe in MULTI",
        (50, Allowed),
        (50, RecipeMulti),
        0.42,
    ),
    ("allowed / Lua", (50, Allowed), (50, RecipeLua), 0.32),
    (
        "denied SKIPDENIED / redis-cell denied",
        (50, DeniedSkipped),
        (50, CellDenied),
        0.85,
    ),
    (
        "denied SKIPDENIED / empty command",
        (50, DeniedSkipped),
        (50, Empty),
        1.75,
    ),
    ("WITHINFO / plain", (50, WithInfo), (50, Allowed), 1.12),
    ("three rules / one", (50, ThreeRules), (50, Allowed), 2.0),
    (
        "allowed, 50,000 / 500 entries",
        (50_000, Allowed),
        (500, Allowed),
        1.5,
    ),
    (
        "packed / bare API calls of it",
        (50, Packed),
        (50, PackedCalls),
        f64::NAN,
    ),
    (
        "bare API calls of packed / SET EX",
        (50, PackedCalls),
        (50, Set),
        f64::NAN,
    ),
    ("packed / SET EX", (50, Packed), (50, Set), 1.4),
    ("packed / sorted set", (50, Packed), (50, Allowed), 0.55),
    ("packed / redis-cell", (50, Packed), (50, Cell), 0.9),
    (
        "packed / redis-cell, 20,000 keys of 20",
        (20, Packed),
        (20, Cell),
        1.0,
    ),
    (
        "packed / redis-cell, a million keys",
        (MILLION, Packed),
        (MILLION, Cell),
        1.15,
    ),
    (
        "packed denied / redis-cell denied",
        (50, PackedDenied),
        (50, CellDenied),
        0.8,
    ),
    (
        "packed COST 4000 / COST 1",
        (50, PackedCost),
        (50, Packed),
        1.05,
    ),
    (
        "packed, 50,000 / 500 entries",
        (50_000, Packed),
        (500, Packed),
        1.5,
    ),
    (
        "CHECKALL of two / two CHECKs",
        (50, TwoOfAll),
        (50, TwoChecks),
        0.95,
    ),
    (
        "CHECKALL of two / Lua",
        (50, TwoOfAll),
        (50, TwoByLua),
        0.45,
    ),
    (
        "CHECKALL of one / CHECK WITHINFO",
        (50, OneOfAll),
        (50, PackedInfo),
        1.1,
    ),
    (
        "RESERVE / CHECK WITHINFO",
        (50, Turn),
        (50, PackedInfo),
        1.1,
    ),
    ("allowed / redis-cell", (50, Allowed), (50, Cell), f64::NAN),
    (
        "allowed / redis-cell, 20,000 keys of 20",
        (20, Allowed),
        (20, Cell),
        f64::NAN,
    ),
    (
        "allowed / redis-cell, a million keys",
        (MILLION, Allowed),
        (MILLION, Cell),
        f64::NAN,
    ),
    ("bare API calls / ZADD", (50, Calls), (50, Zadd), f64::NAN),
];

/// What a packed call may add to the append-only file at most, beside one of a sorted set.
const AOF_BUDGET: f64 = 0.8;

/// What every round measured.
#[derive(Default)]
struct Results {
    cpu: BTreeMap<(usize, Contestant), Vec<f64>>,
    speed: BTreeMap<(usize, Contestant), Vec<f64>>,
    trips: BTreeMap<Contestant, Vec<(f64, f64)>>,
    appended: BTreeMap<Contestant, f64>,
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
        results.measure_a_million();
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
        let bursts: Vec<_> = (0..BURSTS).map(|_| bench.burst(contestant, load)).collect();
        let (micros, _) = median(bursts.iter().map(|burst| burst.0).collect());
        speed.push(median(bursts.iter().map(|burst| burst.1).collect()).0);
        self.cpu.entry(key).or_default().push(micros);
        if live == 50 {
            let trip = bench.round_trips(contestant, load);
            self.trips.entry(contestant).or_default().push(trip);
        }
    }

    /// A million keys of three entries, a server for each contestant, filled by its own calls.
    fn measure_a_million(&mut self) {
        eprintln!("bench: a million keys");
        let load = Load {
            keys: 1_000_000,
            live: 500_000, // never reached: a limit and a window that nothing runs out of
            calls_per_second: 1e8,
        };
        let contestants = [Allowed, Packed, Cell];
        let mut benches: Vec<_> = contestants
            .into_iter()
            .filter(|contestant| cell().is_some() || !contestant.is_cell())
            .map(|contestant| (contestant, Bench::start("")))
            .collect();
        for (contestant, bench) in &mut benches {
            for _ in 0..3 * load.keys / 1_000 {
                bench.batch(*contestant, load, 1_000);
            }
        }
        for _ in 0..ROUNDS {
            for (contestant, bench) in &mut benches {
                // A stride that comes to every key, far from the one before.
                bench.jump(99_991);
                let (micros, _) = bench.burst(*contestant, load);
                self.cpu
                    .entry((MILLION, *contestant))
                    .or_default()
                    .push(micros);
            }
        }
        println!("\n| a million keys of three calls | used_memory MB |\n| --- | --- |");
        for (contestant, bench) in &mut benches {
            let bytes = bench.redis.info_number("memory", "used_memory");
            println!("| {contestant:?} | {} |", bytes >> 20);
        }
    }

    fn cpu(&self, live: usize, contestant: Contestant) -> f64 {
        median(self.cpu[&(live, contestant)].clone()).0
    }

    fn print_contestants(&mut self) {
        let mut bench = Bench::start("--appendonly yes --appendfsync no");
        println!("\n| 2,000 keys, 50 live entries | server CPU µs | spread | beside CHECK | calls/s | p50 µs | p99 µs | bytes in | bytes out | AOF bytes |");
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for (contestant, name) in contestants(50) {
            let load = Load::new(50);
            let (micros, spread) = median(self.cpu[&(50, contestant)].clone());
            let [beside, ..] = self
                .ratio((50, contestant), (50, Allowed))
                .unwrap_or_default();
            let (calls, _) = median(self.speed[&(50, contestant)].clone());
            let trips = &self.trips[&contestant];
            let (p50, _) = median(trips.iter().map(|trip| trip.0).collect());
            let (p99, _) = median(trips.iter().map(|trip| trip.1).collect());
            bench.seed(contestant, load);
            let (sent, received) = bench.network(contestant, load);
            let appended = bench.appended(contestant);
            self.appended.insert(contestant, appended);
            println!(
                "| {name} | {micros:.2} | {spread:.0} % | {beside:.2} | {calls:.0} | {p50:.0} | {p99:.0} | {sent:.0} | {received:.0} | {appended:.0} |"
            );
        }
    }

    fn print_sizes(&self) {
        println!("\n| server CPU µs by live entries | 7 | 50 | 500 | 50,000 |");
        println!("| --- | --- | --- | --- | --- |");
        for (contestant, name) in contestants(7) {
            let sizes = [7, 50, 500, 50_000];
            let micros = sizes.map(|live| format!("{:.2}", self.cpu(live, contestant)));
            println!("| {name} | {} |", micros.join(" | "));
        }
    }

    /// The median of the rounds' own ratios, and the lowest and highest of them.
    fn ratio(&self, one: (usize, Contestant), other: (usize, Contestant)) -> Option<[f64; 3]> {
        let pairs = self.cpu.get(&one)?.iter().zip(self.cpu.get(&other)?);
        let mut ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
        ratios.sort_by(f64::total_cmp);
        Some([
            ratios[ratios.len() / 2],
            ratios[0],
            ratios[ratios.len() - 1],
        ])
    }

    fn print_budgets(&self) {
        println!("\n| ratio of server CPU, 50 live entries unless said | median | of the rounds | budget | |");
        println!("| --- | --- | --- | --- | --- |");
        for (what, one, other, budget) in BUDGETS {
            let Some([ratio, lowest, highest]) = self.ratio(one, other) else {
                continue;
            };
            let verdict = if ratio > budget { "over budget" } else { "" };
            let budget = if budget.is_nan() {
                "none".to_owned()
            } else {
                format!("{budget:.2}")
            };
            println!(
                "| {what} | {ratio:.2} | {lowest:.2} to {highest:.2} | {budget} | {verdict} |"
            );
        }
        let bytes = self.appended[&Packed] / self.appended[&Allowed];
        let verdict = if bytes > AOF_BUDGET {
            "over budget"
        } else {
            ""
        };
        println!("| bytes of the append-only file, packed / sorted set | {bytes:.2} | | {AOF_BUDGET:.2} | {verdict} |");
    }
}

/// Memory of a key by its calls, in either form, and of redis-cell, which keeps one number.
fn print_memory() {
    let mut bench = Bench::start("");
    println!("\n| calls | sorted set | with zset-max-listpack-entries 512 | packed | redis-cell |");
    println!("| --- | --- | --- | --- | --- |");
    for calls in [1, 10, 100, 128, 129, 512, 1_000, 10_000, 100_000] {
        let redis = &mut bench.redis;
        let mut bytes = |compact: usize, check: &str| {
            redis.run::<()>(&format!("CONFIG SET zset-max-listpack-entries {compact}"));
            redis.run::<()>("FLUSHALL");
            for lines in vec![check.to_owned(); calls].chunks(10_000) {
                redis.pipeline(lines);
            }
            redis.int("MEMORY USAGE k SAMPLES 0")
        };
        let check = "SLIDEWIN.CHECK k 1000000 3600";
        let (set, wide) = (bytes(128, check), bytes(512, check));
        let packed = bytes(128, &format!("{check} PACKED"));
        let each = |bytes: i64| format!("{bytes} ({:.0})", bytes as f64 / calls as f64);
        let cell = cell().map_or("-".to_owned(), |_| {
            redis.run::<()>("FLUSHALL");
            redis.run::<redis::Value>("CL.THROTTLE k 1000000 1000000 3600");
            redis.int("MEMORY USAGE k SAMPLES 0").to_string()
        });
        println!(
            "| {calls} | {} | {} | {} | {cell} |",
            each(set),
            each(wide),
            each(packed)
        );
    }
}

/// `make bench`: about twelve minutes.
#[test]
#[ignore = "takes minutes and a quiet machine; run by make bench"]
fn bench() {
    println!("{}", server_version().trim());
    println!(
        "{BURSTS} bursts of {CALLS} calls in pipelines of {DEPTH}, medians of {ROUNDS} rounds"
    );
    let mut results = Results::measure();
    eprintln!("bench: bytes and memory");
    results.print_contestants();
    results.print_sizes();
    print_memory();
    as_people_see_it();
    results.print_budgets();
}

/// The rows of `make bench` for connections, encodings and saving alone: a minute.
#[test]
#[ignore = "needs redis-benchmark and a quiet machine; run by hand"]
fn as_people_see_it() {
    people::print_connections();
    people::print_encodings();
    people::print_while_saving();
    people::print_budget();
}
