"""The examples of jobs that wait for turns, and of a budget."""

import importlib.util
import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PRIVATE, ROOT


def load(name, monkeypatch, **environment):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    spec = importlib.util.spec_from_file_location(name, ROOT / f"examples/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Job:
    def __init__(self, cancelled=False):
        self.is_cancelled = cancelled

    def cancelled(self):
        return self.is_cancelled

    def call(self):
        return time.monotonic()


@pytest.fixture
def worker(server, monkeypatch):
    return load("worker", monkeypatch, REDIS_URL=server.url, LIMIT="5 0.5 50 5")


def assert_in_turn(times, limit, window):
    """Never more than the limit in a window; sleepers wake up late, never early."""
    times = sorted(times)
    for first, beyond in zip(times, times[limit:]):
        assert beyond - first > window * 0.8


def test_workers_call_at_the_limit_and_ask_once_each(worker, server):
    with ThreadPoolExecutor(20) as workers:
        times = list(workers.map(lambda _: worker.run(Job()), range(20)))
    assert_in_turn(times, 5, 0.5)
    assert max(times) - min(times) < 4
    info = server.redis.info("slidewin")
    assert (info["slidewin_reservations"], info["slidewin_turned_away"]) == (20, 0)


def test_a_cancelled_job_gives_its_turn_back(worker, server):
    assert worker.run(Job(cancelled=True)) is None
    assert server.redis.info("slidewin")["slidewin_refunded"] == 1


def test_a_job_waits_no_longer_than_it_wants(worker):
    for _ in range(5):
        worker.run(Job())
    with pytest.raises(worker.QueueFull, match="the next turn is in"):
        worker.run(Job(), max_wait=0.1)


def test_no_job_runs_without_redis(worker, server):
    server.stop()
    with pytest.raises(worker.QueueFull, match="no turn within 1"):
        worker.run(Job(), max_wait=1)
    threading.Timer(0.3, server.start).start()
    assert worker.run(Job(), max_wait=20) > 0


def test_workers_of_nodejs_do_the_same(server):
    folder = PRIVATE / "node"
    (folder / "worker.mjs").write_text((ROOT / "examples/worker.mjs").read_text())
    program = """
        import { redis, run } from "./worker.mjs";
        await new Promise((done) => redis.once("ready", done));
        const cancel = new AbortController();
        const jobs = Array.from({ length: 20 }, () => run(() => Date.now()));
        const times = await Promise.all(jobs);
        const cancelled = run(() => "ran", { signal: cancel.signal }).catch((error) => error.name);
        setTimeout(() => cancel.abort(), 20);
        const late = await run(() => "ran", { maxWait: 0.1 }).catch((error) => error.message);
        console.log(JSON.stringify({ times, cancelled: await cancelled, late }));
        redis.disconnect();
    """
    environment = {**os.environ, "REDIS_URL": server.url, "LIMIT": "5 0.5 50 5"}
    words = ["node", "--input-type=module", "-e", program]
    shown = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    result = json.loads(shown.stdout)
    assert_in_turn([at / 1000 for at in result["times"]], 5, 0.5)
    assert result["cancelled"] == "AbortError"
    assert result["late"].startswith("the next turn is in")
    assert server.redis.info("slidewin")["slidewin_refunded"] == 1


@pytest.fixture
def budget(server, monkeypatch):
    return load("llm_budget", monkeypatch, REDIS_URL=server.url)


def used(server, key, limit):
    return server.redis.execute_command("SLIDEWIN.PEEK", key, limit, 60, "WITHINFO")[6]


def test_a_budget_counts_what_was_used(budget, server):
    assert budget.complete("7", 4_000, lambda: ("answer", 1_234)) == "answer"
    assert used(server, "{7}:tokens", budget.TOKENS) == 1_234
    budget.complete("7", 4_000, lambda: ("answer", 5_000))
    assert used(server, "{7}:tokens", budget.TOKENS) == 6_234
    assert used(server, "{7}:requests", budget.REQUESTS) == 2
    with pytest.raises(ZeroDivisionError):
        budget.complete("7", 4_000, lambda: 1 / 0)
    assert used(server, "{7}:tokens", budget.TOKENS) == 6_234


def test_an_exhausted_budget_says_which_and_for_how_long(budget, server):
    budget.charge("7", 999_000)
    with pytest.raises(budget.OverBudget, match="^tokens are exhausted$") as over:
        budget.charge("7", 2_000)
    assert 55 < over.value.retry_after <= 60
    assert used(server, "{7}:requests", budget.REQUESTS) == 1, "all or nothing"
    with pytest.raises(budget.OverBudget) as over:
        budget.charge("7", 1_000_001)
    assert over.value.retry_after is None


def test_tokens_beyond_the_estimate_are_charged_even_when_denied(budget, server):
    charge = budget.charge("7", 999_000)
    budget.settle("7", charge, 999_000, 1_500_000)
    with pytest.raises(budget.OverBudget):
        budget.charge("7", 1)


def test_tenants_race_for_their_own_budgets_only(budget, server):
    def charge(number):
        try:
            return budget.charge(str(number % 3), 10_000) > 0
        except budget.OverBudget:
            return False

    with ThreadPoolExecutor(16) as threads:
        granted = list(threads.map(charge, range(450)))
    assert sum(granted) == 300, "a hundred each"
    memory = [server.redis.memory_usage(f"{{{tenant}}}:tokens") for tenant in range(3)]
    assert max(memory) < 5_000
