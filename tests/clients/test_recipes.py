"""The recipes of docs/clients.md as they stand, with the real clients, on one server and in a cluster."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from conftest import PRIVATE, ROOT, assert_within, wait_until
from redis.exceptions import MovedError

PAGE = (ROOT / "docs/clients.md").read_text()
DRIVERS = ROOT / "tests/clients/drivers"

# For each kind of recipe: the language of its block, where the block goes, and where its driver goes.
PYTHON = ("python", "recipe.py", {"python.py": "driver.py"})
ASYNCIO = ("python", "recipe.py", {"python_async.py": "driver.py"})
JAVASCRIPT = ("js", "recipe.mjs", {"javascript.mjs": "driver.mjs"})
GO = ("go", "recipe.go", {"driver.go": "driver.go"})
RUST = ("rust", "src/recipe.rs", {"rust.rs": "src/main.rs", "rust.toml": "Cargo.toml"})
SINGLE = {
    "redis-py": PYTHON,
    "redis-py asyncio": ASYNCIO,
    "node-redis": JAVASCRIPT,
    "ioredis": JAVASCRIPT,
    "redis-rs": RUST,
    "go-redis": GO,
}
CLUSTER = {
    "redis-py cluster": PYTHON,
    "node-redis cluster": JAVASCRIPT,
    "ioredis cluster": JAVASCRIPT,
    "redis-rs cluster": RUST,
    "go-redis cluster": GO,
}
UNANSWERED = [True, None, 0]


def block(client, language):
    """The code of a client's recipe."""
    found = re.search(rf"\*\*\w+, {client}\*\*[^\n]*\n\n```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"docs/clients.md has no recipe for {client}"
    return found[1]


class Program:
    """A recipe with its driver, running."""

    def __init__(self, client, url):
        language, recipe, driver = {**SINGLE, **CLUSTER}[client]
        if language == "go" and not (PRIVATE / "go/build").exists():
            pytest.skip("scripts/clients could not install Go")
        files = {recipe: block(client, language)}
        files.update((to, (DRIVERS / source).read_text()) for source, to in driver.items())
        # A folder of its own; node finds the installed clients in the folder above.
        folder = PRIVATE / "node" / client if language == "js" else PRIVATE / client.replace(" ", "-")
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if language == "rust":
            cargo = ["cargo", "build", "--quiet", "--target-dir", PRIVATE / "target"]
            subprocess.run(cargo, cwd=folder, check=True)
        if language == "go":
            subprocess.run([PRIVATE / "go/build", "recipe"], cwd=folder, check=True)
        command = {
            "python": [sys.executable, "driver.py"],
            "js": ["node", "driver.mjs"],
            "rust": [PRIVATE / "target/debug/recipe"],
            "go": [folder / "recipe"],
        }[language]
        self.process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "REDIS_URL": url}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )

    def ask(self, key, times=1):
        self.process.stdin.write(f"{times} {key}\n")
        self.process.stdin.flush()

    def answers(self):
        line = self.process.stdout.readline()
        assert line, "the program has ended"
        return json.loads(line)

    def allow_at_once(self, key, times):
        self.ask(key, times)
        return self.answers()

    def allow(self, key):
        return self.allow_at_once(key, 1)[0]

    def is_counting(self):
        return self.allow("warm-up")[1] is not None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def assert_three_a_minute(program, key):
    assert [program.allow(key) for _ in range(3)] == [[True, 2, 0], [True, 1, 0], [True, 0, 0]]
    allowed, remaining, retry_after_ms = program.allow(key)
    assert (allowed, remaining) == (False, 0)
    assert 50_000 < retry_after_ms <= 60_000


def assert_unanswered(program, calls=5):
    """Every call passes, and within the deadline, whatever the client does inside."""
    times = []
    for _ in range(calls):
        started = time.monotonic()
        assert program.allow("user:42") == UNANSWERED
        times.append(time.monotonic() - started)
    assert_within(0.3, times)


def recorded(servers, key):
    """How many calls a key holds, on whichever server it lives."""
    for server in servers:
        try:
            return server.redis.zcard(key)
        except MovedError:
            continue


@pytest.fixture(params=[*SINGLE, *CLUSTER])
def client(request):
    return request.param


@pytest.fixture
def servers(client, request):
    """What the recipe is for: one server, or the nodes of a cluster."""
    if client in SINGLE:
        return [request.getfixturevalue("server")]
    return request.getfixturevalue("cluster")


@pytest.fixture
def program(client, servers):
    with Program(client, servers[0].url) as program:
        # Some clients connect in the background, and until then every call passes.
        assert wait_until(program.is_counting)
        for server in servers:
            server.redis.flushall()
        yield program


