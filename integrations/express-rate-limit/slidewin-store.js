// A store for express-rate-limit and express-slow-down on Redis, by slidewin: an exact sliding window.
//
//     rateLimit({ limit: 100, windowMs: 60_000, store: new SlidewinStore({ sendCommand }) })

// How far attempts are counted beyond the limit.
const CEILING = 10_000;

export class SlidewinStore {
  // Keys are shared by all processes.
  localKeys = false;

  // sendCommand: (...words) => Promise, or sendCommandCluster: ({ key, isReadOnly, command }) => Promise
  // prefix: of the keys in Redis
  // skipDenied: whether denied requests leave no trace; by default they count, as with the library's own store
  constructor({ sendCommand, sendCommandCluster, prefix = "rl:", skipDenied = false }) {
    if (typeof (sendCommandCluster ?? sendCommand) !== "function") {
      throw new TypeError("SlidewinStore: sendCommand or sendCommandCluster must be a function");
    }
    this.send =
      sendCommandCluster ??
      (({ command }) => sendCommand(...command));
    this.prefix = prefix;
    this.skipDenied = skipDenied;
    // Requests that were denied without a trace, and will be taken back by the library all the same.
    this.denied = new Map();
  }

  init({ limit, windowMs, skipFailedRequests = false }) {
    this.window = (windowMs / 1000).toFixed(3);
    this.limit = typeof limit === "number" && limit > 0 ? limit : undefined;
    this.takesDeniedBack = skipFailedRequests;
    if (this.skipDenied && this.limit === undefined) {
      // The library asks the store before it asks the function.
      this.fault = new Error("SlidewinStore: with skipDenied the limit must be a number above 0, not a function");
      throw this.fault;
    }
  }

  async increment(key) {
    if (this.fault) throw this.fault;
    const { limit, window, skipDenied } = this;
    const rules = limit === undefined ? [] : [limit, window];
    if (!skipDenied) rules.push(Math.max(CEILING, limit ?? 0), window);
    const options = skipDenied ? ["SKIPDENIED", "WITHINFO"] : ["WITHINFO"];
    const reply = await this.ask(key, false, "SLIDEWIN.CHECK", ...rules, ...options);
    const denied = reply[0] === 0;
    if (skipDenied && denied) {
      if (this.takesDeniedBack) this.denied.set(key, (this.denied.get(key) ?? 0) + 1);
      return { totalHits: limit + 1, resetTime: later(reply[3]) };
    }
    return this.info(reply, denied);
  }

  async get(key) {
    const { limit, window } = this;
    const rules = limit === undefined ? [] : [limit, window];
    const reply = await this.ask(key, true, "SLIDEWIN.PEEK", ...rules, Math.max(CEILING, limit ?? 0), window, "WITHINFO");
    const info = this.info(reply, reply[0] === 0);
    return info.totalHits > 0 ? info : undefined;
  }

  // The interface knows no id, so what is given back is the newest entry: another request's, maybe.
  async decrement(key) {
    const denied = this.denied.get(key) ?? 0;
    if (denied > 1) this.denied.set(key, denied - 1);
    else this.denied.delete(key);
    if (denied === 0) await this.ask(key, false, "ZPOPMAX");
  }

  async resetKey(key) {
    this.denied.delete(key);
    await this.ask(key, false, "DEL");
  }

  // Used units are those of the last rule, which counts beyond the limit.
  info(reply, denied) {
    const rows = reply[8];
    const totalHits = rows ? rows.at(-1)[2] : reply[6];
    return { totalHits, resetTime: later(denied && reply[3] > 0 ? reply[3] : reply[5]) };
  }

  async ask(key, isReadOnly, name, ...words) {
    const command = [name, this.prefix + key, ...words.map(String)];
    try {
      return await this.send({ key: this.prefix + key, isReadOnly, command });
    } catch (error) {
      if (!/unknown command/i.test(error.message)) throw error;
      throw new Error("SlidewinStore: this Redis has not loaded the module slidewin", { cause: error });
    }
  }
}

const later = (ms) => new Date(Date.now() + Math.max(ms, 0));
