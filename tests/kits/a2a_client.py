"""Calls every operation of A2A 1.0 with a2a-sdk over one binding, and prints the results as JSON.

With a third argument, the agent knows A2A 0.3 only, and the client calls what that version has.

Ids are replaced in the order in which they appear, times and addresses by a word, because they differ between servers.
"""

import asyncio
import datetime
import json
import re
import sys

import httpx
from a2a.client import ClientCallContext, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.helpers import new_data_part, new_raw_part, new_text_message, new_url_part
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict

url, binding = sys.argv[1], sys.argv[2]
old = len(sys.argv) > 3
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
results = {}
ids = {}


def plain(value):
    text = ID.sub(lambda found: ids.setdefault(found[0], f"ID{len(ids)}"), json.dumps(value))
    text = re.sub(r"http://127\.0\.0\.1:\d+", "ADDRESS", TIME.sub("TIME", text))
    return json.loads(text)


async def call(name, result):
    """Keeps a result, or all events of a stream, with the error at its end."""
    found = []
    try:
        if hasattr(result, "__aiter__"):
            async for event in result:
                event = MessageToDict(event)
                # A subscriber of A2A 0.3 gets the next event first, so a task that waits repeats its state.
                if not (old and found and plain(event) == plain(found[-1])):
                    found.append(event)
        else:
            result = await result
            found.append(result if result is None else MessageToDict(result))
    except (A2AError, A2AClientError) as error:
        name_of_error = type(error).__name__
        # The text of a failure inside the agent is that of the server's binding, and so is its extended card.
        # A2A 0.3 has no details.
        data = "" if old else json.dumps(getattr(error, "data", None))
        text = "" if "crash" in name else f": {error} {data}"
        found.append(name_of_error + text)
    results[name] = plain(found)
    return found


def message(text, tenant="", task=None, **configuration):
    sent = new_text_message(text, role=a2a.ROLE_USER)
    sent.message_id = "m"
    if task:
        sent.task_id, sent.context_id = task["id"], task["contextId"]
    return a2a.SendMessageRequest(
        tenant=tenant, message=sent, configuration=a2a.SendMessageConfiguration(**configuration)
    )


async def operations(client, streaming, tenant, prefix):
    """Every operation, for one tenant."""

    def keep(name, result):
        return call(prefix + name, result)

    await keep("say", client.send_message(message("say 1.10 \u00e9", tenant)))
    await keep("say_streaming", streaming.send_message(message("say a", tenant)))
    done = (await keep("task", client.send_message(message("work", tenant))))[0]["task"]
    await keep("task_streaming", streaming.send_message(message("work", tenant)))
    asked = (await keep("ask", client.send_message(message("ask", tenant))))[0]["task"]
    await keep("answer", streaming.send_message(message("seven", tenant, asked)))
    await keep("immediate", client.send_message(message("work", tenant, return_immediately=True)))
    await keep("get", client.get_task(a2a.GetTaskRequest(tenant=tenant, id=done["id"])))
    await keep("history", client.get_task(a2a.GetTaskRequest(tenant=tenant, id=done["id"], history_length=1)))
    if old:
        await parts(client, streaming, keep)
        await running(client, streaming, tenant, keep)
        await push(client, tenant, keep, done["id"])
        await failures(client, streaming, tenant, keep, done)
        return
    await keep("no_history", client.get_task(a2a.GetTaskRequest(tenant=tenant, id=done["id"], history_length=0)))
    context = done["contextId"]
    await keep("list", client.list_tasks(a2a.ListTasksRequest(tenant=tenant, context_id=context)))
    since = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    listed = a2a.ListTasksRequest(
        tenant=tenant,
        context_id=context,
        status=a2a.TASK_STATE_COMPLETED,
        page_size=1,
        history_length=1,
        status_timestamp_after=since,
        include_artifacts=True,
    )
    await keep("list_all_members", client.list_tasks(listed))
    await keep("list_none", client.list_tasks(a2a.ListTasksRequest(tenant=tenant, context_id="none & more")))
    await keep("list_bad_page", client.list_tasks(a2a.ListTasksRequest(tenant=tenant, page_token="?")))
    await running(client, streaming, tenant, keep)
    await push(client, tenant, keep, done["id"])
    await failures(client, streaming, tenant, keep, done)
    card = await call("", client.get_extended_agent_card(a2a.GetExtendedAgentCardRequest(tenant=tenant)))
    results[prefix + "card"] = card[0]["description"]


async def parts(client, streaming, keep):
    """Parts of each kind, in both directions, and a configuration with all members."""
    sent = message("echo", accepted_output_modes=["text/plain"], history_length=1)
    sent.metadata.update({"why": "test"})
    sent.configuration.task_push_notification_config.CopyFrom(
        a2a.TaskPushNotificationConfig(
            id="sent", url="https://example.org", authentication=a2a.AuthenticationInfo(scheme="Bearer")
        )
    )
    sent.message.parts.extend(
        [
            new_url_part("https://example.org/a.png", media_type="image/png", filename="a.png"),
            new_raw_part(b"bytes", media_type="text/plain"),
            new_data_part({"a": [1, None, {}]}),
        ]
    )
    echoed = (await keep("echo", client.send_message(sent)))[0]["task"]
    request = a2a.GetTaskPushNotificationConfigRequest(task_id=echoed["id"], id="sent")
    await keep("echo_push", client.get_task_push_notification_config(request))
    await keep("echo_streaming", streaming.send_message(sent))


