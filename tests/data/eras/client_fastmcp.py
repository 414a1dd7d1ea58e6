"""A client of the matrix by fastmcp, which uses the official Python library. Usage: client_fastmcp.py URL MODE"""

import asyncio
import contextlib
import logging
import sys

import client_second
from fastmcp import Client as Library
from fastmcp.client.elicitation import ElicitResult
from features import report
from mcp.client.subscriptions import listen

logging.disable()


class Client(client_second.Client):
    async def logged(self, message) -> None:
        self.logs.append(message.data)

    async def elicits(self, message, kind, params, context):
        return ElicitResult(action="accept", content=None if params.mode == "url" else {"name": "Ada"})

    async def samples(self, messages, params, context) -> str:
        return "hi"

    async def tools(self):
        return [tool.name for tool in await self.library.list_tools()]

    async def calls(self, name, arguments, progress, meta):
        return await self.library.call_tool_mcp(name, arguments, progress_handler=progress, meta=meta)

    async def resources(self):
        return [str(resource.uri) for resource in await self.library.list_resources()]

    async def read(self, uri):
        return (await self.library.read_resource(uri))[0].text

    async def templates(self):
        return [template.uri_template for template in await self.library.list_resource_templates()]

    async def prompts(self):
        return [prompt.name for prompt in await self.library.list_prompts()]

    async def completions(self, reference, argument):
        return (await self.library.complete(reference, argument)).values

    async def ping(self):
        await self.library.ping()

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        # fastmcp has no call for it, but the session of the official library.
        session = self.library.session
        if self.modern():
            async with listen(session, tools_list_changed=True, resource_subscriptions=[uri]):
                yield
            return
        await session.subscribe_resource(uri)
        yield
        await session.unsubscribe_resource(uri)


async def main(url: str, mode: str) -> None:
    client = Client()
    client.library = Library(
        url,
        mode=mode,
        roots=["file:///tmp/eras"],
        elicitation_handler=client.elicits,
        sampling_handler=client.samples,
        log_handler=client.logged,
        message_handler=client.hears,
    )
    async with client.library:
        await report(client)


asyncio.run(main(*sys.argv[1:]))
