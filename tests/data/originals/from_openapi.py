"""An MCP server of fastmcp from an OpenAPI document, as its documentation shows it. Usage: from_openapi.py URL"""

import sys

import httpx2
from fastmcp import FastMCP

spec = httpx2.get(f"{sys.argv[1]}/openapi.json").json()
client = httpx2.AsyncClient(base_url=sys.argv[1])
mcp = FastMCP.from_openapi(openapi_spec=spec, client=client)
mcp.run(show_banner=False)
