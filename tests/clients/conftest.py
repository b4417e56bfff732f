"""Real servers for the tests of clients, examples and guides."""

import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest
import redis

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "target/release/libslidewin.so"
PRIVATE = ROOT / "target/clients"
SERVER = os.environ.get("SLIDEWIN_SERVER", "redis-server")


def wait_until(holds, seconds=20):
    """Waits until something holds, and says whether it came to that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def assert_within(seconds, times):
    """Asserts how long calls take: the median, for one of them may meet a busy machine."""
    times = sorted(times)
    assert times[len(times) // 2] < seconds, times
    assert times[-1] < seconds + 2, times


def free_port():
    """A port that is free, and low enough for a cluster's bus, which takes the port 10,000 higher."""
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        if port < 50_000:
            return port


class Server:
    """A redis-server with slidewin, on a port and in a folder of its own."""

    def __init__(self, folder, *options, module=True):
        self.folder, self.options = folder, [*options, *(["--loadmodule", MODULE] if module else [])]
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.redis = redis.Redis(port=self.port, decode_responses=True)
        self.process = None

    def start(self):
        words = [SERVER, "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--logfile", "log"]
        words += self.options
        self.process = subprocess.Popen([str(word) for word in words], cwd=self.folder)
        assert wait_until(self.answers), (self.folder / "log").read_text()
        return self

    def answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            return self.redis.ping()
        except redis.RedisError:
            return False

    def pause(self):
        """Lets it accept connections and answer nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def cluster_nodes(tmp_path_factory):
    """Three masters."""
    servers = []
    for name in "abc":
        folder = tmp_path_factory.mktemp(name)
        servers.append(Server(folder, "--cluster-enabled", "yes").start())
    try:
        nodes = [f"127.0.0.1:{server.port}" for server in servers]
        create = ["redis-cli", "--cluster", "create", *nodes, "--cluster-yes"]
        subprocess.run(create, check=True, capture_output=True)
        yield servers
    finally:
        for server in servers:
            server.stop()


@pytest.fixture
def cluster(cluster_nodes):
    """Three masters, running and empty, whatever the test before did to them."""
    for server in cluster_nodes:
        if server.process is None:
            server.start()
        server.resume()
    for server in cluster_nodes:
        assert wait_until(lambda: server.redis.cluster("info")["cluster_state"] == "ok")
        server.redis.flushall()
    return cluster_nodes


class Proxy:
    """A way to a server that can vanish like a host that loses its power: no connection is closed."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        self.port, self.living, self.all = port, set(), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            pair = (client, socket.create_connection(("127.0.0.1", self.port)))
            self.all += pair
            self.living.add(pair)
            for one, other in (pair, pair[::-1]):
                threading.Thread(target=self.pump, args=(pair, one, other), daemon=True).start()

    def pump(self, pair, one, other):
        try:
            while data := one.recv(65536):
                if pair in self.living:
                    other.sendall(data)
            if pair in self.living:
                other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def vanish(self):
        """Forwards no more of what is said on any connection made so far; new ones work."""
        self.living.clear()

    def close(self):
        self.listener.close()
        for one in self.all:
            one.close()


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()
