"""An MCP server of the official library with the tools of an order system. It prints its port.

The version of the library is the one that this Python has: 1.x has `FastMCP`, 2.x `MCPServer`.
"""

import socket

import uvicorn
from pydantic import BaseModel

try:
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError
except ImportError:
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError

server = Server("orders")


class Line(BaseModel):
    sku: str | None = None
    unit_price: float


class Order(BaseModel):
    order_id: int
    customer_name: str
    note: str | None = None
    lines: list[Line]


class Created(BaseModel):
    success: bool
    order: Order


def order(order_id: int, name: str) -> Order:
    return Order(order_id=order_id, customer_name=name, lines=[Line(sku="a", unit_price=1.5)])


def known(order_id: int) -> int:
    if order_id != 7:
        raise ToolError("there is no such order")
    return order_id


@server.tool()
def list_orders(status: str | None = None) -> list[Order]:
    """Lists the orders."""
    return [order(7, "Ann")] if status == "open" else []


@server.tool()
def create_order(customer_name: str, note: str | None = None) -> Created:
    """Creates an order."""
    if not customer_name:
        raise ToolError("a name is needed")
    return Created(success=True, order=order(8, customer_name))


@server.tool()
def get_order(order_id: int) -> Order:
    """Gets an order."""
    return order(known(order_id), "Ann")


@server.tool()
def update_order(order_id: int, customer_name: str, note: str | None = None) -> Order:
    """Changes an order."""
    return order(known(order_id), customer_name)


@server.tool()
def delete_order(order_id: int) -> str:
    """Deletes an order."""
    return f"order {known(order_id)} is deleted"


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
