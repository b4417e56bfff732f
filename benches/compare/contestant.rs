//! What is compared: one call of each kind, and the keys that it goes to.

use std::io::Write as _;

/// The recipe as a script, with the server's clock.
pub const LUA: &str = "local now = redis.call('TIME') \
    now = now[1] + now[2] / 1000000 \
    local window = tonumber(ARGV[2]) \
    redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window) \
    redis.call('ZADD', KEYS[1], now, string.format('%.6f', now)) \
    local count = redis.call('ZCARD', KEYS[1]) \
    redis.call('EXPIRE', KEYS[1], math.ceil(window)) \
    return count <= tonumber(ARGV[1]) and 1 or 0";

/// What one call sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contestant {
    Ping,
    Incr,
    Zadd,
    Empty,
    Calls,
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
    Allowed, Calls, DeniedRecorded, DeniedSkipped, Empty, Incr, Ping, RecipeLua, RecipeMulti,
    RecipePipeline, ThreeRules, WithInfo, Zadd,
};

/// All contestants and their names, in the order of the tables.
pub const ALL: [(Contestant, &str); 13] = [
    (Ping, "PING"),
    (Incr, "INCR"),
    (Zadd, "ZADD of a new member"),
    (Empty, "empty module command"),
    (Calls, "bare API calls of CHECK, allowed"),
    (Allowed, "CHECK, allowed"),
    (DeniedRecorded, "CHECK, denied and recorded"),
    (DeniedSkipped, "CHECK SKIPDENIED, denied"),
    (WithInfo, "CHECK WITHINFO, allowed"),
    (ThreeRules, "CHECK, three rules, allowed"),
    (RecipeMulti, "recipe in MULTI/EXEC"),
    (RecipePipeline, "recipe in a pipeline"),
    (RecipeLua, "recipe as a Lua script"),
];

impl Contestant {
    /// Whether its keys hold integers or, as the recipe's do, fractional seconds.
    pub fn is_recipe(self) -> bool {
        matches!(self, RecipeMulti | RecipePipeline | RecipeLua)
    }

    /// Writes call number `call` of a burst, and returns the number of replies to it.
    pub fn write_call(self, call: usize, load: Load, script: &str, out: &mut Vec<u8>) -> usize {
        let key = format!("key:{}", call % load.keys);
        let window = load.window_micros() as f64 / 1e6;
        let (limit, window) = (format!("{}", load.live * 2), format!("{window:.6}"));
        let mut send = |words: &[&str]| {
            let _ = write!(out, "*{}\r\n", words.len());
            for word in words {
                let _ = write!(out, "${}\r\n{word}\r\n", word.len());
            }
        };
        let full = load.live.to_string();
        match self {
            Ping => send(&["PING"]),
            Incr => send(&["INCR", &format!("counter:{key}")]),
            Zadd => {
                let stamp = (micros() + call as i64 % 1_000).to_string();
                send(&["ZADD", &key, &stamp, &stamp]);
            }
            Empty => send(&["BENCH.EMPTY", &key, &full, "3600", "SKIPDENIED"]),
            Calls => send(&["BENCH.CALLS", &key, &limit, &window]),
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
                let now = micros() as f64 / 1e6 + (call % 1_000) as f64 / 1e6;
                let cutoff = format!("{:.6}", now - load.window_micros() as f64 / 1e6);
                let now = format!("{now:.6}");
                let seconds = (load.window_micros() / 1_000_000 + 1).to_string();
                if self == RecipeMulti {
                    send(&["MULTI"]);
                }
                send(&["ZREMRANGEBYSCORE", &key, "0", &cutoff]);
                send(&["ZADD", &key, &now, &now]);
                send(&["ZCARD", &key]);
                send(&["EXPIRE", &key, &seconds]);
                if self == RecipeMulti {
                    send(&["EXEC"]);
                    return 6;
                }
                return 4;
            }
            RecipeLua => {
                send(&["EVALSHA", script, "1", &key, &limit, &window]);
            }
        }
        1
    }
}

/// Keys that hold about `live` entries while they are called at a rate.
#[derive(Clone, Copy)]
pub struct Load {
    pub keys: usize,
    pub live: usize,
    pub calls_per_second: f64,
}

impl Load {
    /// The keys for so many entries each, at a rate to begin with.
    pub fn new(live: usize) -> Self {
        Self {
            keys: (100_000 / live).clamp(10, 20_000),
            live,
            calls_per_second: 100_000.0,
        }
    }

    /// In which a key gets `live` calls at this rate.
    pub fn window_micros(self) -> i64 {
        let micros = (self.keys * self.live) as f64 * 1e6 / self.calls_per_second;
        (micros as i64).max(1_000)
    }
}

fn micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_micros() as i64
}
