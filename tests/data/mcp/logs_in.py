"""An MCP client on the first major version of the official Python library: logs in, and asks for whom its token was issued.

It prints the answer, or why it could not log in.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlparse

import httpx
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientMetadata


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Follows the authorization server to the redirect of the client, as its user does."""

    async def opens(self, url: str) -> None:
        async with httpx.AsyncClient() as http:
            answer = await http.get(url)
        query = parse_qs(urlparse(answer.headers["location"]).query)
        self.result = query["code"][0], query["state"][0]

    async def returns(self):
        return self.result


def flow_error(error):
    """Finds the error of the login among those of the tasks."""
    for one in getattr(error, "exceptions", [error]):
        found = one if isinstance(one, OAuthFlowError) else None
        found = found or (flow_error(one) if hasattr(one, "exceptions") else None)
        if found:
            return found


async def main(url: str) -> None:
    browser = Browser()
    metadata = OAuthClientMetadata(client_name="test", redirect_uris=["http://127.0.0.1:1/callback"])
    auth = OAuthClientProvider(url, metadata, Storage(), browser.opens, browser.returns)
    try:
        async with streamablehttp_client(url, auth=auth) as (read, write, _):
            async with ClientSession(read, write) as session:
                await session.initialize()
                called = await session.call_tool("whose", {})
                print(json.dumps({"resource": called.content[0].text}))
    except BaseException as error:
        found = flow_error(error)
        if not found:
            raise
        print(json.dumps({"error": str(found)}))


asyncio.run(main(sys.argv[1]))
