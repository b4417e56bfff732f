"""The middleware of the examples, by real HTTP requests: the apps as they stand, and apps with other limits."""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from conftest import ROOT, assert_within, free_port, wait_until
from http_sfv import List

FASTAPI, EXPRESS = ROOT / "examples/fastapi", ROOT / "target/clients/express"
APPS = ROOT / "tests/clients/apps"
POLICY = [("burst", {"q": 10, "w": 1}), ("hourly", {"q": 1000, "w": 3600})]
DEMO_KEY = "limit:default:key:" + hashlib.sha256(b"demo").hexdigest()
OWN = "limit:default:address:127.0.0.1"
TEN_A_MINUTE = [{"name": "default", "rules": {"burst": [10, 60]}}]


def fields(response, name):
    """The items of a structured field, each with its parameters (RFC 9651)."""
    items = List()
    items.parse(response.headers[name].encode())
    return [(item.value, dict(item.params)) for item in items]


def states(response):
    """What is available of each rule, and for how many seconds no more, under the names of draft -12."""
    found = []
    for name, parameters in fields(response, "RateLimit"):
        new = {key: value for key, value in parameters.items() if key in "aw"}
        # The names of the drafts before it.
        assert parameters == new | {{"a": "r", "w": "t"}[key]: value for key, value in new.items()}
        found.append((name, new))
    return found


def remaining(response):
    return {name: state["a"] for name, state in states(response)}


class App:
    """An application, running: the example itself, or one with the limits given."""

    def __init__(self, name, redis_url, folder, limits=None, workers=1, uds=None, **environment):
        self.name, self.log, self.uds = name, folder / "app.log", uds
        port = free_port()
        environment = {**os.environ, "REDIS_URL": redis_url, "PORT": str(port), "API_KEYS": "demo", **environment}
        if limits:
            environment["LIMITS"] = json.dumps(limits)
        if name == "fastapi":
            environment["PYTHONPATH"] = str(FASTAPI)
            where = ["--uds", uds] if uds else ["--port", str(port)]
            command = [sys.executable, "-m", "uvicorn", "app:app", *where, "--workers", str(workers)]
            cwd = APPS if limits else FASTAPI
        else:
            if limits:
                shutil.copy(APPS / "app.mjs", EXPRESS)
            if uds:
                environment["SOCKET"] = uds
            command, cwd = ["node", "app.mjs" if limits else "app.js"], EXPRESS
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdout=self.log.open("w"), stderr=subprocess.STDOUT
        )
        self.port, self.base = port, f"http://127.0.0.1:{port}"
        transport = httpx.HTTPTransport(uds=uds) if uds else None
        self.http = httpx.Client(base_url=self.base, timeout=10, transport=transport)

    def get(self, path="/", **headers):
        return self.http.get(path, headers=headers)

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.get("/nowhere").status_code > 0
        except httpx.TransportError:
            return False

    def is_limited(self):
        return self.answers() and "RateLimit" in self.get().headers

    def at_once(self, requests, path="/", headers=lambda number: {}):
        """The statuses of so many requests that are all under way at once, and the slowest's seconds."""

        async def one(http, number):
            started = time.monotonic()
            response = await http.get(path, headers=headers(number))
            return response.status_code, time.monotonic() - started

        async def all_of_them():
            limits = httpx.Limits(max_connections=requests)
            async with httpx.AsyncClient(base_url=self.base, limits=limits, timeout=30) as http:
                return await asyncio.gather(*(one(http, number) for number in range(requests)))

        answers = asyncio.run(all_of_them())
        return [status for status, _ in answers], max(seconds for _, seconds in answers)

    def stop(self):
        self.http.close()
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def burst(app, requests):
    """What so many requests in less than a second get; on a slow machine one try may be too slow."""
    for _ in range(5):
        time.sleep(1)
        started = time.monotonic()
        with ThreadPoolExecutor(requests) as threads:
            responses = list(threads.map(lambda _: app.get(), range(requests)))
        if time.monotonic() - started < 1:
            return responses
    pytest.fail("too slow a machine to tell")


