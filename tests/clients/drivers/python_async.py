"""Each line is a number and a key: calls `allow` for the key that many times at once, and prints the answers."""

import asyncio
import json
import sys

from recipe import allow


async def main():
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        times, key = line.strip().split(" ", 1)
        print(json.dumps(await asyncio.gather(*(allow(key) for _ in range(int(times))))), flush=True)


asyncio.run(main())
