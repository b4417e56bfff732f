"""Who is calling: one spelling for each client, in both middlewares."""

import json
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "examples/fastapi"))
from rate_limit import canonical  # noqa: E402

ADDRESSES = {
    "192.0.2.9": "192.0.2.9",
    " 192.0.2.9 ": "192.0.2.9",
    # Case 106: a proxy that sends the port.
    "192.0.2.9:4711": "192.0.2.9",
    "[2001:db8::1]:4711": "2001:db8::/64",
    "[2001:db8::1]": "2001:db8::/64",
    # Case 105: whoever has one address of a /64 has all of it.
    "2001:db8::1": "2001:db8::/64",
    "2001:0DB8:0:0:ffff::1": "2001:db8::/64",
    "2001:db8:0:1::1": "2001:db8:0:1::/64",
    "::1": "::/64",
    "fe80::1%eth0": "fe80::/64",
    # IPv4 in IPv6 clothes.
    "::ffff:192.0.2.9": "192.0.2.9",
    "::ffff:c000:209": "192.0.2.9",
    "[::ffff:192.0.2.9]:80": "192.0.2.9",
    # What is no address, and gets into no key.
    "": None,
    "unknown": None,
    "1.2.3.4 {x}*": None,
    "999.1.1.1": None,
    "1.2.3": None,
    "0x7f000001": None,
    "::1::": None,
    "a" * 5000: None,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_has_one_spelling_in_python(address):
    assert canonical(address) == ADDRESSES[address]


def test_an_address_has_one_spelling_in_javascript():
    program = """
        import { canonical } from "./rate-limit.js";
        const addresses = JSON.parse(process.argv[1]);
        console.log(JSON.stringify(addresses.map((address) => canonical(address) ?? null)));
        process.exit();
    """
    words = ["node", "--input-type=module", "-e", program, json.dumps(list(ADDRESSES))]
    shown = subprocess.run(words, cwd=ROOT / "target/clients/express", capture_output=True, text=True, check=True)
    assert dict(zip(ADDRESSES, json.loads(shown.stdout))) == ADDRESSES
