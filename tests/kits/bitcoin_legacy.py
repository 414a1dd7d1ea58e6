"""Calls methods with python-bitcoinrpc, a client of JSON-RPC 1.1, and prints the results as JSON."""

import json
import sys

from bitcoinrpc.authproxy import AuthServiceProxy, JSONRPCException

HASH, TXID, NONE = "01" * 32, "ab" * 32, "09" * 32
rpc = AuthServiceProxy(sys.argv[1].replace("http://", "http://user:pass@"))
results = {}


def call(method, *params):
    try:
        result = getattr(rpc, method)(*params)
    except JSONRPCException as error:
        result = error.error
    results[f"{method} {params}"] = result


call("getblockchaininfo")
call("getblockcount")
for verbosity in (0, 1, 2, 3):
    call("getblock", HASH, verbosity)
call("getblock", NONE)
call("getblockhash", 1)
call("getblockhash", 7)
call("getrawtransaction", TXID, True)
call("getrawmempool", False, True)
call("nomethod", 1)
print(json.dumps(results, indent=1, default=str))
