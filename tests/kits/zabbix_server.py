"""An imitation of the Zabbix API: with the token in the member `auth`, as before 7.2, or in the header.

Written from the documentation of the Zabbix API ("Authorization", "Error handling", `user`, `host`, `apiinfo`) and its source
(ui/include/classes/api/CJsonRpc.php): an unexpected member is an invalid request, `user.login` has `username` since 5.4 and no
`user` since 6.4, methods that delete take a list of ids. Both say that they are 7.0, so that clients use what the test wants.

The argument is `member` or `header`.
"""

import http.server
import json
import sys

MEMBER = sys.argv[1] == "member"
HOSTS = {"10001": {"hostid": "10001", "host": "alpha", "status": "0"}, "10002": {"hostid": "10002", "host": "beta", "status": "1"}}
OPEN = ("apiinfo.version", "user.login", "user.checkAuthentication")
tokens = {"token"}


class Failure(Exception):
    def __init__(self, code, message, data):
        super().__init__(data)
        self.error = {"code": code, "message": message, "data": data}


def invalid(data):
    return Failure(-32602, "Invalid params.", data)


def login(params):
    name = "user" if MEMBER and "user" in params else "username"
    if unexpected := set(params) - {name, "password", "userData"}:
        raise invalid(f'Invalid parameter "/": unexpected parameter "{sorted(unexpected)[0]}".')
    if (params.get(name), params.get("password")) != ("Admin", "zabbix"):
        raise Failure(-32500, "Application error.", "Incorrect user name or password or account is temporarily blocked.")
    tokens.add("session")
    return "session"


def check(params):
    token = params.get("sessionid") or params.get("token")
    if token not in tokens:
        raise invalid("Session terminated, re-login, please.")
    return {"userid": "1", "username": "Admin"}


def get_hosts(params):
    found = list(HOSTS.values())
    if names := params.get("filter", {}).get("host"):
        found = [host for host in found if host["host"] in names]
    found = found[: params.get("limit", len(found))]
    if params.get("countOutput"):
        return str(len(found))
    if isinstance(params.get("output"), list):
        found = [{name: host[name] for name in ("hostid", *params["output"])} for host in found]
    return found


def create_host(params):
    if "host" not in params:
        raise invalid('Invalid parameter "/1": the parameter "host" is missing.')
    key = str(max(map(int, HOSTS)) + 1)
    HOSTS[key] = {"hostid": key, "host": params["host"], "status": "0"}
    return {"hostids": [key]}


def update_host(params):
    HOSTS[params["hostid"]].update(params)
    return {"hostids": [params["hostid"]]}


def delete_hosts(keys):
    for key in keys:
        if key not in HOSTS:
            raise Failure(-32500, "Application error.", "No permissions to referred object or it does not exist!")
        del HOSTS[key]
    return {"hostids": keys}


METHODS = {
    "apiinfo.version": lambda _: "7.0.0",
    "user.login": login,
    "user.checkAuthentication": check,
    "user.logout": lambda _: True,
    "host.get": get_hosts,
    "host.create": create_host,
    "host.update": update_host,
    "host.delete": delete_hosts,
}


def called(message, header):
    allowed = {"jsonrpc", "method", "params", "id"} | ({"auth"} if MEMBER else set())
    if unexpected := set(message) - allowed:
        raise Failure(-32600, "Invalid request.", f'Invalid parameter "/": unexpected parameter "{sorted(unexpected)[0]}".')
    method = METHODS.get(message["method"])
    if method is None:
        raise invalid(f'Incorrect API "{message["method"].split(".")[0]}".')
    token = message.get("auth") if MEMBER else (header or "").removeprefix("Bearer ")
    if message["method"] not in OPEN and token not in tokens:
        raise invalid("Not authorized.")
    return method(message["params"])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = {"jsonrpc": "2.0"}
        try:
            answer["result"] = called(message, self.headers.get("authorization"))
        except Failure as failure:
            answer["error"] = failure.error
        text = json.dumps({**answer, "id": message.get("id")}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"serving http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
