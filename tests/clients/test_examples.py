"""The example applications, by real HTTP requests."""

import hashlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from conftest import ROOT, free_port, wait_until
from http_sfv import List

POLICY = [("burst", {"q": 10, "w": 1}), ("hourly", {"q": 1000, "w": 3600})]
DEMO_KEY = "limit:key:" + hashlib.sha256(b"demo").hexdigest()


def fields(response, name):
    """The items of a structured field, each with its parameters (RFC 9651)."""
    items = List()
    items.parse(response.headers[name].encode())
    return [(item.value, dict(item.params)) for item in items]


def remaining(response):
    return {name: parameters["r"] for name, parameters in fields(response, "RateLimit")}


class App:
    """An example application, running."""

    def __init__(self, name, redis_url, folder):
        self.name, self.log = name, folder / "app.log"
        port = free_port()
        if name == "fastapi":
            folder = ROOT / "examples/fastapi"
            command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port)]
        else:
            folder = ROOT / "target/clients/express"
            command = ["node", "app.js"]
        environment = {**os.environ, "REDIS_URL": redis_url, "PORT": str(port)}
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=self.log.open("w"), stderr=subprocess.STDOUT
        )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=5)
        assert wait_until(self.is_limited), self.log.read_text()

    def get(self, path="/", **headers):
        return self.http.get(path, headers=headers)

    def is_limited(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return "RateLimit" in self.get().headers
        except httpx.TransportError:
            return False

    def stop(self):
        self.http.close()
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
def app(request, server, tmp_path):
    app = App(request.param, server.url, tmp_path)
    server.redis.flushall()
    yield app
    app.stop()


def test_a_burst_gets_its_limit_and_then_429(app, server):
    responses = burst(app, 15)
    passed = [response for response in responses if response.status_code == 200]
    denied = [response for response in responses if response.status_code == 429]
    assert (len(passed), len(denied)) == (10, 5)
    assert all(response.json() == {"hello": "world"} for response in passed)
    assert sorted(remaining(response)["burst"] for response in passed) == list(range(10))
    used = server.redis.zcard("limit:address:127.0.0.1")
    left = sorted(remaining(response)["hourly"] for response in passed)
    assert left == list(range(1000 - used, 1010 - used))
    for response in denied:
        assert response.json() == {"error": "too many requests"}
        assert response.headers["Retry-After"] == "1"
        assert fields(response, "RateLimit")[0] == ("burst", {"r": 0, "t": 1})
        assert remaining(response) == {"burst": 0, "hourly": 1000 - used}
    assert all("Retry-After" not in response.headers for response in passed)
    for response in responses:
        assert fields(response, "RateLimit-Policy") == POLICY
        (burst_name, burst_state), (hourly_name, hourly_state) = fields(response, "RateLimit")
        assert (burst_name, hourly_name) == ("burst", "hourly")
        # More is free when the oldest call leaves its window.
        assert burst_state.keys() == hourly_state.keys() == {"r", "t"}
        assert burst_state["t"] == 1
        assert 3580 < hourly_state["t"] <= 3600

    time.sleep(1)
    assert app.get().status_code == 200


def test_the_hourly_limit_says_when_to_come_back(app, server):
    now = int(time.time() * 1_000_000)
    # The first of 999 calls leaves the hour in ten minutes.
    times = [now - 3_000_000_000 + call for call in range(999)]
    server.redis.zadd("limit:address:127.0.0.1", {str(at): at for at in times})

    last, denied = app.get(), app.get()
    assert (last.status_code, denied.status_code) == (200, 429)
    assert remaining(last) == {"burst": 9, "hourly": 0}
    assert 590 <= int(denied.headers["Retry-After"]) <= 600
    name, parameters = fields(denied, "RateLimit")[1]
    assert (name, parameters["r"]) == ("hourly", 0)
    assert parameters["t"] == int(denied.headers["Retry-After"])


def test_only_known_api_keys_have_a_limit_of_their_own(app, server):
    assert remaining(app.get(**{"X-API-Key": "demo"}))["hourly"] == 999
    assert remaining(app.get())["hourly"] == 999
    # Whatever else a header says, it names no key and gets into none.
    for header in ("invented", "demo,", "a:b*{c}\u00e9", "x" * 4_000):
        app.get(**{"X-API-Key": header.encode("latin-1")})
    assert sorted(server.redis.keys()) == ["limit:address:127.0.0.1", DEMO_KEY]
    assert server.redis.zcard(DEMO_KEY) == 1
    assert server.redis.zcard("limit:address:127.0.0.1") == 5


def test_a_forwarded_address_is_quoted(app, server):
    app.get(**{"X-Forwarded-For": "1.2.3.4 {x}\t*"})
    # uvicorn believes a proxy on its own machine, express only one that it is told of.
    address = {"fastapi": "1.2.3.4%20%7Bx%7D%09%2A", "express": "127.0.0.1"}[app.name]
    assert server.redis.keys() == [f"limit:address:{address}"]


@pytest.mark.parametrize("path, status, recorded", [
    ("/unavailable", 503, 0),
    ("/defect", 500, 0),
    ("/nowhere", 404, 1),
])
def test_only_the_servers_own_failures_are_refunded(app, server, path, status, recorded):
    assert app.get(path).status_code == status
    assert wait_until(lambda: server.redis.zcard("limit:address:127.0.0.1") == recorded, 2)
    assert server.redis.info("slidewin")["slidewin_refunded"] == 1 - recorded


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
    def complaints():
        return app.log.read_text().count("SLIDEWIN.CHECK failed, the request passes")

    before = complaints()
    for _ in range(5):
        started = time.monotonic()
        response = app.get()
        assert time.monotonic() - started < 2
        assert (response.status_code, response.json()) == (200, {"hello": "world"})
        assert "RateLimit" not in response.headers
    assert complaints() == before + 5
