// Two rate limits for an Express app, 10 calls a second and 1,000 an hour, by API key or address.
import { createHash } from "node:crypto";
import { Redis } from "ioredis";

const rules = { burst: [10, 1], hourly: [1000, 3600] };
const names = Object.keys(rules);
const limits = Object.values(rules).flat();
const policy = names.map((name) => `"${name}";q=${rules[name][0]};w=${rules[name][1]}`).join(", ");
const apiKeys = new Set((process.env.API_KEYS ?? "demo").split(","));

const url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379";
const options = { commandTimeout: 200, enableOfflineQueue: false, maxRetriesPerRequest: 0 };
const redis = new Redis(url, options);
redis.on("error", (error) => console.warn("redis:", error.message));

function keyOf(request) {
  const apiKey = request.get("X-API-Key");
  // Only our own API keys count: whoever could invent new ones would have no limit.
  if (apiKeys.has(apiKey)) {
    return "limit:key:" + createHash("sha256").update(apiKey).digest("hex");
  }
  // Quoted, since behind a proxy it comes from a header.
  return "limit:address:" + encodeURIComponent(request.ip);
}

async function call(...words) {
  try {
    return await redis.call(...words);
  } catch (error) {
    console.warn(`${words[0]} failed, the request passes: ${error.message}`);
  }
}

export async function limitRate(request, response, next) {
  const key = keyOf(request);
  const reply = await call("SLIDEWIN.CHECK", key, ...limits, "SKIPDENIED", "WITHINFO");
  if (!reply) return next();
  // The last element has a row for each rule; it is there from two rules on.
  const [allowed, , , retryAfterMs, , , , rows] = reply;
  const states = rows.map(([, , , remaining, , resetAfterMs], index) => {
    return `"${names[index]}";r=${remaining};t=${Math.ceil(resetAfterMs / 1000)}`;
  });
  response.set({ "RateLimit-Policy": policy, RateLimit: states.join(", ") });
  if (!allowed) {
    response.set("Retry-After", String(Math.ceil(retryAfterMs / 1000)));
    return response.status(429).json({ error: "too many requests" });
  }
  response.once("finish", () => {
    if (response.statusCode >= 500) call("SLIDEWIN.REFUND", key);
  });
  next();
}
