// Rate limits for Express, by slidewin: one file to copy.
//
//     app.use(rateLimit());                                       // 10 calls a second, 1,000 an hour
//     app.get("/search", rateLimit({ name: "search", rules: { search: [30, 60] } }), search);
//
// Use the CORS middleware before it, so that a browser may read a 429.
import { createHash } from "node:crypto";
import ipaddr from "ipaddr.js";
import { Redis } from "ioredis";

// Headers that a browser may read only if the CORS middleware says so (`exposedHeaders`).
export const headers = ["RateLimit", "RateLimit-Policy", "Retry-After"];

// The part of an IPv6 address that names a customer; whoever has one address has the rest of it.
const ipv6Prefix = 64;

// What says that Redis cannot answer just now, beside no answer at all.
const silence = /^(LOADING|READONLY|OOM|MISCONF|CLUSTERDOWN|MASTERDOWN|TRYAGAIN)/;

// One spelling for each client address, or undefined for what is none: ports, brackets and zones go, IPv4
// in IPv6 clothes is IPv4, and IPv6 is its /64.
export function canonical(address) {
  let host = String(address ?? "").trim();
  if (host.startsWith("[")) host = host.slice(1).split("]")[0];
  else if (host.split(":").length === 2) host = host.split(":")[0];
  host = host.split("%")[0];
  if (!ipaddr.IPv6.isValid(host) && !ipaddr.IPv4.isValidFourPartDecimal(host)) return undefined;
  const ip = ipaddr.process(host);
  if (ip.kind() === "ipv4") return ip.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${ip}/${ipv6Prefix}`)}/${ipv6Prefix}`;
}

// The client's address. Clients without one, behind a unix socket, share one limit.
export function byAddress(request) {
  const address = canonical(request.ip);
  if (address === undefined) {
    warn("no address", "a client has no address: all of them share one limit");
    return "address:unknown";
  }
  return `address:${address}`;
}

// The API key if it is one of ours, else the address: whoever could invent keys would have no limit.
export function byApiKey(keys, header = "X-API-Key") {
  const known = new Set(keys.filter((key) => key));
  return (request) => {
    const given = request.get(header);
    if (!known.has(given)) return byAddress(request);
    return "key:" + createHash("sha256").update(given).digest("hex");
  };
}

// A client of Redis: no queue and no retries, for a call that got no answer may have counted. A host that vanishes
// closes no connection, so the client drops one that does not answer.
export function connect(url = process.env.REDIS_URL ?? "redis://127.0.0.1:6379", timeout = 200) {
  const options = { enableOfflineQueue: false, maxRetriesPerRequest: 0 };
  const redis = new Redis(url, { ...options, connectTimeout: timeout, socketTimeout: 5000 });
  redis.on("error", (error) => warn("connection", `redis: ${error.message}`));
  return redis;
}
let shared;

