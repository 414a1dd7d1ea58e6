"""An imitation of Odoo: the JSON-RPC services that Odoo 22 removes, or the JSON-2 API, over the same records.

Written from the documentation of Odoo 19 and its source (github.com/odoo/odoo, branch 19.0):

- /jsonrpc, service `common`: odoo/service/common.py. A refused login is `false`.
- /jsonrpc, service `object`: `execute` and `execute_kw` in odoo/service/model.py; ids are the first positional argument of
  methods that are not `@api.model` (`call_kw` in the same file). Records become their ids.
- /jsonrpc, service `db`: odoo/service/db.py, `list`.
- Errors of `type="jsonrpc"` controllers: `JsonRPCDispatcher.handle_error`, code 200.
- /json/2/{model}/{method}: addons/rpc/controllers/json2.py and `Json2Dispatcher.handle_error`; statuses from odoo/exceptions.py.
- /web/version, /web/webclient/version_info, /web/database/list: addons/web/controllers.
- Signatures of the methods: odoo/orm/models.py. Of Odoo 18: `check_access_rights`, and `name_search` with
  `args`, which Odoo 19 calls `domain`; the JSON-RPC services take both.

The argument is `jsonrpc` or `json2`.
"""

import http.server
import inspect
import json
import re
import sys

KEY, UID, DATABASE = "key", 2, "prod"
JSON2 = sys.argv[1] == "json2"
VERSION = [19, 0, 0, "final", 0, ""]


class Failure(Exception):
    """An exception of Odoo, with its name and the status that JSON-2 gives it."""

    def __init__(self, name, message, status):
        super().__init__(message)
        self.name, self.message, self.status = name, message, status

    def body(self):
        trace = f"Traceback (most recent call last):\n{self.name}: {self.message}"
        return {"name": self.name, "message": self.message, "arguments": [self.message], "context": {}, "debug": trace}


def user_error(message):
    return Failure("odoo.exceptions.UserError", message, 422)


def api_model(method):
    method.is_model = True
    return method


