"""A small REST server with an OpenAPI document; prints its port. Standard library only."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ORDER = {"type": "object", "properties": {"id": {"type": "integer"}, "item": {"type": "string"}, "count": {"type": "integer"}}}
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}


def response(schema):
    return {"description": "OK", "content": {"application/json": {"schema": schema}}}


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [],
    "paths": {
        "/orders": {
            "get": {
                "operationId": "list_orders",
                "summary": "Lists orders",
                "parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer"}}],
                "responses": {"200": response({"type": "object", "properties": {"orders": {"type": "array", "items": ORDER}}})},
            },
            "post": {
                "operationId": "create_order",
                "description": "Creates an order",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
                                "required": ["item"],
                            }
                        }
                    },
                },
                "responses": {"201": response(ORDER)},
            },
        },
        "/orders/{id}": {
            "get": {"operationId": "get_order", "parameters": [ID], "responses": {"200": response(ORDER), "404": {"description": "No"}}},
            "delete": {"operationId": "delete_order", "parameters": [ID], "responses": {"204": {"description": "Gone"}}},
        },
        "/names": {
            "get": {
                "operationId": "list_names",
                "responses": {"200": response({"type": "array", "items": {"type": "string"}})},
            }
        },
    },
}
ORDERS = [{"id": 1, "item": "tea", "count": 2}, {"id": 2, "item": "salt", "count": 1}]


class Shop(BaseHTTPRequestHandler):
    def answer(self, status: int, value=None) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        if value is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/openapi.json":
            return self.answer(200, DOCUMENT | {"servers": [{"url": f"http://127.0.0.1:{self.server.server_port}"}]})
        if path == "/names":
            return self.answer(200, [order["item"] for order in ORDERS])
        if path == "/orders":
            limit = int(query.removeprefix("limit=") or 9)
            return self.answer(200, {"orders": ORDERS[:limit]})
        found = [order for order in ORDERS if path == f"/orders/{order['id']}"]
        return self.answer(200, found[0]) if found else self.answer(404, {"detail": "no such order"})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(201, {"id": 3, "item": given["item"], "count": given.get("count", 1)})

    def do_DELETE(self) -> None:
        self.answer(204)

    def log_message(self, *_) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
print(server.server_port, flush=True)
server.serve_forever()
