"""Calls every operation of the kit with odoorpc, and prints the results as JSON."""

import json
import sys
import urllib.parse

import odoorpc

url = urllib.parse.urlsplit(sys.argv[1])
odoo = odoorpc.ODOO(url.hostname, port=url.port)
results = {}


def call(name, body):
    try:
        result = body()
    except odoorpc.error.RPCError as error:
        info = error.info or {}
        result = {"error": str(error), "code": info.get("code"), "context": info.get("data", {}).get("context")}
    results[name] = result


def refused(body):
    try:
        body()
    except odoorpc.error.RPCError as error:
        return error.info["code"]
    return None


def services(service, method, *args):
    return odoo.json("/jsonrpc", {"service": service, "method": method, "args": list(args)})["result"]


def positional(model, method, *args):
    """Calls a method with the service `object.execute`, which has no arguments by name."""
    return odoo.execute(model, method, *args)


call("version_info", lambda: odoo.version)
call("version", lambda: services("common", "version"))
call("databases", odoo.db.list)
call("wrong_key", lambda: odoo.login("prod", "admin", "wrong"))
call("wrong_key_authenticate", lambda: services("common", "authenticate", "prod", "admin", "wrong", {}))
call("authenticate", lambda: services("common", "authenticate", "prod", "admin", "key", {}))
# The messages differ: `Access Denied` and `Invalid apikey`.
call("wrong_key_execute", lambda: refused(lambda: services("object", "execute", "prod", 2, "wrong", "res.partner", "read", [1])))
call("login", lambda: odoo.login("prod", "admin", "key"))
call("context", lambda: odoo.env.context)

Partner = odoo.env["res.partner"]
Users = odoo.env["res.users"]
call("user", lambda: odoo.env.user.name)
call("model_exists", lambda: ["res.partner" in odoo.env, "res.none" in odoo.env])
call("reference", lambda: odoo.env.ref("base.main_partner").name)
call("reference_missing", lambda: odoo.env.ref("base.none").name)
call("reference_args", lambda: positional("ir.model.data", "check_object_reference", "base", "main_partner"))
call("has_group", lambda: Users.has_group(group_ext_id="base.group_user"))
call("context_get", Users.context_get)

call("read", lambda: Partner.read([1, 2]))
call("read_fields", lambda: Partner.read([1], ["name"]))
call("read_named", lambda: Partner.read([1], fields=["name"], load=None))
call("read_load", lambda: Partner.read([1], ["name"], None))
call("read_context", lambda: Partner.with_context(lang="fr_FR").read([1], ["name"]))
call("read_args", lambda: positional("res.partner", "read", [1, 3], ["name", "city"]))
call("read_missing", lambda: Partner.read([1000]))
call("browse", lambda: [partner.email for partner in Partner.browse([1, 2])])

call("search", lambda: Partner.search([("city", "=", "Namur")]))
call("search_named", lambda: Partner.search(domain=[], limit=2, order="id desc"))
call("search_offset", lambda: Partner.search([], 1, 1))
call("search_args", lambda: positional("res.partner", "search", [], 0, None, "name desc"))
call("search_read", lambda: Partner.search_read([("city", "=", "Mons")], ["name"]))
call("search_read_named", lambda: Partner.search_read(fields=["city"], limit=1, offset=1))
call("search_read_all", lambda: len(Partner.search_read()))
call("search_read_args", lambda: positional("res.partner", "search_read", [], ["name"], 0, 1, "id desc"))
call("search_count", lambda: Partner.search_count([("city", "=", "Namur")]))
call("search_count_limit", lambda: Partner.search_count([], limit=2))
call("read_group", lambda: Partner.read_group([], ["city"], ["city"]))
call("read_group_named", lambda: Partner.read_group(domain=[], fields=["city"], groupby=["city"], limit=1))
call("name_search", lambda: Partner.name_search("partner"))
call("name_search_domain", lambda: Partner.name_search("", [("city", "=", "Mons")], "ilike", 5))
call("name_search_named", lambda: Partner.name_search(name="p", args=[("city", "=", "Mons")], limit=3))
call("name_search_args", lambda: Partner.name_search("p", args=[("city", "=", "Mons")]))
# Odoo 19 has this argument, earlier ones do not.
call("name_search_19", lambda: Partner.name_search(domain=[("city", "=", "Mons")]))
call("fields_get", Partner.fields_get)
call("fields_get_named", lambda: Partner.fields_get(["name"], attributes=["type"]))
call("default_get", lambda: Partner.default_get(["city"]))
call("has_access", lambda: Partner.browse([]).has_access("unlink"))
call("access", lambda: Partner.check_access_rights("write", raise_exception=False))
call("access_args", lambda: Partner.check_access_rights("unlink", False))

call("create", lambda: Partner.create({"name": "Ann"}))
call("create_list", lambda: Partner.create([{"name": "Bob"}]))
call("create_many", lambda: Partner.create([{"name": "Cleo"}, {"name": "Dan", "city": "Liège"}]))
call("create_invalid", lambda: Partner.create({"name": ""}))
call("create_args", lambda: positional("res.partner", "create", {"name": "Eve"}))
call("name_create", lambda: Partner.name_create("Fred"))
call("write", lambda: Partner.write([4], {"email": "ann@example.org"}))
call("write_args", lambda: positional("res.partner", "write", [5], {"city": "Mons"}))


def assign():
    partner = Partner.browse(4)
    partner.city = "Bruges"
    return Partner.read([4], ["city", "email"])


call("assign", assign)
call("copy", lambda: Partner.copy([4]))
call("copy_default", lambda: Partner.copy([4], {"name": "Gwen"}))
call("unlink", lambda: Partner.browse([7]).unlink())
call("unlink_missing", lambda: Partner.unlink([7]))
call("archive", lambda: Partner.browse([1]).action_archive())
call("post", lambda: Partner.browse([1, 2]).message_post(body="Hello", subject="Hi"))
call("archive_args", lambda: positional("res.partner", "action_archive", [2]))
call("all", lambda: Partner.search_read([], ["name", "city", "active"]))
call("no_method", lambda: Partner.no_such_method([1]))
call("logout", odoo.logout)
print(json.dumps(results, indent=1, sort_keys=True))