class Model:
    """The methods that every model has."""

    fields = {"name": "char"}
    defaults = {}

    def __init__(self, name):
        self.name, self.rows, self.context = name, {}, {}

    def add(self, values):
        if not values.get("name"):
            raise Failure("odoo.exceptions.ValidationError", "A record needs a name", 422)
        key = max(self.rows, default=0) + 1
        self.rows[key] = {**{field: False for field in self.fields}, **self.defaults, **values, "id": key}
        return key

    def found(self, ids):
        missing = [key for key in ids if key not in self.rows]
        if missing:
            raise Failure("odoo.exceptions.MissingError", f"Record does not exist or has been deleted: {missing}", 404)
        return [self.rows[key] for key in ids]

    def matching(self, domain, offset=0, limit=None, order=None):
        def fits(row):
            tests = {
                "=": lambda one, other: one == other,
                "!=": lambda one, other: one != other,
                "in": lambda one, other: one in other,
                "ilike": lambda one, other: other.lower() in str(one).lower(),
            }
            return all(tests[operator](row.get(field), value) for field, operator, value in domain)

        rows = [row for row in self.rows.values() if fits(row)]
        field, _, way = (order or "id").partition(" ")
        rows.sort(key=lambda row: row[field], reverse=way == "desc")
        rows = rows[offset or 0 :]
        return rows[:limit] if limit else rows

    def shown(self, rows, fields):
        names = fields or self.fields
        language = {"lang": self.context["lang"]} if self.context.get("lang") == "fr_FR" else {}
        return [{"id": row["id"], **{field: row[field] for field in names if field != "id"}, **language} for row in rows]

    def read(self, ids, fields=None, load="_classic_read"):
        return [{**row, **({} if load else {"raw": True})} for row in self.shown(self.found(ids), fields)]

    @api_model
    def search(self, domain, offset=0, limit=None, order=None):
        return [row["id"] for row in self.matching(domain, offset, limit, order)]

    @api_model
    def search_read(self, domain=None, fields=None, offset=0, limit=None, order=None, **read_kwargs):
        return self.shown(self.matching(domain or [], offset, limit, order), fields)

    @api_model
    def search_count(self, domain, limit=None):
        return len(self.matching(domain, limit=limit))

    @api_model
    def read_group(self, domain, fields, groupby, offset=0, limit=None, orderby=False, lazy=True):
        groups = {}
        for row in self.matching(domain):
            groups.setdefault(row[groupby[0]], []).append(row)
        groups = [{groupby[0]: value, f"{groupby[0]}_count": len(rows)} for value, rows in sorted(groups.items())]
        groups = groups[offset or 0 :]
        return groups[:limit] if limit else groups

    @api_model
    def name_create(self, name):
        key = self.add({"name": name})
        return [key, name]

    @api_model
    def create(self, vals_list):
        vals_list = vals_list if isinstance(vals_list, list) else [vals_list]
        return [self.add(values) for values in vals_list]

    def write(self, ids, vals):
        for row in self.found(ids):
            row.update(vals)
        return True

    def unlink(self, ids):
        for row in self.found(ids):
            del self.rows[row["id"]]
        return True

    def copy(self, ids, default=None):
        return [self.add({**row, "name": row["name"] + " (copy)", **(default or {})}) for row in self.found(ids)]

    @api_model
    def fields_get(self, allfields=None, attributes=None):
        described = {name: {"type": kind, "string": name, "required": name == "name"} for name, kind in self.fields.items()}
        described = {name: field for name, field in described.items() if not allfields or name in allfields}
        pick = lambda field: {name: field[name] for name in attributes or field if name in field}
        return {name: pick(field) for name, field in described.items()}

    @api_model
    def default_get(self, fields):
        return {name: value for name, value in self.defaults.items() if name in fields}

    if not JSON2:

        @api_model
        def name_search(self, name="", args=None, operator="ilike", limit=100, domain=None):
            rows = self.matching([["name", operator, name], *(args or domain or [])], limit=limit)
            return [[row["id"], row["name"]] for row in rows]

        @api_model
        def check_access_rights(self, operation, raise_exception=True):
            return self.has_access([], operation)

    else:

        @api_model
        def name_search(self, name="", domain=None, operator="ilike", limit=100):
            rows = self.matching([["name", operator, name], *(domain or [])], limit=limit)
            return [[row["id"], row["name"]] for row in rows]

    def has_access(self, ids, operation):
        return operation in ("read", "write", "create")

    def message_post(self, ids, body="", subject=None):
        self.found(ids)
        return {"ids": ids, "body": body, "subject": subject}

    def action_archive(self, ids):
        return self.write(ids, {"active": False})


class Users(Model):
    fields = {"name": "char", "login": "char", "lang": "char"}

    @api_model
    def context_get(self):
        return {"lang": "en_US", "tz": "Europe/Brussels", "uid": UID}

    @api_model
    def has_group(self, group_ext_id):
        return group_ext_id == "base.group_user"


class Partners(Model):
    fields = {"name": "char", "email": "char", "city": "char", "active": "boolean"}
    defaults = {"active": True, "city": "Namur"}


class Data(Model):
    @api_model
    def check_object_reference(self, module, xml_id, raise_on_access_error=False):
        if (module, xml_id) != ("base", "main_partner"):
            raise Failure("builtins.ValueError", f"No record found for unique ID {module}.{xml_id}. It may have been deleted.", 500)
        return ["res.partner", 1]


MODELS = {
    "res.users": Users("res.users"),
    "res.partner": Partners("res.partner"),
    "ir.model": Model("ir.model"),
    "ir.model.data": Data("ir.model.data"),
}
Model.fields = {"name": "char", "model": "char"}
for name in MODELS:
    MODELS["ir.model"].add({"name": name, "model": name})
for user in ("System", "Mitchell Admin"):
    MODELS["res.users"].add({"name": user, "login": user.split()[-1].lower(), "lang": "en_US"})
for number, city in enumerate(("Namur", "Mons", "Namur")):
    MODELS["res.partner"].add({"name": f"Partner {number}", "email": f"p{number}@example.org", "city": city})


def public_method(model, method):
    found = getattr(model, method, None)
    if method.startswith("_") or method in ("add", "found", "matching", "shown") or not callable(found):
        return None
    return found


