"""Calls the operations of the kit with pyodoo-client, a client of JSON-2, and prints the results as JSON."""

import json
import sys

from pyodoo_client import OdooClient
from pyodoo_client.exceptions import OdooApiError

client = OdooClient(url=sys.argv[1], api_key="key", db="prod", debug=True)
results = {"uid": client.uid}


def call(name, model, method, payload):
    try:
        result = client.call_model(model, method, payload)
    except OdooApiError as error:
        result = {"status": error.status_code, "error": str(error), "name": error.payload["name"]}
    results[name] = result


def partner(name, method, /, **payload):
    call(name, "res.partner", method, payload)


results["version"] = client.call_web("GET", "/web/version")
results["databases"] = client.call_web("POST", "/web/database/list", {"jsonrpc": "2.0", "method": "call", "id": 0, "params": {}})
call("context", "res.users", "context_get", {})
call("has_group", "res.users", "has_group", {"group_ext_id": "base.group_user"})
call("reference", "ir.model.data", "check_object_reference", {"module": "base", "xml_id": "main_partner"})
partner("read", "read", ids=[1, 2], fields=["name"], load=None, context={"lang": "fr_FR"})
partner("read_missing", "read", ids=[1000])
partner("search", "search", domain=[["city", "=", "Namur"]], order="id desc", limit=1)
partner("search_read", "search_read", fields=["name"], offset=1)
partner("search_count", "search_count", domain=[])
partner("read_group", "read_group", domain=[], fields=["city"], groupby=["city"], lazy=False)
partner("name_search", "name_search", name="partner", domain=[["city", "=", "Mons"]])
partner("fields_get", "fields_get", attributes=["type"])
partner("default_get", "default_get", fields=["city"])
partner("has_access", "has_access", operation="unlink")
partner("create", "create", vals_list=[{"name": "Ann"}, {"name": "Bob"}])
partner("create_invalid", "create", vals_list=[{"name": ""}])
partner("name_create", "name_create", name="Cleo")
partner("write", "write", ids=[4], vals={"email": "ann@example.org"})
partner("copy", "copy", ids=[4], default={"name": "Dan"})
partner("unlink", "unlink", ids=[5])
partner("archive", "action_archive", ids=[1])
partner("post", "message_post", ids=[1], body="Hello")
partner("all", "search_read", domain=[], fields=["name", "email", "active"])
print(json.dumps(results, indent=1, sort_keys=True))
