"""An MCP server of the official library that requires authorization, with its own authorization server, on a port that it prints.

Usage: protected.py. The tool `whose` says for which resource the token of its caller was issued.
"""

import secrets
import socket
import time

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, AuthorizationCode, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server.mcpserver import MCPServer as Server


class Provider:
    """Logs everybody in, and keeps clients, codes and tokens in memory."""

    def __init__(self) -> None:
        self.clients, self.codes, self.tokens = {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, params):
        code = secrets.token_hex(16)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        token = secrets.token_hex(16)
        self.tokens[token] = AccessToken(
            token=token, client_id=client.client_id, scopes=code.scopes, resource=code.resource
        )
        return OAuthToken(access_token=token, scope=" ".join(code.scopes))

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def load_refresh_token(self, client, token):
        return None


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
own = f"http://127.0.0.1:{port}"
auth = AuthSettings(
    issuer_url=own,
    resource_server_url=f"{own}/mcp",
    client_registration_options=ClientRegistrationOptions(enabled=True),
)
server = Server("protected", auth_server_provider=Provider(), auth=auth)


@server.tool()
def whose() -> str:
    """Says for which resource the token of the caller was issued."""
    return get_access_token().resource


print(port, flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listener])
