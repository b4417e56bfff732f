"""What the pages in docs/ tell people to run."""

import logging
import re

import pytest
import redis
from conftest import ROOT


def block(page, language):
    """The first block of a language on a page."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    return next(code for name, code in blocks if name == language)


@pytest.fixture
def both(server, monkeypatch):
    """The code that asks the recipe and slidewin."""
    monkeypatch.setenv("REDIS_URL", server.url)
    names = {}
    exec(block("docs/migrating.md", "python"), names)
    return names


def test_both_limiters_say_the_same_of_calls_one_by_one(both, server, caplog):
    caplog.set_level(logging.INFO)
    assert [both["allow"]("user:42", 10, 60) for _ in range(15)] == [True] * 10 + [False] * 5
    assert caplog.messages == []
    # The recipe keeps denied attempts for the whole window.
    assert (server.redis.zcard("user:42"), server.redis.zcard("limit:{user:42}")) == (15, 10)


def test_one_setting_says_which_limiter_decides_and_the_other_is_compared(
    both, monkeypatch, caplog
):
    caplog.set_level(logging.INFO)
    # In one tick of the caller's clock the recipe counts all attempts as one.
    monkeypatch.setattr(both["time"], "time", lambda: 1_700_000_000.5)
    assert [both["allow"]("user:42", 2, 60) for _ in range(3)] == [True] * 3
    assert caplog.messages == [
        "the limiters differ on user:42: {'recipe': True, 'slidewin': False}"
    ]
    monkeypatch.setenv("LIMITER", "slidewin")
    assert not both["allow"]("user:42", 2, 60)
    monkeypatch.setenv("LIMITER", "recipe")
    assert both["allow"]("user:42", 2, 60)


def test_slidewin_refuses_the_recipes_own_key(server):
    server.redis.zadd("user:42", {"1700000000.5": 1700000000.5})
    with pytest.raises(redis.ResponseError, match="key holds a sorted set that is not a slidewin log"):
        server.redis.execute_command("SLIDEWIN.CHECK", "user:42", 10, 60)
    server.redis.set("cell", "a string, as redis-cell keeps")
    with pytest.raises(redis.ResponseError, match="holding the wrong kind of value"):
        server.redis.execute_command("SLIDEWIN.CHECK", "cell", 10, 60)


def test_the_exporters_script_reports_every_counter(server):
    for _ in range(3):
        server.redis.execute_command("SLIDEWIN.CHECK", "user:42", 2, 60)
    fields = server.redis.eval(block("docs/operating.md", "lua"), 0)
    shown = {name.removeprefix("slidewin_"): str(value) for name, value in server.redis.info("slidewin").items()}
    assert dict(zip(fields[::2], fields[1::2])) == shown
    assert (shown["checks"], shown["denied"]) == ("3", "1")


def test_the_users_of_the_page_may_do_what_they_are_for_and_no_more(server):
    for line in block("docs/operating.md", "").splitlines():
        server.redis.execute_command(*line.split())
    lua = block("docs/operating.md", "lua")

    def may(user, *words):
        with redis.Redis(port=server.port, username=user, password="secret") as client:
            try:
                client.execute_command(*words)
            except redis.exceptions.NoPermissionError:
                return False
            return True

    assert may("app", "SLIDEWIN.CHECK", "limit:a", 1, 1)
    assert may("app", "SLIDEWIN.REFUND", "limit:a", 7)
    assert not may("app", "SLIDEWIN.CHECK", "other:a", 1, 1)
    assert not may("app", "DEL", "limit:a")
    assert may("support", "SLIDEWIN.PEEK", "limit:a", 1, 1)
    assert may("support", "DEL", "limit:a")
    assert not may("support", "SLIDEWIN.CHECK", "limit:a", 1, 1)
    assert may("exporter", "EVAL", lua, 0)
    assert may("exporter", "INFO", "slidewin")
    assert not may("exporter", "CONFIG", "SET", "maxmemory", 1)
    assert not may("exporter", "SLIDEWIN.CHECK", "limit:a", 1, 1)
