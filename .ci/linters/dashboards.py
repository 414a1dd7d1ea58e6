"""Reads each dashboard with the types of Grafana's own SDK and writes it again: what does not come back is no member that
Grafana knows, or has another type there."""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

# The Prometheus datasource reads it; the SDK knows only what annotations of all datasources have.
KNOWN = {"titleFormat"}


def lost(sent, back, path=""):
    if isinstance(sent, dict) and isinstance(back, dict):
        for name in sent:
            if name in back:
                yield from lost(sent[name], back[name], f"{path}/{name}")
            elif name not in KNOWN:
                yield f"{path}/{name} is not known"
    elif isinstance(sent, list) and isinstance(back, list) and len(sent) == len(back):
        for place, (one, other) in enumerate(zip(sent, back)):
            yield from lost(one, other, f"{path}/{place}")
    elif sent != back:
        yield f"{path} is {sent!r} and comes back as {back!r}"


register_default_plugins()
findings = 0
for file in sys.argv[1:]:
    with open(file, encoding="utf-8") as text:
        sent = json.load(text)
    back = json.loads(json.dumps(Dashboard.from_json(json.loads(json.dumps(sent))), cls=JSONEncoder))
    for finding in lost(sent, back):
        findings += 1
        print(f"{file}: {finding}")
    print(f"{file}: {len(sent['panels'])} panels")
sys.exit(findings > 0)
