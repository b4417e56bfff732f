"""Rate limits for FastAPI, or any ASGI app of Starlette, by slidewin: one file to copy.

    app.add_middleware(RateLimit)                                  # 10 calls a second, 1,000 an hour
    app.add_middleware(RateLimit, name="search", rules={"search": (30, 60)},
                       skip=lambda request: request.url.path != "/search")

Add the CORS middleware after it, so that it is outside and a browser may read a 429.
"""

import asyncio
import hashlib
import ipaddress
import logging
import os
import time
from collections import deque

import redis.asyncio as redis
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from starlette.requests import Request
from starlette.responses import JSONResponse

log = logging.getLogger("uvicorn.error")

# Headers that a browser may read only if the CORS middleware says so (`expose_headers`).
HEADERS = ["RateLimit", "RateLimit-Policy", "Retry-After"]

# The part of an IPv6 address that names a customer; whoever has one address has the rest of it.
IPV6_PREFIX = 64

# What says that Redis cannot answer just now: no answer, or one of these.
SILENCE = (
    OSError,  # TimeoutError among them
    exceptions.ConnectionError,  # LOADING among them
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.ClusterDownError,
)


def canonical(address):
    """One spelling for each client address, or None for what is none: ports, brackets and zones go,
    IPv4 in IPv6 clothes is IPv4, and IPv6 is its /64."""
    host = address.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if ip.version == 4:
        return str(ip)
    return str(ipaddress.ip_network((ip, IPV6_PREFIX), strict=False))


def by_address(request):
    """The client's address. Clients without one, behind a unix socket, share one limit."""
    address = request.client and canonical(request.client.host)
    if address is None:
        warn("no address", "a client has no address: all of them share one limit")
        return "address:unknown"
    return f"address:{address}"


def by_api_key(keys, header="X-API-Key"):
    """The API key if it is one of ours, else the address: whoever could invent keys would have no limit."""
    known = {key for key in keys if key}

    def key(request):
        given = request.headers.get(header)
        if given in known:
            return "key:" + hashlib.sha256(given.encode()).hexdigest()
        return by_address(request)

    return key


class RateLimit:
    """The middleware.

    name: of this limit, in its keys; mounted twice with one name, a request counts once
    rules: name -> (limit, window in seconds), up to eight, all of which must hold
    key, cost, skip: functions of the request: whom it counts for, how much, and whether at all
    fail_open: whether requests pass when Redis does not answer
    url, timeout: of Redis, and how many seconds of its silence are no answer
    """

    def __init__(self, app, *, name="default", rules=None, key=by_address, cost=lambda request: 1,
                 skip=lambda request: False, fail_open=True, url=None, timeout=0.2):
        self.app, self.name, self.key, self.cost, self.skip = app, name, key, cost, skip
        self.rules = {"burst": (10, 1), "hourly": (1000, 3600)} if rules is None else dict(rules)
        self.fail_open, self.timeout = fail_open, timeout
        self.url = url or os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
        self.fault = fault_in(name, self.rules)
        self.words = [word for limit, window in self.rules.values() for word in (limit, f"{window:f}")]
        self.policy = ", ".join(f'"{rule}";q={limit};w={-(-window // 1):.0f}'
                                for rule, (limit, window) in self.rules.items())
        self.servers = {}

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            if self.fault:  # said so, a server does not start; it hides exceptions
                await receive()
                return await send({"type": "lifespan.startup.failed", "message": self.fault})
            await self.app(scope, receive, send)
            return await self.close()
        if self.fault:
            raise ValueError(self.fault)
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        limits = scope.setdefault("slidewin", {})
        request = Request(scope)
        if self.name in limits or is_preflight(request) or self.skip(request):
            return await self.app(scope, receive, send)

        # The outermost limit writes the headers, of whichever limit is the strictest.
        outermost = not limits
        limits[self.name] = None
        key, cost = f"limit:{self.name}:{self.key(request)}", self.cost(request)
        try:
            reply = await self.call("SLIDEWIN.CHECK", key, *self.words, "COST", cost, "SKIPDENIED", "WITHINFO")
        except Unavailable as error:
            reply = None
            if error.ours or not self.fail_open:
                response = JSONResponse({"error": "try again later"}, 503, {"Retry-After": "1"})
                return await response(scope, receive, send)
        limits[self.name] = reply and self.state(reply)
        if reply and not reply[0]:
            headers = dict(limits[self.name][1])
            # -1: waiting does not help.
            if reply[3] > 0:
                headers["Retry-After"] = str(seconds(reply[3]))
            response = JSONResponse({"error": "too many requests"}, 429, headers)
            return await response(scope, receive, send)

        hung_up, started = False, False

        async def receive_and_note():
            nonlocal hung_up
            message = await receive()
            hung_up = hung_up or message["type"] == "http.disconnect"
            return message

        async def send_with_headers(message):
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if message["status"] >= 500 and not hung_up:
                    await self.refund(reply, key, cost, limits)
                states = [state for state in limits.values() if state]
                refused = any(name == b"ratelimit" for name, _ in message.get("headers", []))
                # The draft wants none on a redirection: a client might wait before it follows it.
                redirects = 300 <= message["status"] < 400
                if outermost and states and not refused and not redirects:
                    _, headers = min(states, key=lambda state: state[0])
                    added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
                    message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        try:
            await self.app(scope, receive_and_note, send_with_headers)
        except Exception:
            # What the server itself got wrong costs the client nothing; a client that hangs up does that itself.
            if not started and not hung_up:
                await self.refund(reply, key, cost, limits)
            raise

    async def refund(self, reply, key, cost, limits):
        """Gives back what this very request was charged."""
        if not reply or not reply[7]:
            return
        try:
            limits[self.name] = self.state(reply, await self.call("SLIDEWIN.REFUND", key, reply[7], "COST", cost))
        except Unavailable:
            pass

    def state(self, reply, given_back=0):
        """How strict an answer is, and its headers: those of the draft `RateLimit header fields for HTTP`, -12.

        Drafts -08 to -11 called available quota and effective window `r` and `t`; a client ignores what it
        does not know.
        """
        rows = reply[8] if len(reply) > 8 else [[reply[1], 0, reply[6], reply[2], 0, reply[4]]]
        items, left = [], []
        for rule, (limit, _, used, remaining, _, reset_after_ms) in zip(self.rules, rows):
            left.append(min(limit, remaining + given_back))
            reset = 0 if used == given_back else seconds(reset_after_ms)
            known = ";a={0};w={1};r={0};t={1}" if reset_after_ms >= 0 else ";a={0};r={0}"
            items.append(f'"{rule}"' + known.format(left[-1], reset))
        return min(left), {"RateLimit-Policy": self.policy, "RateLimit": ", ".join(items)}

    async def call(self, *words):
        """Asks Redis. Only its silence is no answer."""
        try:
            return await self.server().ask(words)
        except (OSError, exceptions.RedisError) as error:
            if is_silence(error):
                warn(type(error).__name__, "%s: no answer from Redis: %r", words[0], error)
            else:
                warn(str(error)[:30], "%s: %s", words[0], error, level=logging.ERROR)
            raise Unavailable(ours=False) from error

    def server(self):
        """The client of this event loop: a connection belongs to the loop that made it."""
        loop = asyncio.get_running_loop()
        for other in [other for other in self.servers if other.is_closed()]:
            del self.servers[other]
        if loop not in self.servers:
            self.servers[loop] = Server(self.url, self.timeout)
        return self.servers[loop]

    async def close(self):
        server = self.servers.pop(asyncio.get_running_loop(), None)
        if server:
            await server.redis.aclose()


