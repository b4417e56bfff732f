"""Limits on a login: in 15 minutes 50 attempts for an address and 5 for an account.

Refused attempts are recorded too, as SLIDEWIN.CHECK does without SKIPDENIED: who goes on guessing stays
out. Without an answer from Redis nobody gets in; an API would rather let calls pass.

The address is asked first, and the account only if that passes: one address, once refused, cannot use up
somebody's attempts. Whoever has many addresses can still keep an account locked, five attempts each 15
minutes; against that, let a known device or a second factor in beside the limit.
"""

import hashlib
import os

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rate_limit import canonical

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
        # One spelling for each address, and a /64 for IPv6 (fastapi/rate_limit.py).
        by_address = key_of("address", canonical(address) or "unknown")
        if server.execute_command("SLIDEWIN.CHECK", by_address, 50, 900) != 1:
            return False
        return server.execute_command("SLIDEWIN.CHECK", key_of("account", account), 5, 900) == 1
    except redis.RedisError:
        return False


def succeeded(account: str) -> None:
    """Forgets the account's attempts after the right password; the address keeps its own."""
    server.delete(key_of("account", account))
