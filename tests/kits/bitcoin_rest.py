"""Calls the paths of the kit with plain calls of httpx, as doc/REST-interface.md has them, and prints the responses as JSON.

No package of PyPI calls the REST interface of Bitcoin Core.
"""

import json
import sys

import httpx

HASH, TXID, NONE = "01" * 32, "ab" * 32, "09" * 32
PATHS = [
    f"block/{HASH}.json",
    f"block/{HASH}.hex",
    f"block/notxdetails/{HASH}.json",
    f"block/{NONE}.json",
    "block/00.hex",
    f"headers/{HASH}.json?count=1",
    f"headers/{HASH}.hex?count=1",
    f"headers/{NONE}.json?count=1",
    "blockhashbyheight/1.json",
    "blockhashbyheight/1.hex",
    "blockhashbyheight/7.json",
    "blockhashbyheight/7.hex",
    "chaininfo.json",
    "deploymentinfo.json",
    f"deploymentinfo/{HASH}.json",
    f"blockfilter/basic/{HASH}.json",
    f"tx/{TXID}.json",
    f"tx/{TXID}.hex",
    f"tx/{NONE}.json",
    "mempool/info.json",
    "mempool/contents.json",
    "mempool/contents.json?verbose=false&mempool_sequence=true",
    "mempool/contents.json?mempool_sequence=true",
]
# Members that only JSON-RPC has.
EXTRA = {"tx": "confirmations", "blockfilter": "header"}
client = httpx.Client(base_url=f"{sys.argv[1]}/rest", auth=("user", "pass"))
results = {}
for path in PATHS:
    response = client.get(path)
    kind = response.headers["content-type"].split(";")[0]
    body = response.json() if kind == "application/json" else response.text
    if isinstance(body, dict):
        body.pop(EXTRA.get(path.split("/")[0]), None)
    # The messages of the two differ.
    results[path] = [response.status_code, kind, body if response.status_code == 200 else None]
print(json.dumps(results, indent=1))