@pytest.fixture(params=["fastapi", "express"])
def start(request, server, tmp_path):
    """Starts an app, and stops it after the test."""
    started = []

    def start(limits=None, **options):
        app = App(request.param, server.url, tmp_path, limits, **options)
        started.append(app)
        assert wait_until(app.is_limited), app.log.read_text()
        server.redis.flushall()
        return app

    yield start
    for app in started:
        app.stop()


@pytest.fixture
def app(start):
    return start()


def test_a_burst_gets_its_limit_and_then_429(app, server):
    responses = burst(app, 15)
    passed = [response for response in responses if response.status_code == 200]
    denied = [response for response in responses if response.status_code == 429]
    assert (len(passed), len(denied)) == (10, 5)
    assert all(response.json() == {"hello": "world"} for response in passed)
    assert sorted(remaining(response)["burst"] for response in passed) == list(range(10))
    used = server.redis.zcard(OWN)
    left = sorted(remaining(response)["hourly"] for response in passed)
    assert left == list(range(1000 - used, 1010 - used))
    for response in denied:
        assert response.json() == {"error": "too many requests"}
        assert response.headers["Retry-After"] == "1"
        assert states(response)[0] == ("burst", {"a": 0, "w": 1})
        assert remaining(response) == {"burst": 0, "hourly": 1000 - used}
    assert all("Retry-After" not in response.headers for response in passed)
    for response in responses:
        assert fields(response, "RateLimit-Policy") == POLICY
        (burst_name, burst_state), (hourly_name, hourly_state) = states(response)
        assert (burst_name, hourly_name) == ("burst", "hourly")
        # More is free when the oldest call leaves its window.
        assert burst_state.keys() == hourly_state.keys() == {"a", "w"}
        assert burst_state["w"] == 1
        assert 3580 < hourly_state["w"] <= 3600

    time.sleep(1)
    assert app.get().status_code == 200


def test_the_hourly_limit_says_when_to_come_back(app, server):
    now = int(time.time() * 1_000_000)
    # The first of 999 calls leaves the hour in ten minutes.
    times = [now - 3_000_000_000 + call for call in range(999)]
    server.redis.zadd(OWN, {str(at): at for at in times})

    last, denied = app.get(), app.get()
    assert (last.status_code, denied.status_code) == (200, 429)
    assert remaining(last) == {"burst": 9, "hourly": 0}
    assert 590 <= int(denied.headers["Retry-After"]) <= 600
    wait = int(denied.headers["Retry-After"])
    assert states(denied)[1] == ("hourly", {"a": 0, "w": wait})


def test_only_known_api_keys_have_a_limit_of_their_own(app, server):
    assert remaining(app.get(**{"X-API-Key": "demo"}))["hourly"] == 999
    assert remaining(app.get())["hourly"] == 999
    # Whatever else a header says, it names no key and gets into none.
    for header in ("invented", "demo,", "a:b*{c}\u00e9", "x" * 4_000):
        app.get(**{"X-API-Key": header.encode("latin-1")})
    assert sorted(server.redis.keys()) == [OWN, DEMO_KEY]
    assert server.redis.zcard(DEMO_KEY) == 1
    assert server.redis.zcard(OWN) == 5


@pytest.mark.parametrize("keys", ["", ","])
def test_without_api_keys_none_is_valid(start, server, keys):
    """Case 114."""
    app = start(API_KEYS=keys)
    app.get(**{"X-API-Key": ""})
    assert server.redis.keys() == [OWN]


@pytest.mark.parametrize("path, status, recorded", [
    ("/unavailable", 503, 0),
    ("/defect", 500, 0),
    ("/nowhere", 404, 1),
])
def test_only_the_servers_own_failures_are_refunded(app, server, path, status, recorded):
    response = app.get(path)
    assert response.status_code == status
    assert wait_until(lambda: server.redis.zcard(OWN) == recorded, 2)
    assert server.redis.info("slidewin")["slidewin_refunded"] == 1 - recorded
    if "RateLimit" in response.headers:
        assert remaining(response) == {"burst": 10 - recorded, "hourly": 1000 - recorded}


def test_a_refund_takes_back_the_requests_own_cost(start, server):
    app = start([{"name": "default", "rules": {"burst": [10, 60]}, "cost": 4}])
    assert remaining(app.get()) == {"burst": 6}
    assert remaining(app.get("/unavailable")) == {"burst": 6}
    assert wait_until(lambda: server.redis.zcard(OWN) == 4, 2)
    assert remaining(app.get()) == {"burst": 2}


