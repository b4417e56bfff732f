"""A budget of requests and of tokens a minute for each tenant of a language model's API.

Both are asked in one CHECKALL, all or nothing. The estimate of tokens is charged before the call; what was not
used is given back by the call's id, and what was used beyond is charged after it, whatever the budget says.
"""

import os

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

REQUESTS, TOKENS = 600, 1_000_000  # a minute

server = redis.Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_timeout=0.2,
    socket_connect_timeout=0.2,
    retry=Retry(NoBackoff(), 0),
)


class OverBudget(Exception):
    """What is exhausted, and after how many seconds the same call is allowed; None for never."""

    def __init__(self, what, retry_after):
        super().__init__(f"{what} are exhausted")
        self.what, self.retry_after = what, retry_after


def keys_of(tenant):
    # The braces keep both keys in one slot of a cluster.
    return f"{{{tenant}}}:requests", f"{{{tenant}}}:tokens"


def charge(tenant, estimate):
    """Charges a request and its estimated tokens, and returns the id of the charge."""
    requests, tokens = keys_of(tenant)
    reply = server.execute_command(
        "SLIDEWIN.CHECKALL", requests, REQUESTS, 60, 1, tokens, TOKENS, 60, estimate
    )
    if reply[0] == 1:
        return reply[7]
    waits = dict(zip(("requests", "tokens"), (row[4] for row in reply[8])))
    what = " and ".join(name for name, wait in waits.items() if wait != 0)
    raise OverBudget(what, None if -1 in waits.values() else max(waits.values()) / 1000)


def settle(tenant, charge_id, estimate, used):
    """Corrects the estimate by what was used."""
    _, tokens = keys_of(tenant)
    if used < estimate:
        server.execute_command("SLIDEWIN.REFUND", tokens, charge_id, "COST", estimate, "KEEP", used)
    elif used > estimate:
        # Without SKIPDENIED it is recorded even when it is denied: the tokens are used.
        server.execute_command("SLIDEWIN.CHECK", tokens, TOKENS, 60, "COST", used - estimate, "PACKED")


def complete(tenant, estimate, call):
    """Makes a call, which returns its answer and the tokens that it used."""
    charge_id = charge(tenant, estimate)
    try:
        answer, used = call()
    except Exception:
        settle(tenant, charge_id, estimate, 0)
        raise
    settle(tenant, charge_id, estimate, used)
    return answer
