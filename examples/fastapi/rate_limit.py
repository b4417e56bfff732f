"""Two rate limits for a FastAPI app, 10 calls a second and 1,000 an hour, by API key or address."""

import hashlib
import logging
import os
from urllib.parse import quote

import redis.asyncio as redis
from fastapi import Request
from fastapi.responses import JSONResponse
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

RULES = {"burst": (10, 1), "hourly": (1000, 3600)}
LIMITS = [number for rule in RULES.values() for number in rule]
POLICY = ", ".join(f'"{name}";q={limit};w={window}' for name, (limit, window) in RULES.items())
API_KEYS = set(os.environ.get("API_KEYS", "demo").split(","))

log = logging.getLogger("uvicorn.error")
url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
timeouts = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2}
server = redis.from_url(url, retry=Retry(NoBackoff(), 0), **timeouts)


def key_of(request: Request) -> str:
    # Only our own API keys count: whoever could invent new ones would have no limit.
    if (api_key := request.headers.get("X-API-Key")) in API_KEYS:
        return "limit:key:" + hashlib.sha256(api_key.encode()).hexdigest()
    # Quoted, since behind a proxy it comes from a header.
    return "limit:address:" + quote(request.client.host, safe=".:")


async def call(*words):
    try:
        return await server.execute_command(*words)
    except redis.RedisError as error:
        log.warning("%s failed, the request passes: %s", words[0], error)


async def limit_rate(request: Request, call_next):
    key = key_of(request)
    reply = await call("SLIDEWIN.CHECK", key, *LIMITS, "SKIPDENIED", "WITHINFO")
    if reply is None:
        return await call_next(request)
    allowed, retry_after_ms, rules = reply[0], reply[3], reply[7]  # 7 is there from two rules on
    states = [f'"{name}";r={rule[3]};t={-(-rule[5] // 1000)}' for name, rule in zip(RULES, rules)]
    headers = {"RateLimit-Policy": POLICY, "RateLimit": ", ".join(states)}
    if not allowed:
        headers["Retry-After"] = str(-(-retry_after_ms // 1000))
        return JSONResponse({"error": "too many requests"}, 429, headers)
    try:
        response = await call_next(request)
    except Exception:
        await call("SLIDEWIN.REFUND", key)
        raise
    if response.status_code >= 500:
        await call("SLIDEWIN.REFUND", key)
    response.headers.update(headers)
    return response