async def running(client, streaming, tenant, keep):
    """Follows a task that runs, twice, and cancels it."""
    events = streaming.send_message(message("wait", tenant))
    first, second = await anext(events), await anext(events)
    task = first.task.id
    subscribed = asyncio.Event()
    subscription = streaming.subscribe(a2a.SubscribeToTaskRequest(tenant=tenant, id=task))
    followed = asyncio.create_task(keep("subscribe", announced(subscription, subscribed)))
    await subscribed.wait()
    await keep("cancel", client.cancel_task(a2a.CancelTaskRequest(tenant=tenant, id=task, metadata={"why": "test"})))
    await followed
    await keep("wait", rest_of([first, second], events))
    await keep("cancel_again", client.cancel_task(a2a.CancelTaskRequest(tenant=tenant, id=task)))
    await keep("subscribe_ended", streaming.subscribe(a2a.SubscribeToTaskRequest(tenant=tenant, id=task)))


async def announced(events, begun):
    """Yields events, and tells that the first one is there, or none will come."""
    try:
        async for event in events:
            begun.set()
            yield event
    finally:
        begun.set()


async def rest_of(first, events):
    for event in first:
        yield event
    async for event in events:
        yield event


async def push(client, tenant, keep, task):
    """Push notification configs of a task."""
    config = a2a.TaskPushNotificationConfig(
        tenant=tenant,
        id="c1",
        task_id=task,
        url="https://example.org/?a=b",
        token="t",
        authentication=a2a.AuthenticationInfo(scheme="Bearer", credentials="x"),
    )
    await keep("push_create", client.create_task_push_notification_config(config))
    await keep(
        "push_create_two",
        client.create_task_push_notification_config(
            a2a.TaskPushNotificationConfig(tenant=tenant, id="c2", task_id=task, url="https://example.org")
        ),
    )
    await keep(
        "push_get",
        client.get_task_push_notification_config(
            a2a.GetTaskPushNotificationConfigRequest(tenant=tenant, task_id=task, id="c1")
        ),
    )
    await keep(
        "push_list",
        client.list_task_push_notification_configs(
            a2a.ListTaskPushNotificationConfigsRequest(tenant=tenant, task_id=task, page_size=10)
        ),
    )
    for name in ["push_delete", "push_delete_again"]:
        await keep(
            name,
            client.delete_task_push_notification_config(
                a2a.DeleteTaskPushNotificationConfigRequest(tenant=tenant, task_id=task, id="c1")
            ),
        )
    await keep(
        "push_missing",
        client.get_task_push_notification_config(
            a2a.GetTaskPushNotificationConfigRequest(tenant=tenant, task_id=task, id="c1")
        ),
    )


async def invalid(client, streaming, tenant, keep):
    empty = a2a.SendMessageRequest(tenant=tenant, message=a2a.Message(message_id="m"))
    await keep("send_invalid", client.send_message(empty))
    await keep("stream_invalid", streaming.send_message(empty))


async def failures(client, streaming, tenant, keep, done):
    """Errors before and within responses."""
    missing = {"id": "missing", "contextId": "c"}
    await keep("get_missing", client.get_task(a2a.GetTaskRequest(tenant=tenant, id="missing")))
    await keep("cancel_missing", client.cancel_task(a2a.CancelTaskRequest(tenant=tenant, id="missing")))
    await keep("subscribe_missing", streaming.subscribe(a2a.SubscribeToTaskRequest(tenant=tenant, id="missing")))
    await keep("send_missing", client.send_message(message("work", tenant, missing)))
    await keep("stream_missing", streaming.send_message(message("work", tenant, missing)))
    await keep("send_done", client.send_message(message("work", tenant, done)))
    if not old:
        await invalid(client, streaming, tenant, keep)
    image = message("work", tenant)
    image.message.parts.append(new_url_part("https://example.org/a.png", media_type="image/png"))
    await keep("send_image", client.send_message(image))
    data = message("say data", tenant)
    data.message.parts.append(new_data_part({"a": [1, None, {}]}))
    await keep("send_data", client.send_message(data))
    for text in ["fail"] if old else ["fail", "crash"]:
        await keep(text, client.send_message(message(text, tenant)))
        await keep(f"{text}_streaming", streaming.send_message(message(text, tenant)))
    if old:
        return
    other = ClientCallContext(service_parameters={"A2A-Version": "7.0"})
    await keep("version", client.get_task(a2a.GetTaskRequest(tenant=tenant, id=done["id"]), context=other))
    await keep("version_streaming", streaming.send_message(message("work", tenant), context=other))


async def main():
    async with httpx.AsyncClient(timeout=30) as http:
        clients = []
        for streams in [False, True]:
            config = ClientConfig(streaming=streams, supported_protocol_bindings=[binding], httpx_client=http)
            clients.append(await ClientFactory(config).create_from_url(url))
        await operations(*clients, "", "")
        if not old:
            await operations(*clients, "acme", "tenant_")
    results.pop("", None)
    print(json.dumps(results, indent=1, sort_keys=True))


asyncio.run(main())
