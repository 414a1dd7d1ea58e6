"""An imitation of TrueNAS: REST v2.0 as in 24.10, or JSON-RPC 2.0 over a WebSocket as in 25.10, over the same records.

Written from the source of TrueNAS (github.com/truenas/middleware) and its documentation (api.truenas.com/v25.10):

- REST: src/middlewared/middlewared/restful.py. Paths from services and methods, filters from the query, the order of arguments
  from the names in the body, the number of the job as the response of a job, statuses 401, 404 and 422.
- JSON-RPC: api/base/server/ws_handler/rpc.py. The errors and their `data`; a job responds when it ends (middlewared_docs, "Jobs").
- `auth.login_with_api_key`, `auth.login_ex`, `auth.check_password`: plugins/auth.py. Calls before the login: ENOTAUTHENTICATED.
- Filters and options of `query`: "Query methods" of the documentation; `get_instance`: service/crud_service.py.
- `zfs.snapshot` became `pool.snapshot`, `service.start` and others became `service.control`, `unlock_options` of
  `pool.dataset.unlock` became `options`: the list of methods of the documentation.

Arguments: `rest` or `rpc`, a certificate and its key.
"""

import errno
import http.server
import json
import re
import ssl
import sys
import threading
import urllib.parse

import websockets.sync.server

KEY = "1-key"
ENOTAUTHENTICATED = 207


class CallError(Exception):
    def __init__(self, message, number=errno.EFAULT):
        super().__init__(message)
        self.message, self.number = message, number
        self.name = "ENOTAUTHENTICATED" if number == ENOTAUTHENTICATED else errno.errorcode[number]


class ValidationErrors(Exception):
    def __init__(self, *errors):
        super().__init__(errors)
        self.errors = errors


class Records:
    """A CRUD service."""

    def __init__(self, name, rows, key="id"):
        self.name, self.rows, self.key = name, rows, key

    def query(self, filters=(), options=None):
        options = options or {}
        tests = {"=": lambda one, other: one == other, "!=": lambda one, other: one != other}
        rows = [row for row in self.rows if all(tests[test](row.get(name), value) for name, test, value in filters)]
        for field in reversed(options.get("order_by", [])):
            rows.sort(key=lambda row: row[field.lstrip("-")], reverse=field.startswith("-"))
        rows = rows[options.get("offset") or 0 :]
        return rows[: options["limit"]] if options.get("limit") else rows

    def get_instance(self, key):
        for row in self.rows:
            if row[self.key] == key:
                return row
        raise ValidationErrors((None, f"{self.name} {key} does not exist", errno.ENOENT))

    def create(self, values):
        if not values:
            raise ValidationErrors((f"{self.name}_create.name", "Field required", errno.EINVAL))
        if self.key == "id" and self.rows and isinstance(self.rows[0]["id"], str):
            key = values["name"] if "dataset" not in values else f"{values['dataset']}@{values['name']}"
        else:
            key = max((row["id"] for row in self.rows), default=0) + 1
        self.rows.append({**values, "id": key})
        return self.rows[-1]

    def update(self, key, values):
        row = self.get_instance(key)
        row.update(values)
        return row

    def delete(self, key, options=None):
        row = self.get_instance(key)
        if row.get("busy") and not (options or {}).get("force"):
            raise CallError(f"{key} is busy", errno.EBUSY)
        self.rows.remove(row)
        return True


class Config:
    """A service with one configuration."""

    def __init__(self, values):
        self.values = values

    def config(self):
        return self.values

    def update(self, values):
        self.values.update(values)
        return self.values


def numbered(*names, **more):
    return [{"id": number, "name": name, **more} for number, name in enumerate(names, 1)]


