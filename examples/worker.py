"""Workers that call somebody else's API at its limit: many of them, one queue, and nobody asks twice.

RESERVE takes the next free turn and says how long to sleep until it. A turn that is not used is given back.
"""

import os
import time
from contextlib import contextmanager

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

# The API allows ten calls a second; a longer rule that the first implies makes room for a longer queue.
LIMIT = os.environ.get("LIMIT", "10 1 600 60").split()
KEY = os.environ.get("KEY", "turns:their-api")

server = redis.Redis.from_url(
    os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"),
    socket_timeout=1,
    socket_connect_timeout=1,
    retry=Retry(NoBackoff(), 0),
)


class QueueFull(Exception):
    """A turn would come later than the job wants to wait."""


@contextmanager
def turn(max_wait: float):
    """Waits for a turn, at most so many seconds, and gives it back if the job fails before it begins.

    Without Redis no job runs: better late than over somebody else's limit.
    """
    deadline = time.monotonic() + max_wait
    while True:
        left = deadline - time.monotonic()
        if left < 0:
            raise QueueFull(f"no turn within {max_wait} seconds")
        try:
            asked = time.monotonic()
            longest = max(float(window) for window in LIMIT[1::2])
            words = [*LIMIT, "MAXWAIT", f"{min(left, longest):.6f}"]
            granted, wait_ms, turn_id = server.execute_command("SLIDEWIN.RESERVE", KEY, *words)
        except (redis.ConnectionError, redis.TimeoutError):
            # An unanswered call may have taken a turn, which nobody uses then: one less, never one more.
            time.sleep(min(0.5, max(left, 0)))
            continue
        if not granted:
            raise QueueFull(f"the next turn is in {wait_ms} ms" if wait_ms >= 0 else "it never fits")
        break
    started = False

    def start():
        nonlocal started
        started = True

    try:
        time.sleep(max(0.0, asked + wait_ms / 1000 - time.monotonic()))
        yield start
    finally:
        if not started:
            server.execute_command("SLIDEWIN.REFUND", KEY, turn_id)


def run(job, max_wait=30.0):
    """Runs a job at its turn."""
    with turn(max_wait) as start:
        if job.cancelled():
            return None
        start()
        return job.call()
