"""Calls the recipe's `allow` as often at once as each line says, and prints the answers."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from recipe import allow

for line in sys.stdin:
    times, key = line.strip().split(" ", 1)
    with ThreadPoolExecutor(int(times)) as threads:
        print(json.dumps(list(threads.map(allow, [key] * int(times)))), flush=True)