// name: of this limit, in its keys; mounted twice with one name, a request counts once
// rules: name -> [limit, window in seconds], up to eight, all of which must hold
// key, cost, skip: functions of the request: whom it counts for, how much, and whether at all
// failOpen: whether requests pass when Redis does not answer within `timeout` milliseconds
export function rateLimit({
  name = "default",
  rules = { burst: [10, 1], hourly: [1000, 3600] },
  key = byAddress,
  cost = () => 1,
  skip = () => false,
  failOpen = true,
  timeout = 200,
  redis = (shared ??= connect()),
} = {}) {
  const names = Object.keys(rules);
  if (names.length < 1 || names.length > 8) {
    throw new RangeError(`rate limit ${name}: 1 to 8 rules, not ${names.length}`);
  }
  for (const rule of names) {
    const [limit, window] = rules[rule];
    if (!Number.isSafeInteger(limit) || limit < 0) {
      throw new RangeError(`rate limit ${name}, rule ${rule}: not a limit: ${limit}`);
    }
    if (!(window >= 0.001 && window <= 315360000)) {
      throw new RangeError(`rate limit ${name}, rule ${rule}: not a window in seconds: ${window}`);
    }
  }
  const words = names.flatMap((rule) => [rules[rule][0], rules[rule][1].toFixed(6)]);
  const policy = names
    .map((rule) => `"${rule}";q=${rules[rule][0]};w=${Math.ceil(rules[rule][1])}`)
    .join(", ");

  // When Redis last answered.
  let answered = -Infinity;

  // Asks Redis; undefined when it is silent for the timeout. While it answers others, what is late is our own
  // doing, which whoever calls us can bring about: then it waits longer, and in the end says `busy`.
  async function call(...words) {
    const began = performance.now();
    let asked = began;
    let timer;
    let done = false;
    const late = new Promise((_, reject) => {
      // A busy process runs the timer first and then reads what has arrived long ago.
      const wait = () => (timer = setTimeout(() => setImmediate(look), timeout));
      const look = () => {
        if (done) return;
        const now = performance.now();
        if (answered < asked) return reject(new Error("no answer in time"));
        if (now - began > 5 * timeout) return reject(busy);
        asked = now;
        wait();
      };
      wait();
    });
    try {
      const reply = await Promise.race([redis.call(...words), late]);
      answered = performance.now();
      return reply;
    } catch (error) {
      if (error.name === "ReplyError") answered = performance.now();
      const isAnswer = error.name === "ReplyError" && !silence.test(error.message);
      const write = isAnswer ? console.error : console.warn;
      warn(error.message.slice(0, 30), `${words[0]}: ${error.message}`, write);
      return error === busy ? busy : undefined;
    } finally {
      done = true;
      clearTimeout(timer);
    }
  }

  // How strict an answer is, and its headers: those of the draft `RateLimit header fields for HTTP`, -12.
  // Drafts -08 to -11 called available quota and effective window r and t; a client ignores what it does not know.
  function state(reply, givenBack = 0) {
    const rows = reply[8] ?? [[reply[1], 0, reply[6], reply[2], 0, reply[4]]];
    const left = rows.map(([limit, , , remaining]) => Math.min(limit, remaining + givenBack));
    const items = rows.map(([, , used, , , resetAfterMs], index) => {
      const a = left[index];
      const w = used === givenBack ? 0 : Math.ceil(resetAfterMs / 1000);
      return `"${names[index]}"` + (resetAfterMs < 0 ? `;a=${a};r=${a}` : `;a=${a};w=${w};r=${a};t=${w}`);
    });
    const fields = { "RateLimit-Policy": policy, RateLimit: items.join(", ") };
    return { strictness: Math.min(...left), fields };
  }

  return async function limitRate(request, response, next) {
    const limits = (request.slidewin ??= new Map());
    const isPreflight = request.method === "OPTIONS" && request.get("Access-Control-Request-Method");
    if (limits.has(name) || isPreflight || skip(request)) return next();
    limits.set(name, undefined);

    const id = `limit:${name}:${key(request)}`;
    const units = cost(request);
    const reply = await call("SLIDEWIN.CHECK", id, ...words, "COST", units, "SKIPDENIED", "WITHINFO");
    if (!reply || reply === busy) {
      if (failOpen && reply !== busy) return next();
      response.set("Retry-After", "1");
      return response.status(503).json({ error: "try again later" });
    }
    const [allowed, , , retryAfterMs, , , , granted] = reply;
    limits.set(name, state(reply));
    if (!allowed) {
      response.set(limits.get(name).fields);
      // -1: waiting does not help.
      if (retryAfterMs > 0) response.set("Retry-After", String(Math.ceil(retryAfterMs / 1000)));
      return response.status(429).json({ error: "too many requests" });
    }
    setStrictest(response, limits);

    // What the server itself got wrong costs the client nothing; a client that hangs up does that itself.
    const { writeHead } = response;
    response.writeHead = function (...words) {
      const status = typeof words[0] === "number" ? words[0] : response.statusCode;
      if (status >= 500 && !request.socket.destroyed) {
        call("SLIDEWIN.REFUND", id, granted, "COST", units);
        limits.set(name, state(reply, units));
        setStrictest(response, limits);
      }
      // The draft wants none on a redirection: a client might wait before it follows it.
      if (status >= 300 && status < 400) {
        for (const field of ["RateLimit", "RateLimit-Policy"]) response.removeHeader(field);
      }
      return writeHead.apply(response, words);
    };
    next();
  };
}

// Of several limits, the strictest one's headers stand.
function setStrictest(response, limits) {
  const states = [...limits.values()].filter((state) => state);
  states.sort((one, other) => one.strictness - other.strictness);
  if (states.length > 0) response.set(states[0].fields);
}

const busy = new Error("more requests than this process can ask for");

const said = new Map();

// Writes a line, at most once a second for each reason.
function warn(reason, message, write = console.warn) {
  if (Date.now() - (said.get(reason) ?? 0) < 1000) return;
  said.set(reason, Date.now());
  write(message);
}
