"""The README's recipes as they stand, with the real clients."""

import json
import os
import re
import subprocess
import sys
import time

import pytest
from conftest import ROOT, wait_until

README = (ROOT / "README.md").read_text()
DRIVERS = ROOT / "tests/clients/drivers"
PRIVATE = ROOT / "target/clients"

# For each client's name in the README: the language of its block, where the block goes, and where the
# files of its driver go.
RECIPES = {
    "redis-py": ("python", "recipe.py", {"python.py": "driver.py"}),
    "node-redis": ("js", "recipe.mjs", {"javascript.mjs": "driver.mjs"}),
    "ioredis": ("js", "recipe.mjs", {"javascript.mjs": "driver.mjs"}),
    "redis-rs": ("rust", "src/recipe.rs", {"rust.rs": "src/main.rs", "rust.toml": "Cargo.toml"}),
}


def block(client, language):
    """The code of a client's recipe."""
    found = re.search(rf"\*\*\w+, {client}\*\*[^\n]*\n\n```{language}\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no recipe for {client}"
    return found[1]


def for_cluster(client, text):
    """Replaces in a text what the README's table says to replace for a cluster."""
    rows = re.findall(rf"^\| {client} \| `(.*?)` \| `(.*?)` \|$", README, re.MULTILINE)
    assert rows, f"the README does not say how {client} connects to a cluster"
    for single, cluster in rows:
        text = text.replace(single, cluster)
    return text


class Program:
    """A recipe with its driver, running."""

    def __init__(self, client, url, change=lambda text: text):
        language, recipe, driver = RECIPES[client]
        files = {recipe: block(client, language)}
        files.update((to, (DRIVERS / source).read_text()) for source, to in driver.items())
        # A folder of its own; node finds the installed clients in the folder above.
        folder = PRIVATE / "node" / client if language == "js" else PRIVATE / client
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(change(text))
        environment = {**os.environ, "REDIS_URL": url}
        if language == "rust":
            cargo = ["cargo", "build", "--quiet", "--target-dir", PRIVATE / "target"]
            subprocess.run(cargo, cwd=folder, check=True)
        command = {
            "python": [sys.executable, "driver.py"],
            "js": ["node", "driver.mjs"],
            "rust": [PRIVATE / "target/debug/recipe"],
        }[language]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )

    def allow(self, key):
        self.process.stdin.write(key + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        # Some clients connect in the background, and until then every call passes.
        assert wait_until(lambda: self.allow("warm-up")[1] is not None)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def assert_three_a_minute(program, key):
    assert [program.allow(key) for _ in range(3)] == [[True, 2, 0], [True, 1, 0], [True, 0, 0]]
    allowed, remaining, retry_after_ms = program.allow(key)
    assert (allowed, remaining) == (False, 0)
    assert 50_000 < retry_after_ms <= 60_000


@pytest.mark.parametrize("client", RECIPES)
def test_a_recipe_allows_three_calls_a_minute(client, server):
    with Program(client, server.url) as program:
        assert_three_a_minute(program, "user:42")
        assert server.redis.zcard("user:42") == 3
        assert_three_a_minute(program, "Ünïcode user; DROP *")


@pytest.mark.parametrize("client", RECIPES)
def test_a_recipe_lets_calls_pass_while_redis_does_not_answer(client, server):
    with Program(client, server.url) as program:
        server.pause()
        started = time.monotonic()
        assert program.allow("user:42") == [True, None, 0]
        assert time.monotonic() - started < 2
        server.resume()

        assert wait_until(lambda: program.allow("again")[1] is not None)


@pytest.mark.parametrize("client", RECIPES)
def test_a_recipe_lets_calls_pass_while_redis_is_away_and_counts_again_after(client, server):
    with Program(client, server.url) as program:
        server.stop()
        for _ in range(5):
            started = time.monotonic()
            assert program.allow("user:42") == [True, None, 0]
            assert time.monotonic() - started < 2
        server.start()

        assert wait_until(lambda: program.allow("again")[1] is not None)
        # Nothing that passed meanwhile is sent later.
        assert server.redis.zcard("user:42") == 0
        assert_three_a_minute(program, "user:42")


@pytest.mark.parametrize("client", RECIPES)
def test_a_recipe_works_in_a_cluster(client, cluster):
    with Program(client, cluster.url, lambda text: for_cluster(client, text)) as program:
        for key in ("a", "b", "c", "user:42"):
            assert_three_a_minute(program, f"{client}:{key}")


def test_every_other_recipe_says_that_it_is_not_executed():
    headings = re.findall(r"^\*\*\w+, ([\w-]+)\*\*(.*)$", README, re.MULTILINE)
    others = {client: note for client, note in headings if client not in RECIPES}
    assert others == {
        "go-redis": " (run once by hand with go-redis 9.17, not by the test)",
        "Jedis": " (not executed here)",
    }