def test_hundreds_of_requests_at_once_get_the_limit(start, server):
    """Case 102: far above the pool, and Redis healthy."""
    app = start(TEN_A_MINUTE)
    statuses, slowest = app.at_once(600)
    assert sorted(set(statuses)) == [200, 429]
    assert statuses.count(200) == 10
    assert server.redis.zcard(OWN) == 10
    print(f"\n{app.name}: 600 at once, the slowest took {slowest * 1000:.0f} ms")


def test_a_short_pause_of_redis_lets_none_too_many_pass(start, server):
    app = start(TEN_A_MINUTE)
    with ThreadPoolExecutor(1) as thread:
        answers = thread.submit(app.at_once, 100)
        time.sleep(0.02)
        server.pause()
        time.sleep(0.1)
        server.resume()
        statuses, _ = answers.result()
    assert set(statuses) <= {200, 429, 503}
    assert statuses.count(200) <= 10 or app.log.read_text().count("no answer") > 0


@pytest.mark.parametrize("seconds", [0.5, 1.5])
def test_a_process_that_was_held_up_lets_none_too_many_pass(start, server, seconds):
    """The reply is there, but the process could not read it in time: that is not Redis' silence."""
    app = start(TEN_A_MINUTE)
    assert app.at_once(10)[0] == [200] * 10
    server.pause()
    with ThreadPoolExecutor(1) as thread:
        requests = thread.submit(app.at_once, 10)
        # They wait for Redis.
        time.sleep(0.1)
        app.process.send_signal(signal.SIGSTOP)
        server.resume()
        time.sleep(seconds)
        app.process.send_signal(signal.SIGCONT)
        statuses, _ = requests.result()
    assert set(statuses) <= {429, 503}


def test_workers_share_the_limit(start):
    app = start(TEN_A_MINUTE, workers=2)
    statuses, _ = app.at_once(60)
    assert statuses.count(200) == 10


def test_a_client_that_hangs_up_is_counted(start, server):
    """Case 108."""
    app = start(TEN_A_MINUTE)
    for _ in range(60):
        with socket.create_connection(("127.0.0.1", app.port)) as client:
            client.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nfour")
            time.sleep(0.005)
    assert wait_until(lambda: server.redis.info("slidewin")["slidewin_denied"] >= 50, 5)
    assert server.redis.zcard(OWN) == 10
    assert server.redis.info("slidewin")["slidewin_refunded"] == 0


@pytest.mark.parametrize("address, passed", [
    (lambda number: f"2001:db8:0:1::{number:x}", 10),
    (lambda number: f"192.0.2.9:{2000 + number}", 10),
    (lambda number: f"::ffff:192.0.2.{number % 2}", 20),
    (lambda number: f"nonsense {number}", 10),
])
def test_an_address_has_one_limit(start, address, passed):
    """Cases 105 and 106: addresses of one /64, ports, and what a header may say, behind a proxy."""
    app = start(TEN_A_MINUTE)
    statuses, _ = app.at_once(60, headers=lambda number: {"X-Forwarded-For": address(number)})
    # Where the framework itself takes nonsense for no address, it is the proxy's own.
    assert statuses.count(200) == passed


def test_clients_without_an_address_share_a_limit(start, server, tmp_path):
    """Case 104."""
    app = start(TEN_A_MINUTE, uds=str(tmp_path / "http.sock"))
    assert [app.get().status_code for _ in range(12)] == [200] * 10 + [429] * 2
    assert server.redis.keys() == ["limit:default:address:unknown"]
    assert app.log.read_text().count("a client has no address") == 1


def test_preflights_are_not_counted_and_browsers_can_read_a_429(app, server):
    """Case 109."""
    preflight = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    for _ in range(20):
        assert app.http.options("/", headers=preflight).status_code < 300
    assert server.redis.keys() == []
    now = int(time.time() * 1_000_000)
    server.redis.zadd(OWN, {str(now + call): now + call for call in range(1000)})
    denied = app.get(Origin="http://a.example")
    assert denied.status_code == 429
    assert denied.headers["Access-Control-Allow-Origin"] == "*"
    exposed = denied.headers["Access-Control-Expose-Headers"].lower().replace(" ", "").split(",")
    assert {"ratelimit", "ratelimit-policy", "retry-after"} <= set(exposed)


