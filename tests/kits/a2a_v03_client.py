"""Calls operations of A2A 0.3 with a2a-sdk 0.3 over one binding, `JSONRPC` or `HTTP+JSON`, and prints the results as JSON.

The client starts from the agent card at the URL. With a third argument, the agent knows A2A 0.3 only, and may repeat an event.

Ids are replaced in the order in which they appear, times by a word, because they differ between servers.
"""

import asyncio
import json
import re
import sys
import warnings

import httpx
from google.protobuf.json_format import ParseError

warnings.simplefilter("ignore")

from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    GetTaskPushNotificationConfigParams,
    Message,
    MessageSendConfiguration,
    MessageSendParams,
    Part,
    PushNotificationAuthenticationInfo,
    PushNotificationConfig,
    Role,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TextPart,
)

url, binding = sys.argv[1], sys.argv[2]
old = len(sys.argv) > 3
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)")
results = {}
ids = {}


def plain(value):
    text = ID.sub(lambda found: ids.setdefault(found[0], f"ID{len(ids)}"), json.dumps(value))
    return json.loads(TIME.sub("TIME", text))


def dumped(value):
    return value.model_dump(mode="json", exclude_none=True, by_alias=True)


async def keep(name, result):
    """Keeps a result, or all events of a stream, with the error at its end; returns the last one."""
    found, last = [], None
    try:
        if hasattr(result, "__aiter__"):
            async for last in result:
                # A task of the agent of A2A 0.3 that waits repeats its state.
                if not (old and found and plain(dumped(last)) == plain(found[-1])):
                    found.append(dumped(last))
        else:
            last = await result
            found.append(dumped(last))
    except ParseError:
        # The agent cuts a stream of HTTP+JSON that fails, the proxy tells the error as an event, which this client cannot read.
        found.append("failed")
    except A2AClientError as error:
        answer = getattr(error, "error", None)
        status = getattr(error, "status_code", None)
        if binding == "HTTP+JSON" and hasattr(result, "__aiter__"):
            found.append("failed")
        else:
            found.append({"code": answer.code, "message": answer.message} if answer else {"status": status})
    results[name] = plain(found)
    return last


def message(*parts, **configuration):
    configured = MessageSendConfiguration(**configuration) if configuration else None
    sent = Message(message_id="m", role=Role.user, parts=[Part(root=part) for part in parts])
    return MessageSendParams(message=sent, configuration=configured)


PARTS = [
    TextPart(text="work", metadata={"a": 1}),
    FilePart(file=FileWithUri(uri="http://files.example/b", mime_type="text/plain", name="b")),
    FilePart(file=FileWithBytes(bytes="aGk=", name="x")),
    DataPart(data={"a": ["1", {"b": "c"}]}),
]


async def operations(client):
    await keep("say", client.send_message(message(TextPart(text="say hi"))))
    task = await keep("work", client.send_message(message(*PARTS, blocking=True)))
    await keep("task", client.get_task(TaskQueryParams(id=task.id)))
    await keep("task_history", client.get_task(TaskQueryParams(id=task.id, history_length=1)))
    await keep("task_whole", client.get_task(TaskQueryParams(id=task.id, history_length=0)))
    await keep("default", client.send_message(message(TextPart(text="say hi"), accepted_output_modes=["text/plain"])))
    asked = await keep("ask", client.send_message(message(TextPart(text="ask"), blocking=True)))
    await keep("cancel", client.cancel_task(TaskIdParams(id=asked.id)))
    await keep("no_task", client.get_task(TaskQueryParams(id="none")))
    await keep("fail", client.send_message(message(TextPart(text="fail"), blocking=True)))
    return task.id


def wait(text):
    return message(TextPart(text=text), blocking=True)


async def streams(client):
    """Operations whose responses stream."""
    await keep("say_streaming", client.send_message_streaming(wait("say hi")))
    await keep("work_streaming", client.send_message_streaming(message(*PARTS, blocking=True)))
    await keep("ask_streaming", client.send_message_streaming(wait("ask")))
    events = client.send_message_streaming(wait("wait"))
    first, second = await anext(events), await anext(events)
    subscription = client.resubscribe(TaskIdParams(id=first.id))
    followed = [await anext(subscription)]
    await keep("cancel_wait", client.cancel_task(TaskIdParams(id=first.id)))
    await keep("wait", rest_of([first, second], events))
    await keep("resubscribe", rest_of(followed, subscription))
    await keep("fail_streaming", client.send_message_streaming(wait("fail")))
    await keep("resubscribe_none", client.resubscribe(TaskIdParams(id="none")))


def push_config(name, **members):
    return PushNotificationConfig(id=name, url="https://example.org/?a=b", **members)


async def push(client, task):
    """Push notification configurations of a task."""
    bearer = PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="x")
    for name, config in [
        ("push_set", push_config("c1", token="t", authentication=bearer)),
        ("push_set_plain", push_config("c2")),
    ]:
        set_config = TaskPushNotificationConfig(task_id=task, push_notification_config=config)
        await keep(name, client.set_task_callback(set_config))
    for name in ["c1", "c2", "none"]:
        params = GetTaskPushNotificationConfigParams(id=task, push_notification_config_id=name)
        await keep(f"push_get_{name}", client.get_task_callback(params))
    for name, config in [("push", push_config("c3")), ("push_bearer", push_config("c4", authentication=bearer))]:
        sent = message(TextPart(text="say hi"), blocking=True, push_notification_config=config)
        await keep(f"send_{name}", client.send_message(sent))
        await keep(f"stream_{name}", client.send_message_streaming(sent))


async def plain_push(http, task):
    """Operations that the client of a2a-sdk 0.3 lacks, as plain calls."""
    if binding == "HTTP+JSON":
        answer = await http.get(f"{url}/v1/tasks/{task}/pushNotificationConfigs")
        results["push_list"] = plain(answer.json())
        return
    listed = {"method": "tasks/pushNotificationConfig/list", "params": {"id": task}}
    deleted = {"method": "tasks/pushNotificationConfig/delete", "params": {"id": task, "pushNotificationConfigId": "c1"}}
    for name, call in [("list", listed), ("delete", deleted), ("list_one", listed)]:
        answer = (await http.post(url, json={"jsonrpc": "2.0", "id": 7, **call})).json()
        results[f"push_{name}"] = plain({"id": answer["id"], "result": answer.get("result")})


async def rest_of(first, events):
    for event in first:
        yield event
    async for event in events:
        yield event


async def main():
    async with httpx.AsyncClient(timeout=30) as http:
        config = ClientConfig(httpx_client=http, supported_transports=[binding])
        # The client of the factory merges the events of a task; its transport keeps them.
        client = (await ClientFactory.connect(url, config))._transport
        task = await operations(client)
        await streams(client)
        await push(client, task)
        await plain_push(http, task)


asyncio.run(main())
print(json.dumps(results, indent=1, sort_keys=True))
