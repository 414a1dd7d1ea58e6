"""Calls the methods of the kit with bitcoinrpc, and prints the results as JSON."""

import asyncio
import json
import sys

from bitcoinrpc import BitcoinRPC, RPCError

HASH, TXID, NONE = "01" * 32, "ab" * 32, "09" * 32
results = {}


async def call(name, made):
    try:
        results[name] = await made
    except RPCError as error:
        results[name] = {"code": error.error["code"]}


async def main():
    async with BitcoinRPC.from_config(sys.argv[1], ("user", "pass")) as rpc:
        for verbosity in (0, 1, 3):
            await call(f"block {verbosity}", rpc.getblock(HASH, verbosity))
        # REST also has the outputs that are spent.
        results["block 2"] = [sorted(tx)[:1] for tx in (await rpc.getblock(HASH, 2))["tx"]]
        for params in ([HASH], [HASH, True], [HASH, False]):
            await call(f"getblock {params}", rpc.acall("getblock", params))
        await call("block missing", rpc.getblock(NONE, 1))
        await call("block invalid", rpc.getblock("00", 0))
        await call("header", rpc.getblockheader(HASH))
        await call("header hex", rpc.getblockheader(HASH, False))
        await call("header default", rpc.acall("getblockheader", [HASH]))
        await call("header missing", rpc.getblockheader(NONE))
        await call("hash", rpc.getblockhash(2))
        await call("hash missing", rpc.getblockhash(7))
        await call("chain", rpc.getblockchaininfo())
        await call("deployments", rpc.acall("getdeploymentinfo", []))
        await call("deployments at", rpc.acall("getdeploymentinfo", [HASH]))
        await call("transaction", rpc.getrawtransaction(TXID, False))
        await call("transaction missing", rpc.getrawtransaction(NONE, False))
        for params in ([TXID], [TXID, 0], [TXID, False]):
            await call(f"getrawtransaction {params}", rpc.acall("getrawtransaction", params))
        await call("mempool", rpc.getmempoolinfo())
        for params in ([], [True], [False, True], [True, True]):
            await call(f"getrawmempool {params}", rpc.acall("getrawmempool", params))


asyncio.run(main())
print(json.dumps(results, indent=1))
