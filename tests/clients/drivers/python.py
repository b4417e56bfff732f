"""Calls the recipe's `allow` with each line of the input as the key, and prints what it says."""

import json
import sys

from recipe import allow

for line in sys.stdin:
    allowed, remaining, retry_after_ms = allow(line.strip())
    print(json.dumps([allowed, remaining, retry_after_ms]), flush=True)
