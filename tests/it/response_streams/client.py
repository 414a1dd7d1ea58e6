"""The streaming operations of a2a-sdk's client. Arguments: `rest` or `rpc`, and the URL of the binding.

Prints what came of each operation, without ids and times.
"""

import asyncio
import json
import sys
import uuid

import httpx
from a2a.client.client import ClientCallContext
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.client.transports.rest import RestTransport
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
)

CONTEXT = ClientCallContext(service_parameters={"A2A-Version": "1.0"})


def message(text, **more):
    parts = [Part(text=text)]
    said = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, **more)
    return SendMessageRequest(message=said)


def shown(event):
    kind = event.WhichOneof("payload")
    if kind == "artifact_update":
        return f"artifact: {event.artifact_update.artifact.parts[0].text}"
    if kind == "status_update":
        return f"status: {event.status_update.status.state}"
    return kind


async def run(events):
    found = []
    try:
        async for event in events:
            found.append(shown(event))
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


async def subscribed(transport):
    """Subscribes to a task that another call has started."""
    known, found = asyncio.get_running_loop().create_future(), []

    async def start():
        async for event in transport.send_message_streaming(message("slow"), context=CONTEXT):
            if event.WhichOneof("payload") == "task":
                known.set_result(event.task.id)

    job = asyncio.create_task(start())
    request = SubscribeToTaskRequest(id=await known)
    found = await run(transport.subscribe(request, context=CONTEXT))
    await job
    return found[0], found[-1]


async def main(binding, url):
    card = AgentCard(name="agent", capabilities=AgentCapabilities(streaming=True))
    async with httpx.AsyncClient(timeout=30) as http:
        kind = RestTransport if binding == "rest" else JsonRpcTransport
        transport = kind(http, card, url)

        def send(request):
            return run(transport.send_message_streaming(request, context=CONTEXT))

        unknown = SubscribeToTaskRequest(id="nope")
        found = {
            "send": await send(message("hello")),
            "fail": await send(message("fail")),
            "unknown task": await send(message("hello", task_id="nope")),
            "subscribe": await subscribed(transport),
            "unknown subscription": await run(transport.subscribe(unknown, context=CONTEXT)),
        }
    print(json.dumps(found))


asyncio.run(main(*sys.argv[1:]))
