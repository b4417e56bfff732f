// A storage for @nestjs/throttler on Redis, by slidewin: an exact sliding window.
//
//     ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 10 }], storage: new SlidewinThrottlerStorage(redis) })
import type { ThrottlerStorage } from "@nestjs/throttler";

type ThrottlerStorageRecord = Awaited<ReturnType<ThrottlerStorage["increment"]>>;

/** What the storage needs of ioredis, or of its cluster. */
export interface Caller {
  call(command: string, ...words: (string | number)[]): Promise<unknown>;
}

/** allowed, limit, remaining, retry_after_ms, reset_after_ms, full_after_ms, used. */
type Info = [number, number, number, number, number, number, number];

const seconds = (ms: number) => Math.ceil(Math.max(ms, 0) / 1000);

export class SlidewinThrottlerStorage implements ThrottlerStorage {
  constructor(
    private readonly redis: Caller,
    private readonly prefix = "throttler:",
  ) {}

  async increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerStorageRecord> {
    // Both keys in one slot of a cluster.
    const log = `${this.prefix}{${key}:${throttlerName}}`;
    const block = `${log}:blocked`;
    if (blockDuration > 0) {
      const left = Number(await this.redis.call("PTTL", block));
      if (left > 0) return this.blocked(limit, ttl, left);
    }
    const [allowed, , , retryAfterMs, , fullAfterMs, used] = await this.check(log, limit, ttl);
    if (allowed === 1) {
      return { totalHits: used, timeToExpire: seconds(fullAfterMs), isBlocked: false, timeToBlockExpire: 0 };
    }
    if (blockDuration > 0) {
      // After the block the client begins anew, as with the library's own storage.
      await this.redis.call("SET", block, "", "PX", blockDuration, "NX");
      await this.redis.call("DEL", log);
      return this.blocked(limit, ttl, blockDuration);
    }
    return this.blocked(limit, fullAfterMs, retryAfterMs < 0 ? ttl : retryAfterMs);
  }

  private blocked(limit: number, expiresMs: number, blockedMs: number): ThrottlerStorageRecord {
    const timeToBlockExpire = seconds(blockedMs);
    return { totalHits: limit + 1, timeToExpire: seconds(expiresMs), isBlocked: true, timeToBlockExpire };
  }

  private async check(log: string, limit: number, ttl: number): Promise<Info> {
    const words = [log, limit, (ttl / 1000).toFixed(3), "PACKED", "SKIPDENIED", "WITHINFO"];
    try {
      return (await this.redis.call("SLIDEWIN.CHECK", ...words)) as Info;
    } catch (error) {
      if (!/unknown command/i.test((error as Error).message)) throw error;
      throw new Error("SlidewinThrottlerStorage: this Redis has not loaded the module slidewin");
    }
  }
}
