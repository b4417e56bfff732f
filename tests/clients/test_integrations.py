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


@pytest.mark.parametrize("environment, folder, scheme", [
    ("limits", "limits", "slidewin"),  # and with it Flask-Limiter and slowapi
    ("django", "django-rest-framework", "redis"),
])
def test_a_python_library_works_with_slidewin(server, bare, environment, folder, scheme):
    run(
        [PRIVATE / environment / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        ROOT / "integrations" / folder,
        SLIDEWIN_URL=f"{scheme}://127.0.0.1:{server.port}",
        BARE_URL=f"{scheme}://127.0.0.1:{bare.port}",
        PYTHONDONTWRITEBYTECODE="1",
    )


@pytest.mark.parametrize("command, folder", [
    (["node", "--test"], "express-rate-limit"),  # and express-slow-down
    (["npm", "test"], "nestjs-throttler"),
])
def test_a_node_library_works_with_slidewin(server, bare, cluster, command, folder):
    run(
        command,
        PRIVATE / folder,
        REDIS_URL=server.url,
        BARE_URL=bare.url,
        CLUSTER_URL=cluster[0].url,
    )