class Server:
    """A client of Redis that sends what was asked meanwhile in one pipeline, so that a burst of requests
    needs no more than one connection. No retries: a call that got no answer may have counted."""

    def __init__(self, url, timeout):
        # `exchange` keeps the deadline.
        self.redis = redis.Redis.from_url(
            url, retry=Retry(NoBackoff(), 0), socket_timeout=None, socket_connect_timeout=None
        )
        self.timeout = timeout
        self.waiting = deque()
        self.sender = None

    def ask(self, words):
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        # A key that cannot be encoded fails its own request here, and not the whole pipeline later.
        words = [str(word).encode() for word in words]
        self.waiting.append((words, answer, time.monotonic()))
        if self.sender is None or self.sender.done():
            self.sender = loop.create_task(self.send())
        return answer

    async def send(self):
        while self.waiting:
            calls = self.next_calls()
            try:
                replies = await self.exchange([words for words, _ in calls])
            except Exception as error:
                # Whoever waits behind them gets no answer either.
                calls += [(words, answer) for words, answer, _ in self.waiting]
                self.waiting.clear()
                replies = [error] * len(calls)
            for (_, answer), reply in zip(calls, replies):
                if isinstance(reply, Exception) and not answer.done():
                    answer.set_exception(reply)
                elif not answer.done():
                    answer.set_result(reply)

    def next_calls(self):
        """Up to a hundred calls: reading the replies to a whole flood takes so long that it would look like silence."""
        calls = []
        while self.waiting and len(calls) < 100:
            words, answer, since = self.waiting.popleft()
            if answer.done():  # the client hung up
                continue
            if time.monotonic() - since > 5 * self.timeout:
                # Whoever calls us can bring this about, so it must not let requests pass.
                warn("busy", "more requests than this process can ask for")
                answer.set_exception(Unavailable(ours=True))
            else:
                calls.append((words, answer))
        return calls

    async def exchange(self, calls):
        """The replies to some calls, or TimeoutError."""
        replies = asyncio.ensure_future(self.pipeline(calls))
        # Four short waits: after a pause of the process, its timers fire before it reads what has arrived.
        for _ in range(4):
            done, _ = await asyncio.wait([replies], timeout=self.timeout / 4)
            if done:
                return replies.result()
        replies.cancel()
        raise TimeoutError("silence")

    async def pipeline(self, calls):
        async with self.redis.pipeline(transaction=False) as pipe:
            for words in calls:
                pipe.execute_command(*words)
            return await pipe.execute(raise_on_error=False)


class Unavailable(Exception):
    """No answer; `ours` when that is because we are too busy, not Redis."""

    def __init__(self, ours):
        self.ours = ours


def fault_in(name, rules):
    """What is wrong with a limit's rules, or None."""
    if not 1 <= len(rules) <= 8:
        return f"rate limit {name}: 1 to 8 rules, not {len(rules)}"
    for rule, (limit, window) in rules.items():
        if not isinstance(limit, int) or not 0 <= limit < 2**63:
            return f"rate limit {name}, rule {rule}: not a limit: {limit!r}"
        if not 0.001 <= window <= 315_360_000:
            return f"rate limit {name}, rule {rule}: not a window in seconds: {window!r}"
    return None


def is_silence(error):
    if isinstance(error, exceptions.AuthenticationError):  # to redis-py an error of the connection, but an answer
        return False
    return isinstance(error, SILENCE) or str(error).startswith("MISCONF")


def is_preflight(request):
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def seconds(milliseconds):
    """Whole seconds, rounded up and never 0 for a wait."""
    return -(-milliseconds // 1000)


_said = {}


def warn(reason, *message, level=logging.WARNING):
    """Writes to the log, at most once a second for each reason."""
    if time.monotonic() - _said.get(reason, -1.0) >= 1:
        _said[reason] = time.monotonic()
        log.log(level, *message)
