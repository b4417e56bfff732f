// The store, driven by the real libraries. REDIS_URL names a Redis with the module, BARE_URL one without,
// CLUSTER_URL a node of a cluster.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, beforeEach, test } from "node:test";
import express from "express";
import { rateLimit } from "express-rate-limit";
import { slowDown } from "express-slow-down";
import { Cluster, Redis } from "ioredis";
import { createCluster } from "redis";
import { SlidewinStore } from "./slidewin-store.js";

const redis = new Redis(process.env.REDIS_URL);
const sendCommand = (...words) => redis.call(...words);
const store = (options) => new SlidewinStore({ sendCommand, ...options });
const servers = [];
beforeEach(() => redis.flushall());
after(() => {
  for (const server of servers) server.close();
  redis.disconnect();
});

// The statuses that so many requests get, one after the other.
async function statuses(middleware, count, status = 200) {
  const app = express();
  app.use(middleware);
  app.get("/", (request, response) => response.status(status).end());
  const server = app.listen(0);
  servers.push(server);
  const url = `http://127.0.0.1:${server.address().port}/`;
  const got = [];
  for (let n = 0; n < count; n++) {
    got.push((await fetch(url)).status);
    // The library takes back after the response.
    await new Promise((done) => setTimeout(done, 20));
  }
  return got;
}
const limited = (options, { limit = 3, ...more } = {}) =>
  rateLimit({ windowMs: 60_000, limit, store: store(options), keyGenerator: () => "a", ...more });

test("a limit is a limit, with and without traces of denied requests", async () => {
  for (const skipDenied of [false, true]) {
    await redis.flushall();
    assert.deepEqual(await statuses(limited({ skipDenied }), 5), [200, 200, 200, 429, 429]);
    assert.equal(await redis.zcard("rl:a"), skipDenied ? 3 : 5);
  }
});

test("hits are counted beyond the limit", async () => {
  const counter = store();
  counter.init({ limit: 2, windowMs: 60_000 });
  const hits = [];
  for (let n = 0; n < 4; n++) hits.push((await counter.increment("a")).totalHits);
  assert.deepEqual(hits, [1, 2, 3, 4]);
  const { totalHits, resetTime } = await counter.get("a");
  assert.equal(totalHits, 4);
  assert.ok(resetTime - Date.now() > 55_000 && resetTime - Date.now() <= 60_001);
  await counter.decrement("a");
  assert.equal((await counter.get("a")).totalHits, 3);
  await counter.resetKey("a");
  assert.equal(await counter.get("a"), undefined);
});

// Case 115: the library takes back what a store without traces never gave.
test("failed requests are given back, denied ones not twice", async () => {
  for (const skipDenied of [false, true]) {
    await redis.flushall();
    const failing = limited({ skipDenied }, { skipFailedRequests: true });
    assert.deepEqual(await statuses(failing, 6, 500), [500, 500, 500, 500, 500, 500]);
    await redis.flushall();
    assert.deepEqual(await statuses(limited({ skipDenied }, { skipFailedRequests: true }), 7), [200, 200, 200, 429, 429, 429, 429]);
  }
});

test("successful requests may be given back", async () => {
  const middleware = limited({ skipDenied: true }, { skipSuccessfulRequests: true });
  assert.deepEqual(await statuses(middleware, 6), [200, 200, 200, 200, 200, 200]);
});

test("a limit that is a function is asked after the store", async () => {
  assert.deepEqual(await statuses(limited({}, { limit: async () => 2 }), 4), [200, 200, 429, 429]);
  const refused = store({ skipDenied: true });
  assert.throws(() => refused.init({ limit: () => 2, windowMs: 60_000 }), /must be a number above 0/);
  await assert.rejects(refused.increment("a"), /must be a number above 0/);
});

test("express-slow-down slows down", async () => {
  const delays = [];
  const slow = slowDown({
    windowMs: 60_000, delayAfter: 2, store: store(), keyGenerator: () => "a",
    delayMs: (used) => { delays.push(used); return 1; },
  });
  assert.deepEqual(await statuses(slow, 4), [200, 200, 200, 200]);
  assert.deepEqual(delays, [3, 4]);
});

test("a limit holds for requests at once", async () => {
  const counter = store({ skipDenied: true });
  counter.init({ limit: 10, windowMs: 60_000 });
  const hits = await Promise.all(Array.from({ length: 200 }, () => counter.increment("a")));
  assert.equal(hits.filter(({ totalHits }) => totalHits <= 10).length, 10);
});

test("in a cluster, with either client", async () => {
  const io = new Cluster([process.env.CLUSTER_URL]);
  const node = await createCluster({ rootNodes: [{ url: process.env.CLUSTER_URL }] }).connect();
  const senders = [
    ({ command }) => io.call(...command),
    ({ key, isReadOnly, command }) => node.sendCommand(key, isReadOnly, command),
  ];
  for (const [index, sendCommandCluster] of senders.entries()) {
    const counter = new SlidewinStore({ sendCommandCluster, prefix: `cluster${index}:` });
    counter.init({ limit: 2, windowMs: 60_000 });
    for (const key of ["a", "b", "c", "d"]) {
      await counter.resetKey(key);
      const hits = [await counter.increment(key), await counter.increment(key)];
      assert.deepEqual(hits.map(({ totalHits }) => totalHits), [1, 2]);
    }
  }
  io.disconnect();
  node.destroy();
});

test("while Redis does not answer, requests pass if passOnStoreError says so", async () => {
  const options = { commandTimeout: 200, enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 5000 };
  const impatient = new Redis(process.env.REDIS_URL, options);
  await once(impatient, "ready");
  const sendCommand = (...words) => impatient.call(...words);
  await redis.call("CLIENT", "PAUSE", 1500, "ALL");
  const started = performance.now();
  assert.deepEqual(await statuses(limited({ sendCommand }, { passOnStoreError: true }), 2), [200, 200]);
  assert.deepEqual(await statuses(limited({ sendCommand }), 1), [500]);
  assert.ok(performance.now() - started < 1400);
  impatient.disconnect();
});

test("what is wrong is said in one sentence", async () => {
  assert.throws(() => new SlidewinStore({}), /sendCommand or sendCommandCluster must be a function/);
  const bare = new Redis(process.env.BARE_URL);
  const counter = new SlidewinStore({ sendCommand: (...words) => bare.call(...words) });
  counter.init({ limit: 2, windowMs: 60_000 });
  await assert.rejects(counter.increment("a"), /this Redis has not loaded the module slidewin/);
  bare.disconnect();
});
