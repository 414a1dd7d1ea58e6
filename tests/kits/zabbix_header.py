"""Calls the API with zabbix_utils, which sends the header, and prints the results as JSON."""

import json
import sys

from zabbix_utils import APIRequestError, ZabbixAPI

results = {}


def call(name, body):
    try:
        results[name] = body()
    except APIRequestError as error:
        results[name] = [error.code, error.message, error.data]


api = ZabbixAPI(url=sys.argv[1] + "/zabbix/api_jsonrpc.php", token="token")
call("version", lambda: str(api.version))
call("authenticated", api.check_auth)
call("hosts", lambda: api.host.get(output=["host"], limit=1))
call("create", lambda: api.host.create(host="gamma"))
call("create_bad", lambda: api.host.create(name="x"))
call("update", lambda: api.host.update(hostid="10001", status="1"))
call("delete", lambda: api.host.delete("10002"))
call("delete_missing", lambda: api.host.delete("10002"))
call("all", lambda: api.host.get())
call("unknown", lambda: api.none.get())
wrong = ZabbixAPI(url=sys.argv[1] + "/zabbix/api_jsonrpc.php", token="wrong")
call("wrong_token", lambda: wrong.host.get())
print(json.dumps(results, indent=1))
