"""Calls the API with pyzabbix 1.2.1, which always sends the member `auth`, and prints the results as JSON."""

import json
import sys

import requests
from pyzabbix import ZabbixAPI, ZabbixAPIException

URL = sys.argv[1] + "/zabbix/api_jsonrpc.php"
results = {}


def call(name, body):
    try:
        results[name] = body()
    except ZabbixAPIException as error:
        results[name] = error.error
    return results[name]


def raw(method, params):
    """Old scripts send `auth: null` before the login."""
    message = {"jsonrpc": "2.0", "method": method, "params": params, "auth": None, "id": "a-1"}
    return requests.post(URL, json=message, headers={"content-type": "application/json-rpc"}).json()


api = ZabbixAPI(URL)
call("version", api.api_version)
call("wrong_login", lambda: api.login("Admin", "wrong"))
call("login", lambda: api.login("Admin", "zabbix"))
call("authenticated", lambda: api.is_authenticated)
call("hosts", lambda: api.host.get(output=["host"], limit=1))
call("count", lambda: api.host.get(countOutput=True))
call("filter", lambda: api.host.get(filter={"host": ["beta"]}))
call("create", lambda: api.host.create(host="gamma"))
call("create_bad", lambda: api.host.create(name="x"))
call("update", lambda: api.host.update(hostid="10001", status="1"))
call("delete", lambda: api.host.delete("10002"))
call("delete_missing", lambda: api.host.delete("10002"))
call("all", lambda: api.host.get())
call("unknown", lambda: api.none.get())
call("logout", lambda: api.user.logout())
api.auth = "wrong"
call("wrong_token", lambda: api.host.get())
token = ZabbixAPI(URL)
call("token", lambda: token.login(api_token="token"))
call("token_hosts", lambda: token.host.get(limit=1))
results["null_version"] = raw("apiinfo.version", {})
results["null_login"] = raw("user.login", {"user": "Admin", "password": "zabbix"})
print(json.dumps(results, indent=1))
