"""Storages for the library limits, and so for Flask-Limiter and slowapi: moving windows by slidewin.

    import slidewin_limits  # makes the schemes known
    storage_from_string("slidewin://localhost:6379")
    storage_from_string("async+slidewin://localhost:6379", implementation="redispy")

A moving window of the library's own Redis storage is a Lua script on a list with an element a unit. Here it
is one command on a packed log: exact to the microsecond by the server's clock, and 16 bytes a call whatever
its cost. Fixed and sliding-counter windows are the library's own.
"""

from __future__ import annotations

import time
from typing import NamedTuple
from urllib.parse import urlsplit

from limits.aio.storage import RedisStorage as AsyncRedisStorage
from limits.errors import ConfigurationError
from limits.storage import RedisStorage


def redis_uri(uri: str, scheme: str) -> str:
    """The address of Redis in an address of slidewin."""
    parts = urlsplit(uri)
    if parts.scheme != scheme:
        raise ConfigurationError(f"not an address of the form {scheme}://host:port: {uri}")
    if not parts.hostname:
        raise ConfigurationError(f"no host in the address {uri}")
    return uri.replace("slidewin://", "redis://", 1)


def check_words(key: str, limit: int, expiry: int, amount: int) -> tuple[str | int, ...]:
    return ("SLIDEWIN.CHECK", key, limit, expiry, "COST", amount, "PACKED", "SKIPDENIED")


def peek_words(key: str, limit: int, expiry: int) -> tuple[str | int, ...]:
    return ("SLIDEWIN.PEEK", key, limit, expiry, "WITHINFO")


def window(reply: list[int], expiry: int) -> tuple[float, int]:
    """The start of the window, so that a unit is free when it ends, and how many are used."""
    now, used, reset_after_ms = time.time(), reply[6], reply[4]
    return (now + reset_after_ms / 1000 - expiry, used) if used else (now, 0)


def explained(error: Exception) -> Exception:
    """The error, or a clearer one when Redis does not know the commands."""
    if "unknown command" in str(error).lower():
        return ConfigurationError("this Redis has not loaded the module slidewin")
    return error


class SlidewinStorage(RedisStorage):
    """limits' storage on Redis, with moving windows by slidewin."""

    STORAGE_SCHEME = ["slidewin"]

    def __init__(self, uri: str, **options: object) -> None:
        super().__init__(redis_uri(uri, "slidewin"), **options)

    def ask(self, *words: str | int) -> int | list[int]:
        try:
            return self.get_connection().execute_command(*words)
        except self.base_exceptions as error:
            raise explained(error) from error

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return self.ask(*check_words(self.prefixed_key(key), limit, expiry, amount)) == 1

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        return window(self.ask(*peek_words(self.prefixed_key(key), limit, expiry)), expiry)


class Command(NamedTuple):
    """A command as coredis takes it."""

    name: bytes
    arguments: tuple[str | int, ...]


class AsyncSlidewinStorage(AsyncRedisStorage):
    """limits' storage on Redis for asyncio, with moving windows by slidewin."""

    STORAGE_SCHEME = ["async+slidewin"]

    def __init__(self, uri: str, **options: object) -> None:
        super().__init__("async+" + redis_uri(uri.removeprefix("async+"), "slidewin"), **options)

    async def ask(self, *words: str | int) -> int | list[int]:
        connection = self.bridge.get_connection()
        try:
            if type(connection).__module__.startswith("coredis"):
                name, *arguments = words
                return await connection.execute_command(Command(str(name).encode(), tuple(arguments)))
            return await connection.execute_command(*words)
        except self.bridge.base_exceptions as error:
            raise explained(error) from error

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        return await self.ask(*check_words(self.bridge.prefixed_key(key), limit, expiry, amount)) == 1

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        return window(await self.ask(*peek_words(self.bridge.prefixed_key(key), limit, expiry)), expiry)
