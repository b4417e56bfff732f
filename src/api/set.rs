//! A key that holds a sorted set or nothing.

use super::{required, Key, OwnedString};
use redis_module::{raw, CallOptionsBuilder, CallReply, CallResult, Context};
use std::ffi::c_int;
use std::ptr;

/// A sorted set under an open key, or an absent key.
pub struct SortedSet<'a> {
    key: Key<'a>,
}

/// A member of a sorted set and its score.
pub struct Member {
    /// The score, never NaN.
    pub score: f64,
    /// The member's bytes.
    pub name: OwnedString,
}

/// Where in a range of scores an iteration starts, and thereby its direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At the lowest score, upwards.
    Lowest,
    /// At the highest score, downwards.
    Highest,
}

/// An iteration at a member, ended when dropped.
struct Iteration<'a> {
    set: &'a SortedSet<'a>,
    from: End,
}

impl Iteration<'_> {
    /// Goes to the next member, if there is one.
    fn step(&self) -> Option<()> {
        let step = match self.from {
            End::Lowest => required!(RedisModule_ZsetRangeNext),
            End::Highest => required!(RedisModule_ZsetRangePrev),
        };
        // SAFETY: the key is open and an iteration is under way, for `self` is one.
        let moved = unsafe { step(self.set.key.pointer()) };
        (moved != 0).then_some(())
    }

    /// The member that the iteration is at.
    fn current(&self) -> Option<Member> {
        let mut score = 0.0;
        // SAFETY: as in `step`; the score is written to a live variable, and the string that comes
        // back is ours to free, which the wrapper does.
        unsafe {
            let name = required!(RedisModule_ZsetRangeCurrentElement)(
                self.set.key.pointer(),
                &raw mut score,
            );
            OwnedString::from_raw(name).map(|name| Member { score, name })
        }
    }
}

impl Drop for Iteration<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open; ending an iteration that has ended is harmless.
        unsafe { required!(RedisModule_ZsetRangeStop)(self.set.key.pointer()) };
    }
}

impl<'a> SortedSet<'a> {
    /// The set under a key that is known to hold one, or nothing.
    pub(super) fn new(key: Key<'a>) -> Self {
        Self { key }
    }

    /// The number of members.
    pub fn len(&self) -> u64 {
        self.key.value_length() as u64
    }

    /// The member at one end of the set.
    pub fn end(&self, end: End) -> Option<Member> {
        self.iterate(end, f64::NEG_INFINITY, f64::INFINITY)?
            .current()
    }

    /// The member that is `n` steps from the highest score.
    pub fn nth_from_highest(&self, n: u64) -> Option<Member> {
        let iteration = self.iterate(End::Highest, f64::NEG_INFINITY, f64::INFINITY)?;
        for _ in 0..n {
            iteration.step()?;
        }
        iteration.current()
    }

    /// The lowest members, up to and with the first one whose score is above `max`, but at most
    /// `most` of those before it.
    pub fn lowest_past(&self, max: f64, most: usize) -> (Vec<Member>, Option<Member>) {
        let mut members = Vec::new();
        let Some(iteration) = self.iterate(End::Lowest, f64::NEG_INFINITY, f64::INFINITY) else {
            return (members, None);
        };
        while let Some(member) = iteration.current() {
            if member.score > max || members.len() >= most {
                return (members, Some(member));
            }
            members.push(member);
            if iteration.step().is_none() {
                break;
            }
        }
        (members, None)
    }

    /// At most `most` members of a range of scores, above `above` and up to `max`, from one end of it.
    pub fn members(&self, end: End, above: f64, max: f64, most: usize) -> Vec<Member> {
        let mut members = Vec::new();
        let Some(iteration) = self.iterate(end, above, max) else {
            return members;
        };
        while members.len() < most {
            let Some(member) = iteration.current() else {
                break;
            };
            members.push(member);
            if iteration.step().is_none() {
                break;
            }
        }
        members
    }

