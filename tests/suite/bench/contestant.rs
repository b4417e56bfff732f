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

/// Two limits at once as people write it without CHECKALL: look at both, then take both.
pub const LUA_BOTH: &str = "for i = 1, 2 do \
        if redis.call('SLIDEWIN.PEEK', KEYS[i], ARGV[1], ARGV[2]) == 0 then return 0 end \
    end \
    for i = 1, 2 do \
        redis.call('SLIDEWIN.CHECK', KEYS[i], ARGV[1], ARGV[2], 'PACKED') \
    end \
    return 1";

/// What one call sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contestant {
    Ping,
    Set,
    Zadd,
    Empty,
    Calls,
    Allowed,
    DeniedRecorded,
    DeniedSkipped,
    WithInfo,
    ThreeRules,
    PackedCalls,
    Packed,
    PackedCost,
    PackedDenied,
    PackedInfo,
    OneOfAll,
    TwoOfAll,
    TwoChecks,
    TwoByLua,
    Turn,
    RecipeMulti,
    RecipePipeline,
    RecipeLua,
    Cell,
    CellDenied,
}

use Contestant::{
    Allowed, Calls, Cell, CellDenied, DeniedRecorded, DeniedSkipped, Empty, OneOfAll, Packed,
    PackedCalls, PackedCost, PackedDenied, PackedInfo, Ping, RecipeLua, RecipeMulti,
    RecipePipeline, Set, ThreeRules, Turn, TwoByLua, TwoChecks, TwoOfAll, WithInfo, Zadd,
};

/// All contestants and their names, in the order of the tables.
pub const ALL: [(Contestant, &str); 25] = [
    (Ping, "PING"),
    (Set, "SET key value EX 60"),
    (Zadd, "ZADD of a new member"),
    (Empty, "empty module command"),
    (Calls, "bare API calls of CHECK, allowed"),
    (Allowed, "CHECK, allowed"),
    (DeniedRecorded, "CHECK, denied and recorded"),
    (DeniedSkipped, "CHECK SKIPDENIED, denied"),
    (WithInfo, "CHECK WITHINFO, allowed"),
    (ThreeRules, "CHECK, three rules, allowed"),
    (PackedCalls, "bare API calls of CHECK PACKED, allowed"),
    (Packed, "CHECK PACKED, allowed"),
    (PackedCost, "CHECK PACKED COST 4000, allowed"),
    (PackedDenied, "CHECK PACKED SKIPDENIED, denied"),
    (PackedInfo, "CHECK PACKED WITHINFO, allowed"),
    (OneOfAll, "CHECKALL, one key, allowed"),
    (TwoOfAll, "CHECKALL, two keys, allowed"),
    (TwoChecks, "two CHECK PACKED WITHINFO, allowed"),
    (TwoByLua, "two PEEKs and two CHECKs in Lua"),
    (Turn, "RESERVE, granted"),
    (RecipeMulti, "recipe in MULTI/EXEC"),
    (RecipePipeline, "recipe in a pipeline"),
    (RecipeLua, "recipe as a Lua script"),
    (Cell, "redis-cell, allowed"),
    (CellDenied, "redis-cell, denied"),
];

/// What a contestant's keys hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Nothing, or what the call itself makes.
    Own,
    /// A sorted set of integers.
    SortedSet,
    /// A sorted set of fractional seconds.
    Recipe,
    /// A packed log.
    Packed,
}

impl Contestant {
    /// What its keys hold.
    pub fn content(self) -> Content {
        match self {
            Ping | Set | Empty | Cell | CellDenied => Content::Own,
            Zadd | Calls | Allowed | DeniedRecorded | DeniedSkipped | WithInfo | ThreeRules => {
                Content::SortedSet
            }
            RecipeMulti | RecipePipeline | RecipeLua => Content::Recipe,
            PackedCalls | Packed | PackedCost | PackedDenied | PackedInfo | OneOfAll | TwoOfAll
            | TwoChecks | TwoByLua | Turn => Content::Packed,
        }
    }

    /// Whether its keys are full.
    pub fn is_denied(self) -> bool {
        matches!(self, DeniedRecorded | DeniedSkipped | PackedDenied)
    }