def execute(model, method, args, kwargs):
    """Calls a method for JSON-RPC, as `odoo.service.model.execute_cr` does."""
    if model not in MODELS:
        raise user_error(f"Object {model} doesn't exist")
    found = public_method(MODELS[model], method)
    if found is None:
        raise Failure("builtins.AttributeError", f"The method '{model}.{method}' does not exist", 500)
    MODELS[model].context = kwargs.pop("context", None) or {}
    args = list(args)
    if not getattr(found, "is_model", False):
        ids = args.pop(0) if args else kwargs.pop("ids", [])
        args.insert(0, [ids] if isinstance(ids, int) else ids)
    try:
        inspect.signature(found).bind(*args, **kwargs)
    except TypeError as fault:
        raise Failure("builtins.TypeError", str(fault), 500) from fault
    result = found(*args, **kwargs)
    single = method == "create" and isinstance(args[0], dict)
    return result[0] if single else result


def services(params):
    """The services of `/jsonrpc`."""
    service, method, args = params["service"], params["method"], params["args"]
    if (service, method) == ("common", "version"):
        return {"server_version": "19.0", "server_version_info": VERSION, "server_serie": "19.0", "protocol_version": 1}
    if service == "common" and method in ("login", "authenticate"):
        return UID if args[0] == DATABASE and args[2] == KEY else False
    if (service, method) == ("db", "list"):
        return [DATABASE]
    if service != "object":
        raise Failure("builtins.Exception", f"Method not found: {method}", 500)
    if (args[0], args[1], args[2]) != (DATABASE, UID, KEY):
        raise Failure("odoo.exceptions.AccessDenied", "Access Denied", 403)
    if method == "execute_kw":
        return execute(args[3], args[4], args[5], dict(args[6] if len(args) > 6 else {}))
    return execute(args[3], args[4], args[5:], {})


def json2(model, method, body, headers):
    """The JSON-2 API."""
    if headers.get("authorization") != f"bearer {KEY}":
        raise Failure("werkzeug.exceptions.Unauthorized", "Invalid apikey", 401)
    if headers.get("x-odoo-database") != DATABASE:
        raise Failure("werkzeug.exceptions.NotFound", "no database", 404)
    ids, context = body.pop("ids", []), body.pop("context", {})
    if model not in MODELS:
        raise Failure("werkzeug.exceptions.NotFound", f"the model '{model}' does not exist", 404)
    found = public_method(MODELS[model], method)
    if found is None:
        raise Failure("werkzeug.exceptions.NotFound", f"The method '{model}.{method}' does not exist", 404)
    is_model = getattr(found, "is_model", False)
    if is_model and ids:
        raise Failure("werkzeug.exceptions.UnprocessableEntity", f"cannot call {model}.{method} with ids", 422)
    MODELS[model].context = context
    args = [] if is_model else [ids]
    try:
        inspect.signature(found).bind(*args, **body)
    except TypeError as fault:
        raise Failure("werkzeug.exceptions.UnprocessableEntity", str(fault), 422) from fault
    return found(*args, **body)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json; charset=utf-8")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def enveloped(self, body, result):
        envelope = {"jsonrpc": "2.0", "id": body.get("id")}
        try:
            envelope["result"] = result(body.get("params", {}))
        except Failure as failure:
            envelope["error"] = {"code": 200, "message": "Odoo Server Error", "data": failure.body()}
        self.answer(200, envelope)

    def do_GET(self):
        if self.path == "/web/version" and JSON2:
            self.answer(200, {"version_info": VERSION, "version": "19.0"})
        else:
            self.answer(404, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path == "/web/webclient/version_info":
            return self.enveloped(body, lambda _: services({"service": "common", "method": "version", "args": []}))
        if self.path == "/web/database/list":
            return self.enveloped(body, lambda _: [DATABASE])
        if self.path == "/jsonrpc" and not JSON2:
            return self.enveloped(body, services)
        path = re.fullmatch("/json/2/([^/]+)/([^/]+)", self.path)
        if not path or not JSON2:
            return self.answer(404, {})
        try:
            self.answer(200, json2(path[1], path[2], body, self.headers))
        except Failure as failure:
            self.answer(failure.status, failure.body())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"serving http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
