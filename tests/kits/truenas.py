"""Calls the operations of the kit and prints the results as JSON: with truenas-unlock what that client calls, and the rest
with plain calls of httpx, as the documentation of REST v2.0 has them. No package of PyPI calls more of it.
"""

import asyncio
import json
import sys

import httpx
import truenas_unlock

host = sys.argv[1].removeprefix("https://")
results = {}


async def unlock():
    def config(passphrase, version=None):
        dataset = truenas_unlock.Dataset(path="tank/secret", secret=passphrase)
        return truenas_unlock.Config(host=host, api_key="1-key", skip_cert_verify=True, secrets="inline", truenas_version=version, datasets=[dataset])

    good = config("passphrase")
    async with truenas_unlock.TrueNasClient(good) as client:
        dataset = good.datasets[0]
        results["unlock"] = [
            await client.get_version(),
            await client.is_locked(dataset, quiet=True),
            await client.check_and_unlock(dataset, quiet=True),
            await client.lock(dataset, force=True),
        ]
    old = config("passphrase", "24.10")
    async with truenas_unlock.TrueNasClient(old) as client:
        results["unlock_old"] = await client.unlock(old.datasets[0])


truenas_unlock.console.quiet = truenas_unlock.err_console.quiet = True
asyncio.run(unlock())

client = httpx.Client(base_url=f"{sys.argv[1]}/api/v2.0", verify=False, headers={"authorization": "Bearer 1-key"})


def call(verb, path, body=None, shown=lambda body: body):
    response = client.request(verb, path, **({} if body is None else {"json": body}))
    body = response.json() if response.content else None
    results[f"{len(results)} {verb} {path}"] = [response.status_code, shown(body)]


def failure(body):
    """REST has no name of the error; a new one comes with it."""
    return {name: body[name] for name in ("message", "errno")}


def nothing(_):
    """The shape of validation errors, the text of a 404 and the result of a job differ."""


for what in ("info", "version", "version_short", "host_id", "boot_id", "ready", "state", "product_type"):
    call("GET", f"/system/{what}")
for name in ("nfs", "smb", "ssh", "ftp", "snmp", "ups", "mail", "docker", "system/general", "system/advanced", "network/configuration", "iscsi/global"):
    call("GET", f"/{name}")
    call("PUT", f"/{name}", {"changed": True})
NUMBERED = "pool user group service cronjob certificate privilege vm replication cloudsync rsynctask keychaincredential api_key pool/snapshottask pool/scrub"
NUMBERED += " sharing/nfs sharing/smb iscsi/target iscsi/extent iscsi/targetextent iscsi/portal iscsi/initiator iscsi/auth"
for name in NUMBERED.split():
    call("GET", f"/{name}")
    call("GET", f"/{name}/id/1")
    call("POST", f"/{name}", {"name": "new", "number": 12345678901234567890, "nothing": None})
    call("PUT", f"/{name}/id/1", {"comment": "changed"})
    call("GET", f"/{name}?id=1&limit=1")
    call("DELETE", f"/{name}/id/1")
    call("GET", f"/{name}?sort=-id&limit=1&offset=1")
call("GET", "/group?name=two")
call("GET", "/user?username=ann")
call("GET", "/service?service_name=ssh")
call("GET", "/sharing/smb?name=two")
call("GET", "/iscsi/target?name=two")
call("GET", "/pool/id/1000", shown=nothing)
call("POST", "/user", {}, nothing)
call("DELETE", "/user/id/2", {"delete_group": False})

call("GET", "/pool/dataset")
for query in ("id=tank/apps", "name=tank%2Fapps", "pool=tank&sort=-name&limit=2"):
    call("GET", f"/pool/dataset?{query}")
call("GET", "/pool/dataset/id/tank%2Fapps")
call("POST", "/pool/dataset", {"name": "tank/data", "type": "FILESYSTEM", "quota": 10737418240})
call("PUT", "/pool/dataset/id/tank%2Fdata", {"comments": "ü"})
call("DELETE", "/pool/dataset/id/tank%2Fapps", shown=failure)
call("DELETE", "/pool/dataset/id/tank%2Fapps", {"recursive": True, "force": True})
call("POST", "/pool/dataset/lock", {"id": "tank/data", "lock_options": {"force_umount": False}}, nothing)
call("GET", "/pool/dataset?id=tank/data")

call("GET", "/zfs/snapshot?limit=10&offset=1")
for query in ("id=tank@daily", "dataset=tank", "pool=tank"):
    call("GET", f"/zfs/snapshot?{query}")
call("GET", "/zfs/snapshot/id/tank%40weekly")
call("POST", "/zfs/snapshot", {"dataset": "tank/data", "name": "now", "recursive": False})
call("PUT", "/zfs/snapshot/id/tank%40weekly", {"user_properties_update": []})
call("POST", "/zfs/snapshot/rollback", {"id": "tank@daily", "options": {"force": True}})
call("POST", "/zfs/snapshot/clone", {"snapshot": "tank@daily", "dataset_dst": "tank/clone"})
call("DELETE", "/zfs/snapshot/id/tank@daily")

for name in ("disk", "interface", "app"):
    call("GET", f"/{name}")
    call("GET", f"/{name}?limit=1")
call("GET", "/disk?name=sdb")
call("GET", "/disk/id/d1")
call("GET", "/app/id/plex")
for verb in ("start", "stop", "restart", "reload"):
    call("POST", f"/service/{verb}", {"service": "nfs"})
    call("GET", "/service?id=2")
call("POST", "/service/stop", {"service": "nfs", "service-control": {"ha_propagate": False}})
call("GET", "/core/get_jobs")
call("POST", "/core/job_abort", 1)
call("GET", "/core/get_jobs?id=1")
call("GET", "/core/ping")
call("POST", "/alert/dismiss", "a1")
call("GET", "/alert/list")
call("POST", "/alert/restore", "a1")
call("GET", "/alert/list")
call("POST", "/system/reboot", {"delay": 5}, nothing)
call("POST", "/system/shutdown", {"delay": 5}, nothing)

client.headers["authorization"] = "Bearer wrong"
call("GET", "/pool", shown=nothing)
print(json.dumps(results, indent=1, ensure_ascii=False))
