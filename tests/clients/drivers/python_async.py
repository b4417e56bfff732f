"""Calls the recipe's `allow` with each line of the input as the key, and prints what it says."""

import asyncio
import json
import sys

from recipe import allow


async def main():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        allowed, remaining, retry_after_ms = await allow(line.strip())
        print(json.dumps([allowed, remaining, retry_after_ms]), flush=True)


asyncio.run(main())
