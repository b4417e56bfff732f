"""The integrations, each driven by the library that it is for."""

import os
import subprocess

import pytest
from conftest import PRIVATE, ROOT, Server


@pytest.fixture
def bare(tmp_path_factory):
    """A Redis without the module."""
    server = Server(tmp_path_factory.mktemp("bare"), module=False).start()
    yield server
    server.stop()


def run(command, folder, **environment):
    result = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_limits_and_with_it_flask_limiter_and_slowapi(server, bare):
    python = PRIVATE / "limits/bin/python"
    run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        ROOT / "integrations/limits",
        SLIDEWIN_URL=f"slidewin://127.0.0.1:{server.port}",
        BARE_URL=f"slidewin://127.0.0.1:{bare.port}",
        PYTHONDONTWRITEBYTECODE="1",
    )


def test_express_rate_limit_and_express_slow_down(server, bare, cluster):
    run(
        ["node", "--test"],
        PRIVATE / "express-rate-limit",
        REDIS_URL=server.url,
        BARE_URL=bare.url,
        CLUSTER_URL=cluster[0].url,
    )
