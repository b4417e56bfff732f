"""Limits on a login: in 15 minutes 5 attempts for an account and 50 for an address.

Refused attempts are recorded too, as SLIDEWIN.CHECK does without SKIPDENIED: who goes on guessing stays
out. Without an answer from Redis nobody gets in; an API would rather let calls pass.
"""

import hashlib
import os

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

server = redis.Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_timeout=0.2,
    socket_connect_timeout=0.2,
    retry=Retry(NoBackoff(), 0),
)


def key_of(kind: str, name: str) -> str:
    # Hashed: whatever a stranger types as a name, it is hexadecimal in the key.
    return f"login:{kind}:" + hashlib.sha256(name.casefold().encode()).hexdigest()


def may_try(account: str, address: str) -> bool:
    """Records an attempt, and says whether to look at its password at all."""
    try:
        with server.pipeline(transaction=False) as calls:
            calls.execute_command("SLIDEWIN.CHECK", key_of("account", account), 5, 900)
            calls.execute_command("SLIDEWIN.CHECK", key_of("address", address), 50, 900)
            return calls.execute() == [1, 1]
    except redis.RedisError:
        return False


def succeeded(account: str) -> None:
    """Forgets the account's attempts after the right password; the address keeps its own."""
    server.delete(key_of("account", account))
