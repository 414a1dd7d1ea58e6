"""An imitation of a Bitcoin Core 28 node: its REST interface, or its JSON-RPC methods, over the same blocks.

Written from the source of Bitcoin Core (github.com/bitcoin/bitcoin) and its documentation:

- REST: doc/REST-interface.md and src/rest.cpp. Paths, formats, `count`, statuses and texts of failures.
- JSON-RPC: doc/JSON-RPC-interface.md and src/httprpc.cpp. Calls with `"jsonrpc": "2.0"` get HTTP 200 and either `result` or `error`,
  others both and 500 or 404.
- `getblock`, `getblockheader`, `getblockhash`, `getblockchaininfo`, `getdeploymentinfo`, `getblockfilter`: src/rpc/blockchain.cpp.
- `getrawtransaction`: src/rpc/rawtransaction.cpp. `getmempoolinfo`, `getrawmempool`: src/rpc/mempool.cpp.

The argument is `rest`, `rpc`, or `rpc2` for a server that takes calls of JSON-RPC 2.0 only.
"""

import http.server
import json
import sys
import urllib.parse

AUTHORIZATION = "Basic dXNlcjpwYXNz"
HASHES = ["".join(f"{byte:02x}" for byte in [number] * 32) for number in range(3)]
TXID = "ab" * 32


class Failure(Exception):
    """A failure, with the code of JSON-RPC, the status of REST and its text in both."""

    def __init__(self, code, message, status, text=None):
        super().__init__(message)
        self.code, self.message, self.status, self.text = code, message, status, text or message


def height_of(block):
    if len(block) != 64:
        message = f"blockhash must be of length 64 (not {len(block)}, for '{block}')"
        raise Failure(-8, message, 400, f"Invalid hash: {block}")
    if block not in HASHES:
        raise Failure(-5, "Block not found", 404, f"{block} not found")
    return HASHES.index(block)


def header(block):
    return {"hash": block, "confirmations": 3 - height_of(block), "height": height_of(block), "difficulty": 4.656542373906925e-10, "nTx": 1}


def block(key, verbosity):
    head = header(key)
    if verbosity == 0:
        return "00" * 80 + key
    coin = {"coinbase": "00"} if verbosity < 3 else {"coinbase": "00", "prevout": {"generated": True, "value": 50.00000000}}
    details = {"txid": TXID, "vin": [coin], "vout": [{"value": 0.10000000, "n": 0}]}
    return {**head, "size": 285, "tx": [TXID if verbosity == 1 else details]}


def transaction(txid, verbose):
    if txid != TXID:
        raise Failure(-5, "No such mempool or blockchain transaction", 404, f"{txid} not found")
    return {"txid": TXID, "vout": [{"value": 12345678.12345678, "n": 0}], "blockhash": HASHES[1]} if verbose else "0200" + TXID


def mempool(verbose, sequence):
    if verbose and sequence:
        message = "Verbose results cannot contain mempool sequence values."
        raise Failure(-8, message, 400, message)
    if verbose:
        return {TXID: {"vsize": 141, "fees": {"base": 0.00001410}}}
    return {"txids": [TXID], "mempool_sequence": 7} if sequence else [TXID]


def block_hash(height):
    if not 0 <= height < len(HASHES):
        raise Failure(-8, "Block height out of range", 404)
    return HASHES[height]


CHAIN = {"chain": "regtest", "blocks": 2, "bestblockhash": HASHES[2], "difficulty": 4.656542373906925e-10, "warnings": []}
POOL = {"loaded": True, "size": 1, "bytes": 141, "total_fee": 0.00001410}
FILTER = {"filter": "0158", "header": "ef" * 32}


def deployments(key=None):
    key = key or HASHES[2]
    return {"hash": key, "height": height_of(key), "deployments": {"taproot": {"type": "bip9", "active": True}}}


# JSON-RPC

METHODS = {
    "getblock": lambda key, verbosity=1: block(key, int(verbosity)),
    "getblockheader": lambda key, verbose=True: header(key) if verbose else block(key, 0)[:160],
    "getblockhash": block_hash,
    "getblockchaininfo": lambda: CHAIN,
    "getblockcount": lambda: 2,
    "getdeploymentinfo": deployments,
    "getblockfilter": lambda key, kind="basic": FILTER if height_of(key) >= 0 else None,
    "getrawtransaction": lambda txid, verbose=0, key=None: {**transaction(txid, True), "confirmations": 2} if verbose else transaction(txid, False),
    "getmempoolinfo": lambda: POOL,
    "getrawmempool": lambda verbose=False, sequence=False: mempool(verbose, sequence),
}


def rpc(call):
    """Returns the status and the response to a call."""
    modern = call.get("jsonrpc") == "2.0"
    try:
        if sys.argv[1] == "rpc2" and not modern:
            raise Failure(-32600, "JSON-RPC version not supported", 400)
        method = METHODS.get(call["method"])
        if method is None:
            raise Failure(-32601, "Method not found", 404)
        result, error = method(*call.get("params", [])), None
    except Failure as failure:
        result, error = None, {"code": failure.code, "message": failure.message}
    if not modern:
        status = 200 if error is None else 404 if error["code"] == -32601 else 500
        return status, {"result": result, "error": error, "id": call.get("id")}
    outcome = {"result": result} if error is None else {"error": error}
    return 200, {"jsonrpc": "2.0", **outcome, "id": call.get("id")}


# REST


def rest(path, query):
    """Returns the body of a response: a text, or JSON."""
    query = dict(urllib.parse.parse_qsl(query))
    parts = path.removeprefix("/rest/").rsplit(".", 1)
    name, form = parts[0], parts[1] if len(parts) > 1 else ""
    words = name.split("/")
    if words[0] == "block":
        verbosity = 0 if form == "hex" else 1 if words[1] == "notxdetails" else 3
        return block(words[-1], verbosity)
    if words[0] == "headers":
        count = int(query.get("count", 5))
        try:
            first = height_of(words[1])
        except Failure as failure:
            if failure.status == 400:
                raise
            return []
        keys = HASHES[first : first + count]
        return "".join(block(key, 0)[:160] for key in keys) if form == "hex" else [header(key) for key in keys]
    if words[0] == "blockhashbyheight":
        found = block_hash(int(words[1]))
        return found if form == "hex" else {"blockhash": found}
    if words[0] == "tx":
        return transaction(words[1], form == "json")
    if words[0] == "deploymentinfo":
        return deployments(words[1] if len(words) > 1 else None)
    if words[0] == "blockfilter":
        height_of(words[2])
        return {"filter": FILTER["filter"]}
    if name == "mempool/contents":
        flags = [query.get(key, default) == "true" for key, default in (("verbose", "true"), ("mempool_sequence", "false"))]
        return mempool(*flags)
    found = {"chaininfo": CHAIN, "mempool/info": POOL}.get(name)
    if found is None:
        raise Failure(0, "", 404, "Not found")
    return found


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, kind, text):
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if sys.argv[1] != "rest":
            return self.answer(404, "text/plain", "")
        try:
            body = rest(url.path, url.query)
        except Failure as failure:
            return self.answer(failure.status, "text/plain", failure.text + "\r\n")
        if isinstance(body, str):
            return self.answer(200, "text/plain", body + "\n")
        self.answer(200, "application/json", json.dumps(body) + "\n")

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if sys.argv[1] == "rest":
            return self.answer(404, "text/plain", "")
        if self.headers.get("authorization") != AUTHORIZATION:
            return self.answer(401, "text/html", "")
        status, body = rpc(call)
        self.answer(status, "application/json", json.dumps(body) + "\n")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"serving http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
