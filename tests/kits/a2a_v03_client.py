"""Calls operations of A2A 0.3 with a2a-sdk 0.3 over JSON-RPC, and prints the results as JSON.

Ids are replaced in the order in which they appear, times by a word, because they differ between servers.
"""

import asyncio
import json
import re
import sys
import warnings

import httpx

warnings.simplefilter("ignore")

from a2a.client import A2AClient
from a2a.types import (
    CancelTaskRequest,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    GetTaskRequest,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    Part,
    Role,
    SendMessageRequest,
    TaskIdParams,
    TaskQueryParams,
    TextPart,
)

ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
results = {}
ids = {}


def keep(name, response):
    """Keeps the result or the code and message of the error, and returns the result."""
    found = response.model_dump(mode="json", exclude_none=True, by_alias=True)
    error = found.get("error")
    result = found["result"] if error is None else {"code": error["code"], "message": error["message"]}
    text = ID.sub(lambda found: ids.setdefault(found[0], f"ID{len(ids)}"), json.dumps(result))
    results[name] = json.loads(TIME.sub("TIME", text))
    return result


def message(*parts, **configuration):
    configured = MessageSendConfiguration(**configuration) if configuration else None
    sent = Message(message_id="m", role=Role.user, parts=[Part(root=part) for part in parts])
    return MessageSendParams(message=sent, configuration=configured)


PARTS = [
    TextPart(text="work"),
    FilePart(file=FileWithUri(uri="http://files.example/b", mime_type="text/plain", name="b")),
    FilePart(file=FileWithBytes(bytes="aGk=", name="x")),
    DataPart(data={"a": [1, 2.5, None]}),
]


async def main():
    async with httpx.AsyncClient(timeout=30) as http:
        client = A2AClient(http, url=sys.argv[1])

        async def send(name, params, id):
            return keep(name, await client.send_message(SendMessageRequest(id=id, params=params)))

        async def get(name, task):
            query = TaskQueryParams(id=task, history_length=5)
            return keep(name, await client.get_task(GetTaskRequest(id="get", params=query)))

        await send("say", message(TextPart(text="say hi")), "1")
        task = await send("work", message(*PARTS), 2)
        await get("task", task["id"])
        await send("blocking", message(TextPart(text="work"), blocking=True), 3)
        asked = await send("ask", message(TextPart(text="ask"), blocking=True), 4)
        cancelled = CancelTaskRequest(id=5, params=TaskIdParams(id=asked["id"]))
        keep("cancel", await client.cancel_task(cancelled))
        await get("no task", "none")
        await send("fail", message(TextPart(text="fail")), 6)


asyncio.run(main())
print(json.dumps(results, indent=1, sort_keys=True))
