"""The storages, driven by the real libraries. SLIDEWIN_URL names a Redis with the module, BARE_URL one without."""

import asyncio
import os
import time

import pytest
import slidewin_limits
from limits import RateLimitItemPerMinute, RateLimitItemPerSecond, aio, parse, strategies
from limits.errors import ConfigurationError
from limits.storage import storage_from_string

URL, BARE = os.environ["SLIDEWIN_URL"], os.environ["BARE_URL"]
MILLION = parse("1000000 per minute")


@pytest.fixture
def storage():
    storage = storage_from_string(URL)
    storage.get_connection().flushall()
    return storage


@pytest.fixture(params=["redispy", "coredis"])
def async_storage(request, storage):
    return storage_from_string("async+" + URL, implementation=request.param)


def test_the_schemes_are_known(storage, async_storage):
    assert isinstance(storage, slidewin_limits.SlidewinStorage)
    assert isinstance(async_storage, slidewin_limits.AsyncSlidewinStorage)
    assert storage.check()


def test_a_moving_window_is_exact(storage):
    limiter, item = strategies.MovingWindowRateLimiter(storage), RateLimitItemPerSecond(3)
    assert [limiter.hit(item, "a") for _ in range(4)] == [True, True, True, False]
    assert not limiter.test(item, "a")
    reset, remaining = limiter.get_window_stats(item, "a")
    assert remaining == 0
    assert 0 < reset - time.time() <= 1
    time.sleep(max(0, reset - time.time()) + 0.01)
    assert limiter.test(item, "a")
    assert limiter.hit(item, "a")
    limiter.clear(item, "a")
    assert limiter.get_window_stats(item, "a").remaining == 3


def test_any_cost_is_one_entry(storage):
    limiter = strategies.MovingWindowRateLimiter(storage)
    assert limiter.hit(MILLION, "a", cost=999_000)
    assert not limiter.hit(MILLION, "a", cost=1_001)
    assert limiter.hit(MILLION, "a", cost=1_000)
    assert limiter.get_window_stats(MILLION, "a").remaining == 0
    key = storage.prefixed_key(MILLION.key_for("a"))
    assert storage.get_connection().strlen(key) == 16 + 2 * 16


def test_asyncio(async_storage):
    async def run():
        limiter, item = aio.strategies.MovingWindowRateLimiter(async_storage), RateLimitItemPerMinute(3)
        hits = [await limiter.hit(item, "a") for _ in range(4)]
        stats = await limiter.get_window_stats(item, "a")
        return hits, await limiter.test(item, "b"), stats.remaining

    assert asyncio.run(run()) == ([True, True, True, False], True, 0)


@pytest.mark.parametrize("uri, message", [
    ("slidewin://", "no host in the address slidewin://"),
    ("slidewins://localhost", "unknown storage scheme : slidewins://localhost"),
])
def test_a_wrong_address_is_a_clear_error(uri, message):
    with pytest.raises(ConfigurationError, match=message):
        storage_from_string(uri)
    with pytest.raises(ConfigurationError, match="not an address of the form slidewin://host:port"):
        slidewin_limits.SlidewinStorage("redis://localhost")


def test_a_redis_without_the_module_is_a_clear_error():
    limiter = strategies.MovingWindowRateLimiter(storage_from_string(BARE))
    with pytest.raises(ConfigurationError, match="this Redis has not loaded the module slidewin"):
        limiter.hit(MILLION, "a")


def test_flask_limiter(storage):
    from flask import Flask
    from flask_limiter import Limiter

    app = Flask(__name__)
    Limiter(lambda: "a", app=app, storage_uri=URL, strategy="moving-window", default_limits=["3/minute"])
    app.get("/")(lambda: "hello")
    with app.test_client() as client:
        assert [client.get("/").status_code for _ in range(4)] == [200, 200, 200, 429]


def test_slowapi(storage):
    from fastapi import FastAPI, Request
    from fastapi.testclient import TestClient
    from slowapi import Limiter, _rate_limit_exceeded_handler
    from slowapi.errors import RateLimitExceeded

    limiter = Limiter(lambda request: "b", storage_uri=URL, strategy="moving-window")
    app = FastAPI()
    app.state.limiter = limiter
    app.add_exception_handler(RateLimitExceeded, _rate_limit_exceeded_handler)

    @app.get("/")
    @limiter.limit("3/minute")
    async def hello(request: Request):
        return "hello"

    client = TestClient(app)
    assert [client.get("/").status_code for _ in range(4)] == [200, 200, 200, 429]
