// Workers that call somebody else's API at its limit: many of them, one queue, and nobody asks twice.
//
// RESERVE takes the next free turn and says how long to sleep until it. A turn that is not used is given back.
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

// The API allows ten calls a second; a longer rule that the first implies makes room for a longer queue.
const limit = (process.env.LIMIT ?? "10 1 600 60").split(" ");
const key = process.env.KEY ?? "turns:their-api";
const longest = Math.max(...limit.filter((_, index) => index % 2 === 1).map(Number));

export const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379", {
  commandTimeout: 1000,
  socketTimeout: 5000,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
});
redis.on("error", (error) => console.error("redis:", error.message));

// Runs a job at its turn, for which it waits at most so many seconds. A job that is cancelled before its
// turn gives it back. Without Redis no job runs: better late than over somebody else's limit.
export async function run(job, { maxWait = 30, signal } = {}) {
  const deadline = Date.now() + maxWait * 1000;
  for (;;) {
    const left = (deadline - Date.now()) / 1000;
    if (left < 0) throw new Error(`no turn within ${maxWait} seconds`);
    let reply;
    const asked = Date.now();
    try {
      const words = [...limit, "MAXWAIT", Math.min(left, longest).toFixed(6)];
      reply = await redis.call("SLIDEWIN.RESERVE", key, ...words);
    } catch (error) {
      if (error.name === "ReplyError") throw error;
      // An unanswered call may have taken a turn, which nobody uses then: one less, never one more.
      await sleep(Math.min(500, Math.max(left * 1000, 0)), undefined, { signal });
      continue;
    }
    const [granted, waitMs, id] = reply;
    if (!granted) throw new Error(waitMs < 0 ? "it never fits" : `the next turn is in ${waitMs} ms`);
    try {
      await sleep(Math.max(0, asked + waitMs - Date.now()), undefined, { signal });
    } catch (cancelled) {
      await redis.call("SLIDEWIN.REFUND", key, id);
      throw cancelled;
    }
    return job();
  }
}
