"""Each line is a number and a key: calls `allow` for the key that many times at once, and prints the answers."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from recipe import allow

for line in sys.stdin:
    times, key = line.strip().split(" ", 1)
    with ThreadPoolExecutor(int(times)) as threads:
        print(json.dumps(list(threads.map(allow, [key] * int(times)))), flush=True)