def test_mounted_twice_a_name_counts_once(start, server):
    """Case 110."""
    app = start(TEN_A_MINUTE * 2)
    app.get()
    assert server.redis.zcard(OWN) == 1


def test_different_names_both_count_and_the_stricter_one_writes_the_headers(start, server):
    app = start([
        {"name": "all", "rules": {"all": [9, 60]}},
        {"name": "other", "rules": {"other": [3, 60]}, "path": "/other"},
    ])
    assert remaining(app.get("/")) == {"all": 8}
    response = app.get("/other")
    assert remaining(response) == {"other": 2}
    assert fields(response, "RateLimit-Policy") == [("other", {"q": 3, "w": 60})]
    assert remaining(app.get("/")) == {"all": 6}
    app.get("/other")
    app.get("/other")
    denied = app.get("/other")
    assert (denied.status_code, remaining(denied)) == (429, {"other": 0})
    assert len(denied.headers.get_list("RateLimit")) == 1


def test_a_redirection_counts_and_carries_no_rate_limit(start, server):
    app = start(TEN_A_MINUTE)
    before = server.redis.zcard(OWN)
    moved = app.get("/moved")
    assert moved.status_code == 307
    assert server.redis.zcard(OWN) == before + 1
    assert not {"ratelimit", "ratelimit-policy"} & set(moved.headers)
    assert moved.headers["Retry-After"] == "7", "the app's own header stays"


def test_waiting_for_ever_is_not_suggested(start, server):
    """Case 111, and one rule is enough."""
    limits = [{"name": "off", "rules": {"off": [0, 60]}, "path": "/other"}, *TEN_A_MINUTE]
    app = start(limits)
    denied = app.get("/other")
    assert denied.status_code == 429
    assert "Retry-After" not in denied.headers
    assert states(denied) == [("off", {"a": 0})]  # no time at which more is free


@pytest.mark.parametrize("name", ["fastapi", "express"])
@pytest.mark.parametrize("rules", [
    {},
    {"a": [-1, 60]},
    {"a": [1.5, 60]},
    {"a": [1, 0]},
    {"a": [1, 4e8]},
    {str(rule): [1, 60] for rule in range(9)},
])
def test_wrong_arguments_are_an_error_at_start(name, rules, server, tmp_path):
    app = App(name, server.url, tmp_path, [{"name": "wrong", "rules": rules}])
    try:
        assert wait_until(lambda: app.process.poll() is not None, 10)
        assert "rate limit wrong" in app.log.read_text()
    finally:
        app.stop()


def complaints(app):
    lines = app.log.read_text().splitlines()
    return sum("SLIDEWIN.CHECK: " in line for line in lines)


def test_requests_pass_while_redis_is_away(app, server):
    server.stop()
    assert_passes_without_limit(app)
    server.start()

    assert wait_until(app.is_limited)
    assert sorted(response.status_code for response in burst(app, 12)) == [200] * 10 + [429] * 2


def test_requests_pass_while_redis_does_not_answer(app, server):
    server.pause()
    assert_passes_without_limit(app)
    server.resume()


def assert_passes_without_limit(app):
    times = []
    for _ in range(5):
        started = time.monotonic()
        response = app.get()
        times.append(time.monotonic() - started)
        assert (response.status_code, response.json()) == (200, {"hello": "world"})
        assert "RateLimit" not in response.headers
    assert_within(0.3, times)
    statuses, _ = app.at_once(200)
    assert statuses == [200] * 200
    # Logged, but not once for each request.
    assert 1 <= complaints(app) <= 30


def test_requests_are_refused_where_a_limit_fails_closed(start, server):
    app = start([{**TEN_A_MINUTE[0], "failOpen": False}])
    server.pause()
    refused = app.get()
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    server.resume()