    /// The score at one end of those above `min`.
    pub fn end_above(&self, end: End, min: f64) -> Option<f64> {
        let member = self.iterate(end, min, f64::INFINITY)?.current()?;
        Some(member.score)
    }

    /// Whether a member's score is above `min`.
    pub fn has_above(&self, min: f64) -> bool {
        self.iterate(End::Lowest, min, f64::INFINITY).is_some()
    }

    /// Starts an iteration at one end of a range of scores, above `above` (or from minus infinity,
    /// which has nothing below it) and up to `max`; `None` when no member is in it.
    fn iterate(&self, from: End, above: f64, max: f64) -> Option<Iteration<'_>> {
        let above_only = c_int::from(above.is_finite());
        let seek = match from {
            End::Lowest => required!(RedisModule_ZsetFirstInScoreRange),
            End::Highest => required!(RedisModule_ZsetLastInScoreRange),
        };
        let key = self.key.pointer();
        if key.is_null() {
            return None;
        }
        // SAFETY: the key is open and holds a sorted set or nothing, and nothing is refused by
        // status. No other iteration is under way: none leaves the method that starts it.
        if unsafe { seek(key, above, max, above_only, 0) } != raw::Status::Ok as c_int {
            return None;
        }
        let iteration = Iteration { set: self, from };
        // SAFETY: as above; the iteration has just been started.
        let ended = unsafe { required!(RedisModule_ZsetRangeEndReached)(key) };
        (ended == 0).then_some(iteration)
    }

    /// Adds a member, or gives it another score, creating the key; false when the server refuses.
    #[must_use]
    pub fn add(&mut self, score: f64, name: &OwnedString) -> bool {
        let Some(key) = self.key.for_change() else {
            return false;
        };
        // SAFETY: the key is open for writing and holds a sorted set or nothing; the server copies
        // the name; null flags ask for no condition.
        let status =
            unsafe { required!(RedisModule_ZsetAdd)(key, score, name.pointer(), ptr::null_mut()) };
        status == raw::Status::Ok as c_int
    }

    /// Removes a member, and the key with its last one.
    pub fn remove(&mut self, name: &OwnedString) {
        if let Some(key) = self.key.for_change() {
            // SAFETY: the key is open for writing, and no iteration is under way, since `self` is
            // borrowed as mutable; without the member nothing happens.
            unsafe { required!(RedisModule_ZsetRem)(key, name.pointer(), ptr::null_mut()) };
        }
    }

    /// The number of members of a range in the words of `ZCOUNT`; `None` if the command failed.
    pub fn count(&self, min: &str, max: &str) -> Option<u64> {
        match self.read("ZCOUNT", &[min.as_bytes(), max.as_bytes()]) {
            Ok(CallReply::I64(count)) => count.to_i64().try_into().ok(),
            _ => None,
        }
    }

    /// The score of the member of a rank, 0 being the lowest, by `ZRANGE`; `None` if the command
    /// failed or there is no such member.
    pub fn score_at(&self, rank: u64) -> Option<f64> {
        let rank = rank.to_string();
        let words = [rank.as_bytes(), rank.as_bytes(), b"WITHSCORES"];
        let Ok(CallReply::Array(reply)) = self.read("ZRANGE", &words) else {
            return None;
        };
        let score = match reply.get(1) {
            Some(Ok(CallReply::String(score))) => score.to_string(),
            _ => None,
        };
        score?.parse().ok()
    }

    /// The key that the set is under.
    pub fn key(&self) -> &Key<'a> {
        &self.key
    }

    /// The key that the set is under, to be changed.
    pub fn key_mut(&mut self) -> &mut Key<'a> {
        &mut self.key
    }

    /// Runs a command that only reads the key, for what the module API has no call.
    fn read(&self, command: &str, arguments: &[&[u8]]) -> CallResult<'static> {
        let options = CallOptionsBuilder::new().build();
        let words: Vec<&[u8]> = std::iter::once(self.key.name().bytes())
            .chain(arguments.iter().copied())
            .collect();
        Context::new(self.key.call().ctx).call_ext(command, &options, words.as_slice())
    }
}
