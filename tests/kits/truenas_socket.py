"""Calls the operations of the kit with truenaspy, a client of JSON-RPC on a WebSocket, and prints the results as JSON."""

import asyncio
import json
import sys
import urllib.parse

import aiohttp
from truenaspy import AuthenticationFailed, ExecutionFailed, TruenasWebsocket

url = urllib.parse.urlsplit(sys.argv[1])
results = {}
NUMBERED = "pool user group service cronjob certificate privilege vm replication cloudsync rsynctask keychaincredential api_key"
NUMBERED += " pool.snapshottask pool.scrub sharing.nfs sharing.smb iscsi.target iscsi.extent iscsi.targetextent iscsi.portal"
NUMBERED += " iscsi.initiator iscsi.auth"


def connected(session):
    return TruenasWebsocket(url.hostname, url.port, verify_ssl=False, session=session)


async def call(client, method, *params, shown=lambda result: result):
    try:
        result = shown(await client.async_call(method, list(params)))
    except ExecutionFailed as failure:
        error = failure.args[0]
        # The name of the error, its details and its trace are not in REST.
        result = [error["code"], error["message"], error["data"]["error"]]
    results[f"{len(results)} {method} {json.dumps(params)}"] = result


async def main(session):
    refused = connected(session)
    try:
        await refused.async_connect("ann", "wrong")
    except AuthenticationFailed:
        results["refused"] = True
    await refused.async_close()
    client = connected(session)
    await client.async_connect("ann", "secret")
    for what in ("info", "version", "version_short", "host_id", "boot_id", "ready", "state", "product_type"):
        await call(client, f"system.{what}")
    configured = "nfs smb ssh ftp snmp ups mail docker system.general system.advanced network.configuration iscsi.global"
    for name in configured.split():
        await call(client, f"{name}.config")
        await call(client, f"{name}.update", {"changed": True})
    for name in NUMBERED.split():
        await call(client, f"{name}.query")
        await call(client, f"{name}.query", [], {"order_by": ["-id"], "limit": 1, "offset": 1})
        await call(client, f"{name}.query", [["id", "=", 1]])
        await call(client, f"{name}.get_instance", 1)
        await call(client, f"{name}.create", {"name": "new"})
        await call(client, f"{name}.update", 1, {"comment": "changed"})
        await call(client, f"{name}.delete", 1)
    await call(client, "group.query", [["name", "=", "two"]])
    await call(client, "user.query", [["username", "=", "ann"]], {"limit": 1})
    await call(client, "service.query", [["service_name", "=", "ssh"]])
    await call(client, "sharing.smb.query", [["name", "=", "two"]])
    await call(client, "iscsi.target.query", [["name", "=", "two"]])
    await call(client, "user.delete", 2, {"delete_group": False})

    await call(client, "pool.dataset.query")
    for field, value in (("id", "tank/apps"), ("name", "tank/apps"), ("pool", "tank")):
        await call(client, "pool.dataset.query", [[field, "=", value]], {})
    await call(client, "pool.dataset.get_instance", "tank/apps")
    await call(client, "pool.dataset.create", {"name": "tank/data"})
    await call(client, "pool.dataset.update", "tank/data", {"comments": "ü"})
    await call(client, "pool.dataset.delete", "tank/apps")
    await call(client, "pool.dataset.delete", "tank/apps", {"force": True})
    # The result of a job is its number in REST.
    await call(client, "pool.dataset.lock", "tank/data", {"force_umount": False}, shown=bool)
    await call(client, "pool.dataset.unlock", "tank/data", {"datasets": [{"name": "tank/data", "passphrase": "passphrase"}]}, shown=bool)

    await call(client, "pool.snapshot.query", [], {"limit": 10, "offset": 1})
    for field, value in (("id", "tank@daily"), ("dataset", "tank"), ("pool", "tank")):
        await call(client, "pool.snapshot.query", [[field, "=", value]])
    await call(client, "pool.snapshot.get_instance", "tank@weekly")
    await call(client, "pool.snapshot.create", {"dataset": "tank/data", "name": "now"})
    await call(client, "pool.snapshot.update", "tank@weekly", {"user_properties_update": []})
    await call(client, "pool.snapshot.rollback", "tank@daily", {"force": True})
    await call(client, "pool.snapshot.clone", {"snapshot": "tank@daily", "dataset_dst": "tank/clone"})
    await call(client, "pool.snapshot.delete", "tank@daily")

    for name in ("disk", "interface", "app"):
        await call(client, f"{name}.query")
    await call(client, "disk.query", [["name", "=", "sdb"]])
    await call(client, "disk.get_instance", "d1")
    for verb in ("START", "STOP", "RESTART", "RELOAD"):
        await call(client, "service.control", verb, "nfs", shown=bool)
    await call(client, "core.get_jobs")
    await call(client, "core.job_abort", 1)
    await call(client, "core.get_jobs", [["id", "=", 1]])
    await call(client, "core.ping")
    for method in ("alert.dismiss", "alert.restore"):
        await call(client, method, "a1")
        await call(client, "alert.list")
    await call(client, "system.reboot", "updates", shown=lambda _: None)
    await call(client, "system.shutdown", "updates", {"delay": 5}, shown=lambda _: None)
    await client.async_close()


async def run():
    # Before REST, the calls need the key in the handshake.
    async with aiohttp.ClientSession(headers={"authorization": "Bearer 1-key"}) as session:
        await main(session)


asyncio.run(run())
print(json.dumps(results, indent=1, ensure_ascii=False))