@pytest.mark.parametrize("break_it", [
    lambda redis: redis.config_set("maxmemory", 1),
    lambda redis: redis.replicaof("127.0.0.1", 1),
    lambda redis: redis.execute_command("ACL", "SETUSER", "default", "-slidewin.check"),
    lambda redis: redis.set(OWN, "something else"),
])
def test_requests_pass_while_redis_refuses(app, server, break_it):
    """Case 116 among them: a full server, a replica, a missing permission, a wrong key."""
    break_it(server.redis)
    assert [app.get().status_code for _ in range(12)] == [200] * 12
    assert 1 <= complaints(app) <= 3


def test_a_wrong_password_is_logged_as_an_error(server, tmp_path):
    """It is an answer, not silence; requests pass all the same."""
    server.redis.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all")
    app = App("fastapi", server.url.replace("redis://", "redis://app:wrong@"), tmp_path)
    try:
        assert wait_until(app.answers), app.log.read_text()
        assert app.get().status_code == 200
        complaint = next(line for line in app.log.read_text().splitlines() if "SLIDEWIN.CHECK" in line)
        assert complaint.startswith("ERROR:"), complaint
    finally:
        app.stop()


def test_an_app_that_starts_without_redis_limits_once_it_is_there(server, tmp_path):
    for name in ("fastapi", "express"):
        server.stop()
        app = App(name, server.url, tmp_path)
        try:
            assert wait_until(app.answers), app.log.read_text()
            assert "RateLimit" not in app.get().headers
            server.start()
            assert wait_until(app.is_limited), app.log.read_text()
        finally:
            app.stop()


@pytest.mark.parametrize("name", ["fastapi", "express"])
def test_an_app_limits_again_after_redis_vanished_without_a_word(name, proxy, tmp_path):
    """Nothing closes the connection, and a new one would work."""
    app = App(name, proxy.url, tmp_path)
    try:
        assert wait_until(app.is_limited), app.log.read_text()
        proxy.vanish()
        assert "RateLimit" not in app.get().headers
        assert wait_until(app.is_limited, 12), app.log.read_text()
    finally:
        app.stop()


def test_a_request_that_redis_cannot_be_asked_for_fails_alone(server, monkeypatch):
    """Requests of the same moment share a pipeline, and must not share its fate."""
    monkeypatch.syspath_prepend(str(FASTAPI))
    from rate_limit import RateLimit
    from starlette.responses import Response

    def key(request):
        return "\ud800" if request.url.path == "/bad" else "good"

    app = RateLimit(Response(), rules={"burst": (10, 60)}, key=key, url=server.url)

    async def statuses():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(base_url="http://app", transport=transport) as http:
            responses = await asyncio.gather(*(http.get(path) for path in ["/"] * 6 + ["/bad"] + ["/"] * 6))
        return [response.status_code for response in responses]

    assert sorted(asyncio.run(statuses())) == [200] * 10 + [429] * 2 + [500]


def test_a_flood_in_one_process_lets_none_too_many_pass(server, monkeypatch):
    """More at once than can be asked for in time, Redis healthy: who was not asked for is refused, not let pass."""
    monkeypatch.syspath_prepend(str(FASTAPI))
    from rate_limit import RateLimit
    from starlette.responses import Response

    app = RateLimit(Response(), rules={"burst": (10, 60)}, url=server.url)
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [], "client": ("192.0.2.1", 1)}
    statuses = []

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def flood():
        await asyncio.gather(*(app(dict(scope), receive, send) for _ in range(20_000)))

    asyncio.run(flood())
    assert len(statuses) == 20_000
    assert set(statuses) <= {200, 429, 503}
    assert statuses.count(200) == 10


def test_every_event_loop_has_a_client_of_its_own(server, monkeypatch):
    """Case 107: a test client runs each call in a loop of its own."""
    from fastapi.testclient import TestClient

    monkeypatch.setenv("REDIS_URL", server.url)
    monkeypatch.setenv("LIMITS", json.dumps(TEN_A_MINUTE))
    monkeypatch.syspath_prepend(str(FASTAPI))
    monkeypatch.syspath_prepend(str(APPS))
    sys.modules.pop("app", None)
    from app import app

    client = TestClient(app)
    assert [client.get("/").status_code for _ in range(12)] == [200] * 10 + [429] * 2
    with TestClient(app) as client:
        assert client.get("/").status_code == 429
