"""Prints the operations of a REST API and its answers to some requests as JSON.

Usage: calls_rest.py URL KEY PATH=BODY…
"""

import json
import sys
import urllib.error
import urllib.request


def send(url: str, key: str, body: str | None = None):
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, headers=headers, data=body.encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request) as response:
            return [response.status, json.load(response)]
    except urllib.error.HTTPError as error:
        return [error.code, None]


url, key, *calls = sys.argv[1:]
described = send(f"{url}/openapi.json", key)[1]


def schema(operation):
    if "requestBody" not in operation:
        return [[], []]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    while "$ref" in body:
        found = described
        for part in body["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        body = found
    return [sorted(body["properties"]), sorted(body.get("required", []))]


posts = {path: item["post"] for path, item in described["paths"].items() if "post" in item}
operations = {path: [post["description"], schema(post)] for path, post in posts.items()}
answers = []
for call in calls:
    path, _, body = call.partition("=")
    answers.append([call, *send(url + path, key, body)])
    if key and path in operations:
        answers.append([call, "without the key", send(url + path, "", body)[0]])
print(json.dumps([operations, answers]))