def test_a_recipe_allows_three_calls_a_minute(program):
    for key in ("user:42", "a", "b", "Ünïcode user; DROP *"):
        assert_three_a_minute(program, key)


def test_a_recipe_lets_calls_pass_while_redis_does_not_answer(program, servers):
    """Cases 102 and 103."""
    for server in servers:
        server.pause()
    assert_unanswered(program)
    for server in servers:
        server.resume()
    assert wait_until(program.is_counting)


def test_more_calls_at_once_than_connections_pass_no_limit(program, servers):
    """Case 102: a thousand at once, Redis healthy, a limit of 3."""
    answers = program.allow_at_once("user:42", 1000)
    assert sum(allowed for allowed, *_ in answers) <= 3
    assert recorded(servers, "user:42") == 3


def test_more_calls_at_once_than_connections_pass_while_redis_does_not_answer(program, servers):
    """A shortage that Redis' silence causes is silence, too."""
    for server in servers:
        server.pause()
    started = time.monotonic()
    assert program.allow_at_once("user:42", 100) == [UNANSWERED] * 100
    assert time.monotonic() - started < 1
    for server in servers:
        server.resume()


def test_a_recipe_that_was_held_up_itself_reads_the_reply(program, servers):
    """The reply is there, but the process could not read it in time: that is not Redis' silence."""
    assert_three_a_minute(program, "user:42")
    for _ in range(3):
        for server in servers:
            server.pause()
        program.ask("user:42")
        # The call is on its way.
        time.sleep(0.05)
        program.process.send_signal(signal.SIGSTOP)
        for server in servers:
            server.resume()
        time.sleep(0.5)
        program.process.send_signal(signal.SIGCONT)
        assert [answer[:2] for answer in program.answers()] == [[False, 0]]


def test_a_recipe_lets_calls_pass_while_redis_is_away_and_counts_again_after(program, servers):
    for server in servers:
        server.stop()
    assert_unanswered(program)
    for server in servers:
        server.start()
    assert wait_until(program.is_counting)
    # On the node of this very key, too; and nothing that passed meanwhile is sent later.
    assert wait_until(lambda: program.allow("{user:42}")[1] is not None)
    assert_three_a_minute(program, "user:42")


# The others wait for the kernel to give up, as the page says.
@pytest.mark.parametrize("client", [client for client in SINGLE if client not in ("node-redis", "redis-rs")])
def test_a_recipe_counts_again_after_redis_vanished_without_a_word(client, proxy):
    """Nothing closes the connection, and a new one would work."""
    with Program(client, proxy.url) as program:
        assert wait_until(program.is_counting)
        proxy.vanish()
        assert program.allow("user:42") == UNANSWERED
        assert wait_until(program.is_counting, 12)


def test_a_recipe_starts_while_redis_is_away(client, servers):
    """Case 103: no crash at the start, and no unhandled rejection later."""
    for server in servers:
        server.stop()
    with Program(client, servers[0].url) as program:
        assert wait_until(lambda: program.allow("user:42") == UNANSWERED)
        assert_unanswered(program)
        for server in servers:
            server.start()
        assert wait_until(program.is_counting)


def test_every_other_recipe_says_that_it_is_not_tested():
    headings = re.findall(r"^\*\*\w+, ([\w -]+)\*\*(.*)$", PAGE, re.MULTILINE)
    others = {client: note for client, note in headings if client not in {**SINGLE, **CLUSTER}}
    assert others == {"Jedis": " (not tested)"}


def users(page):
    """The users that a page defines."""
    lines = re.findall(r"^ACL SETUSER .*$", (ROOT / page).read_text(), re.MULTILINE)
    return {line.split()[2]: line.split() for line in lines}


@pytest.mark.parametrize("client", [*SINGLE, *CLUSTER])
def test_the_pages_users_suffice_for_each_client(client, request):
    """Case 113: also for what a client sends while it connects."""
    servers = [request.getfixturevalue("server")] if client in SINGLE else request.getfixturevalue("cluster")
    name = "cluster" if client in CLUSTER else "single-ioredis" if client == "ioredis" else "single"
    for server in servers:
        server.redis.execute_command(*users("docs/clients.md")[name])
    url = servers[0].url.replace("redis://", f"redis://{name}:secret@")
    with Program(client, url) as program:
        assert wait_until(lambda: program.allow("limit:warm-up")[1] is not None, 10)
        assert_three_a_minute(program, f"limit:{client}")
        # Not its keys: the call is refused by Redis, and passes.
        assert program.allow("other:key") == UNANSWERED
    for server in servers:
        server.redis.acl_deluser(name)
        server.redis.flushall()