DATASETS = Records(
    "pool.dataset",
    [{"id": name, "name": name, "pool": "tank", "locked": name == "tank/secret", "busy": name == "tank/apps"} for name in ("tank", "tank/secret", "tank/apps")],
)
SNAPSHOTS = Records("pool.snapshot", [{"id": f"tank@{name}", "name": f"tank@{name}", "dataset": "tank", "pool": "tank"} for name in ("daily", "weekly")])
JOBS = Records("core.job", [{"id": 1, "method": "pool.scrub", "state": "RUNNING"}, {"id": 2, "method": "pool.scrub", "state": "SUCCESS"}])
ALERTS = [{"uuid": "a1", "level": "WARNING", "dismissed": False}]
INTEGER = "group cronjob certificate privilege vm replication cloudsync rsynctask keychaincredential api_key"
CRUD = {
    "pool": Records("pool", numbered("tank", "backup", status="ONLINE", healthy=True, size=10_000_000_000_000)),
    "user": Records("user", [{"id": 1, "username": "root", "locked": False}, {"id": 2, "username": "ann", "locked": False}]),
    "service": Records("service", [{"id": 1, "service": "ssh", "state": "STOPPED"}, {"id": 2, "service": "nfs", "state": "RUNNING"}]),
    "disk": Records("disk", [{"identifier": "d1", "name": "sda", "size": 1}, {"identifier": "d2", "name": "sdb", "size": 2}], "identifier"),
    "interface": Records("interface", [{"id": "eno1", "name": "eno1"}]),
    "app": Records("app", [{"id": "plex", "name": "plex", "state": "RUNNING"}]),
    "pool.dataset": DATASETS,
    "zfs.snapshot": SNAPSHOTS,
    "pool.snapshottask": Records("pool.snapshottask", [{"id": 1, "dataset": "tank"}]),
    "pool.scrub": Records("pool.scrub", [{"id": 1, "pool": 1}]),
    **{name: Records(name, numbered("one", "two")) for name in INTEGER.split()},
    **{f"sharing.{name}": Records(f"sharing.{name}", numbered("one", "two", path="/mnt/tank")) for name in ("nfs", "smb")},
    **{f"iscsi.{name}": Records(f"iscsi.{name}", numbered("one", "two")) for name in "target extent targetextent portal initiator auth".split()},
}
CONFIGS = {name: Config({"id": 1, "for": name}) for name in "nfs smb ssh ftp snmp ups mail docker".split()}
CONFIGS |= {name: Config({"id": 1, "for": name}) for name in "system.general system.advanced network.configuration iscsi.global".split()}


def check_password(username, password):
    return (username, password) == ("ann", "secret")


def unlock(key, options=None):
    row = DATASETS.get_instance(key)
    passphrases = {item["name"]: item["passphrase"] for item in (options or {}).get("datasets", [])}
    if passphrases.get(key) != "passphrase":
        return {"unlocked": [], "failed": {key: {"error": "Invalid Key"}}}
    row["locked"] = False
    return {"unlocked": [key], "failed": {}}


def lock(key, options=None):
    DATASETS.get_instance(key)["locked"] = True
    return True


def control(verb, service, options=None):
    state = "STOPPED" if verb == "STOP" else "RUNNING"
    next(row for row in CRUD["service"].rows if row["service"] == service)["state"] = state
    return True


def rollback(key, options=None):
    SNAPSHOTS.get_instance(key)


def clone(values):
    SNAPSHOTS.get_instance(values["snapshot"])
    return True


def abort(key):
    JOBS.get_instance(key)["state"] = "ABORTED"


def dismiss(key, dismissed=True):
    ALERTS[0]["dismissed"] = dismissed


FACTS = {"info": {"version": "25.04.0", "hostname": "truenas"}, "version": "TrueNAS-25.04.0", "ready": True, "state": "READY"}
FACTS |= {"version_short": "25.04", "host_id": "h1", "boot_id": "b1", "product_type": "COMMUNITY_EDITION"}
# The methods, with the names of their arguments if there are several.
METHODS = {f"system.{name}": (lambda value=value: value, ()) for name, value in FACTS.items()}
METHODS |= {
    "auth.check_password": (check_password, ("username", "password")),
    "pool.dataset.unlock": (unlock, ("id", "unlock_options")),
    "pool.dataset.lock": (lock, ("id", "lock_options")),
    "zfs.snapshot.rollback": (rollback, ("id", "options")),
    "zfs.snapshot.clone": (clone, ()),
    "core.get_jobs": (JOBS.query, ()),
    "core.job_abort": (abort, ()),
    "core.ping": (lambda: "pong", ()),
    "alert.list": (lambda: ALERTS, ()),
    "alert.dismiss": (dismiss, ()),
    "alert.restore": (lambda key: dismiss(key, False), ()),
    "service.control": (control, ("verb", "service", "options")),
    **{f"service.{verb}": (lambda service, options=None, verb=verb: control(verb.upper(), service), ("service", "service-control")) for verb in ("start", "stop", "restart", "reload")},
    # A reason is required since 25.10.
    "system.reboot": (lambda *args: None, ("delay",)),
    "system.shutdown": (lambda *args: None, ("delay",)),
}
JOB_METHODS = ("pool.dataset.unlock", "pool.dataset.lock", "system.reboot", "system.shutdown")
for name, service in CRUD.items():
    METHODS |= {f"{name}.{method}": (getattr(service, method), ()) for method in ("query", "get_instance", "create", "update", "delete")}
for name, service in CONFIGS.items():
    METHODS |= {f"{name}.{method}": (getattr(service, method), ()) for method in ("config", "update")}


# REST v2.0


def converted(value):
    if value.isdigit():
        return int(value)
    return {"true": True, "false": False, "null": None}.get(value.lower(), value)


