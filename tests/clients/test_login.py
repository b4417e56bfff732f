"""The example of a login."""

import importlib.util

import pytest
from conftest import ROOT


@pytest.fixture
def login(server, monkeypatch):
    monkeypatch.setenv("REDIS_URL", server.url)
    monkeypatch.syspath_prepend(str(ROOT / "examples/fastapi"))
    spec = importlib.util.spec_from_file_location("login", ROOT / "examples/login.py")
    login = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(login)
    return login


def test_an_account_has_five_attempts_and_who_goes_on_stays_out(login, server):
    assert [login.may_try("ann", "10.0.0.1") for _ in range(5)] == [True] * 5
    # From wherever, and however the name is spelt.
    assert [login.may_try("Ann", f"10.0.1.{host}") for host in range(20)] == [False] * 20
    assert login.may_try("bob", "10.0.0.1")

    key = login.key_of("account", "ann")
    assert server.redis.zcard(key) == 5
    # Five refused attempts later the wait begins anew, with the first of the last five.
    retry_after_ms = server.redis.execute_command("SLIDEWIN.PEEK", key, 5, 900, "WITHINFO")[3]
    assert 890_000 < retry_after_ms <= 900_000


def test_an_address_has_fifty_attempts_over_all_accounts(login):
    tries = [login.may_try(f"account {number}", "10.0.0.1") for number in range(60)]
    assert tries == [True] * 50 + [False] * 10
    assert login.may_try("account 1", "10.0.0.2")


def test_an_address_that_is_refused_uses_up_nobodys_attempts(login, server):
    """Case 112."""
    for number in range(50):
        login.may_try(f"account {number}", "10.0.0.1")
    assert not login.may_try("ann", "10.0.0.1")
    assert server.redis.zcard(login.key_of("account", "ann")) == 0
    assert login.may_try("ann", "10.0.0.2")


def test_addresses_of_one_customer_are_one(login):
    """Case 105: a /64 of IPv6."""
    tries = [login.may_try(f"account {host}", f"2001:db8::{host:x}") for host in range(60)]
    assert tries == [True] * 50 + [False] * 10


def test_the_right_password_forgets_the_accounts_attempts_only(login, server):
    for _ in range(5):
        login.may_try("ann", "10.0.0.1")
    login.succeeded("ann")
    assert login.may_try("ann", "10.0.0.1")
    assert server.redis.zcard(login.key_of("address", "10.0.0.1")) == 6


def test_nobody_gets_in_while_redis_is_away(login, server):
    server.pause()
    assert not login.may_try("ann", "10.0.0.1")
    server.resume()
    assert login.may_try("bob", "10.0.0.1")
    server.stop()
    assert not login.may_try("cid", "10.0.0.1")