    /// Whether it needs the module of redis-cell.
    pub fn is_cell(self) -> bool {
        matches!(self, Cell | CellDenied)
    }

    /// Writes call number `call` of a burst, and returns the number of replies to it.
    pub fn write_call(
        self,
        call: usize,
        load: Load,
        scripts: &[String; 2],
        out: &mut Vec<u8>,
    ) -> usize {
        let key = format!("key:{}", call % load.keys);
        let other = format!("key:{}", (call + load.keys / 2) % load.keys);
        let window = format!("{:.6}", load.window_micros() as f64 / 1e6);
        let limit = (load.live * 2).to_string();
        let full = load.live.to_string();
        let mut send = |words: &[&str]| {
            let _ = write!(out, "*{}\r\n", words.len());
            for word in words {
                let _ = write!(out, "${}\r\n{word}\r\n", word.len());
            }
        };
        match self {
            Ping => send(&["PING"]),
            Set => send(&["SET", &key, "12345678901234567890", "EX", "60"]),
            Zadd => {
                let stamp = (micros() + call as i64 % 1_000).to_string();
                send(&["ZADD", &key, &stamp, &stamp]);
            }
            Empty => send(&["BENCH.EMPTY", &key, &full, "3600", "SKIPDENIED"]),
            Calls => send(&["BENCH.CALLS", &key, &limit, &window]),
            PackedCalls => send(&["BENCH.PACKED", &key, &limit, &window]),
            Allowed => send(&["SLIDEWIN.CHECK", &key, &limit, &window]),
            Packed => send(&["SLIDEWIN.CHECK", &key, &limit, &window, "PACKED"]),
            PackedCost => {
                let limit = (load.live * 8_000).to_string();
                send(&[
                    "SLIDEWIN.CHECK",
                    &key,
                    &limit,
                    &window,
                    "COST",
                    "4000",
                    "PACKED",
                ]);
            }
            DeniedRecorded => send(&["SLIDEWIN.CHECK", &key, &full, "3600"]),
            DeniedSkipped | PackedDenied => {
                send(&["SLIDEWIN.CHECK", &key, &full, "3600", "SKIPDENIED"]);
            }
            WithInfo => send(&["SLIDEWIN.CHECK", &key, &limit, &window, "WITHINFO"]),
            OneOfAll => send(&["SLIDEWIN.CHECKALL", &key, &limit, &window, "1"]),
            TwoOfAll => {
                let row = [&key, &limit, &window, "1", &other, &limit, &window, "1"];
                send(&[&["SLIDEWIN.CHECKALL"], row.as_slice()].concat());
            }
            PackedInfo | TwoChecks => {
                let keys = if self == TwoChecks {
                    &[key, other][..]
                } else {
                    &[key]
                };
                for key in keys {
                    send(&["SLIDEWIN.CHECK", key, &limit, &window, "PACKED", "WITHINFO"]);
                }
                return keys.len();
            }
            TwoByLua => send(&["EVALSHA", &scripts[1], "2", &key, &other, &limit, &window]),
            Turn => send(&["SLIDEWIN.RESERVE", &key, &limit, &window]),
            ThreeRules => {
                // Each rule uses half of its limit, and the shorter ones have to be looked up.
                let part = |part: f64| format!("{:.6}", load.window_micros() as f64 / 1e6 / part);
                let (tenth, half) = ((load.live / 5).to_string(), load.live.to_string());
                let rules = [&tenth, &part(10.0), &half, &part(2.0), &limit, &window];
                let rules = rules.map(String::as_str);
                send(&[["SLIDEWIN.CHECK", &key].as_slice(), &rules].concat());
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
            RecipeLua => send(&["EVALSHA", &scripts[0], "1", &key, &limit, &window]),
            // So that its keys live on, as those of a limit an hour do.
            Cell => send(&["CL.THROTTLE", &key, "1000000", "1", "3600"]),
            CellDenied => send(&["CL.THROTTLE", &key, "0", "1", "3600"]),
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
        let keys = match live {
            20 => 20_000,
            live => (100_000 / live).clamp(10, 14_000),
        };
        Self {
            keys,
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

pub fn micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_micros() as i64
}