def filterable(query):
    filters, options = [], {}
    for name, value in urllib.parse.parse_qsl(query):
        if name in ("limit", "offset"):
            options[name] = int(value)
        elif name == "sort":
            options["order_by"] = value.split(",")
        else:
            filters.append([name, "=", converted(value)])
    return [filters, options]


def rest_call(verb, path, query, body):
    """Returns the method and the arguments of a REST call."""
    path = path.removeprefix("/api/v2.0/")
    item = re.fullmatch("(.*)/id/([^/]*)", path)
    name = (item[1] if item else path).replace("/", ".")
    if item:
        key = urllib.parse.unquote(item[2])
        key = int(key) if key.isdigit() else key
        method = {"GET": "get_instance", "PUT": "update", "DELETE": "delete"}[verb]
        return f"{name}.{method}", [key] if body is None else [key, body]
    if name in CRUD:
        return (f"{name}.query", filterable(query)) if verb == "GET" else (f"{name}.create", [body])
    if name in CONFIGS:
        return (f"{name}.config", []) if verb == "GET" else (f"{name}.update", [body])
    if name == "core.get_jobs":
        return name, filterable(query)
    parameters = METHODS[name][1]
    if body is None:
        return name, []
    return name, [body[name] for name in parameters if name in body] if parameters else [body]


class Rest(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    key_of_item = staticmethod(lambda errors: errors[0][2] == errno.ENOENT and errors[0][0] is None)

    def respond(self):
        if self.headers.get("authorization") != f"Bearer {KEY}":
            return 401, None
        url = urllib.parse.urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        try:
            method, args = rest_call(self.command, url.path, url.query, body)
            result = METHODS[method][0](*args)
            return 200, 7 if method in JOB_METHODS else result
        except CallError as error:
            return 422, {"message": error.message, "errno": error.number}
        except ValidationErrors as error:
            if self.key_of_item(error.errors) and self.command == "GET":
                return 404, {"message": ""}
            shown = {}
            for attribute, message, number in error.errors:
                shown.setdefault(str(attribute), []).append({"message": message, "errno": number})
            return 422, shown

    def do_GET(self):
        status, body = self.respond()
        text = b"" if status == 401 else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *_):
        pass


# JSON-RPC 2.0


def failure(code, message, number, name, reason, extra=None):
    data = {"error": number, "errname": name, "reason": reason, "trace": {"class": "CallError", "frames": []}, "extra": extra}
    return {"error": {"code": code, "message": message, "data": data}}


def rpc_answer(message, session):
    method, args = message["method"], message.get("params", [])
    if method == "auth.login_with_api_key":
        session["known"] = args == [KEY]
        return {"result": session["known"]}
    if method == "auth.login_ex":
        session["known"] = check_password(args[0]["username"], args[0]["password"])
        return {"result": {"response_type": "SUCCESS" if session["known"] else "AUTH_ERR"}}
    if not session["known"]:
        return failure(-32001, "Method call error", ENOTAUTHENTICATED, "ENOTAUTHENTICATED", "[ENOTAUTHENTICATED] Not authenticated")
    if method.startswith("pool.snapshot."):
        method = method.replace("pool.", "zfs.", 1)
    elif method.startswith("zfs.snapshot.") or method in ("service.start", "service.stop"):
        method = ""
    if method not in METHODS:
        return {"error": {"code": -32601, "message": "Method does not exist"}}
    if method in ("system.reboot", "system.shutdown") and not args:
        return failure(-32602, "Invalid params", errno.EINVAL, "EINVAL", "[EINVAL] reason: Field required\n", [["reason", "Field required", errno.EINVAL]])
    try:
        return {"result": METHODS[method][0](*args)}
    except CallError as error:
        return failure(-32001, "Method call error", error.number, error.name, f"[{error.name}] {error.message}")
    except ValidationErrors as error:
        shown = [f"[{errno.errorcode[number]}] {attribute}: {text}" for attribute, text, number in error.errors]
        # A single error is a `ValidationError`, whose text has no line end.
        reason = shown[0] if error.errors[0][0] is None else "".join(line + "\n" for line in shown)
        return failure(-32602, "Invalid params", errno.EINVAL, "EINVAL", reason, [list(item) for item in error.errors])


def serve_socket(socket):
    session = {"known": False}
    for text in socket:
        message = json.loads(text)
        assert message["jsonrpc"] == "2.0" and isinstance(message.get("params", []), list)
        socket.send(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **rpc_answer(message, session)}))


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(sys.argv[2], sys.argv[3])
if sys.argv[1] == "rest":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Rest)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    print(f"serving https://127.0.0.1:{server.server_port}", flush=True)
else:
    server = websockets.sync.server.serve(serve_socket, "127.0.0.1", 0, ssl=tls)
    print(f"serving wss://127.0.0.1:{server.socket.getsockname()[1]}/api/current", flush=True)
threading.Thread(target=server.serve_forever).start()
