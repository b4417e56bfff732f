// The storage, driven by the real library. REDIS_URL names a Redis with the module, BARE_URL one without.
import "reflect-metadata";
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, beforeEach, test } from "node:test";
import { Controller, Get, Module, type INestApplication } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import { ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler";
import { Redis } from "ioredis";
import { SlidewinThrottlerStorage } from "./slidewin-throttler-storage.js";

const redis = new Redis(process.env.REDIS_URL!);
const apps: INestApplication[] = [];
beforeEach(() => redis.flushall());
after(async () => {
  for (const app of apps) await app.close();
  redis.disconnect();
});

@Controller()
class Hello {
  @Get()
  hello() {
    return "hello";
  }
}

async function start(throttler: { ttl: number; limit: number; blockDuration?: number }, client = redis) {
  @Module({
    imports: [ThrottlerModule.forRoot({ throttlers: [throttler], storage: new SlidewinThrottlerStorage(client) })],
    controllers: [Hello],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })
  class App {}
  const app = await NestFactory.create(App, { logger: false });
  apps.push(app);
  await app.listen(0);
  return app.getUrl();
}

test("a limit is a limit, and says when to come back", async () => {
  const url = await start({ ttl: 60_000, limit: 3 });
  const responses = [];
  for (let n = 0; n < 5; n++) responses.push(await fetch(url));
  assert.deepEqual(responses.map((response) => response.status), [200, 200, 200, 429, 429]);
  assert.equal(responses[0]!.headers.get("X-RateLimit-Remaining"), "2");
  const wait = Number(responses[4]!.headers.get("Retry-After"));
  assert.ok(wait > 55 && wait <= 60);
});

test("a block lasts as long as it says, and then the client begins anew", async () => {
  const url = await start({ ttl: 60_000, limit: 2, blockDuration: 400 });
  const status = async () => (await fetch(url)).status;
  assert.deepEqual([await status(), await status(), await status(), await status()], [200, 200, 429, 429]);
  await new Promise((done) => setTimeout(done, 450));
  assert.deepEqual([await status(), await status(), await status()], [200, 200, 429]);
});

test("while Redis does not answer, requests fail as soon as the client gives up", async () => {
  const options = { commandTimeout: 200, enableOfflineQueue: false, maxRetriesPerRequest: 0, socketTimeout: 5000 };
  const impatient = new Redis(process.env.REDIS_URL!, options);
  await once(impatient, "ready");
  const url = await start({ ttl: 60_000, limit: 3 }, impatient);
  await redis.call("CLIENT", "PAUSE", 1500, "ALL");
  const started = performance.now();
  assert.equal((await fetch(url)).status, 500);
  assert.ok(performance.now() - started < 1000);
  impatient.disconnect();
});

test("what is wrong is said in one sentence", async () => {
  const bare = new Redis(process.env.BARE_URL!);
  const storage = new SlidewinThrottlerStorage(bare);
  await assert.rejects(storage.increment("a", 1000, 1, 0, "default"), /this Redis has not loaded the module slidewin/);
  bare.disconnect();
});
