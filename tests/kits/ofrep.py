"""Evaluates flags with the provider of OpenFeature, and prints the results as JSON."""

import json
import sys

from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

url, token = sys.argv[1:]
headers = {"authorization": f"Bearer {token}"}
api.set_provider(OFREPProvider(url, headers_factory=lambda: headers))
client = api.get_client()


def told(details):
    code = details.error_code and details.error_code.value
    reason = details.reason and str(details.reason.value if hasattr(details.reason, "value") else details.reason)
    return {"value": details.value, "variant": details.variant, "reason": reason, "error": code}


results = {}
for number in range(20):
    context = EvaluationContext(f"device-{number}", {"client": "ios-app", "plan": {"size": 1}})
    results[f"device-{number}"] = [
        told(client.get_string_details("stage:items.read", "none", context)),
        told(client.get_boolean_details("new:items.read", False, context)),
    ]
other = EvaluationContext(None, {})
results["flag"] = told(client.get_object_details("flag:half", {}, other))
results["default"] = told(client.get_string_details("stage:items.read", "none", other))
results["regional"] = told(
    client.get_boolean_details("new:items.read", False, EvaluationContext(None, {"headers": {"x-region": "eu-1"}}))
)
results["missing"] = told(client.get_boolean_details("new:nothing", True, other))
results["keyless"] = told(client.get_boolean_details("new:items.read", True, EvaluationContext(None, {"client": "ios-app"})))
results["unknown"] = told(client.get_boolean_details("new:items.read", True, EvaluationContext("a", {"client": "nobody"})))
print(json.dumps(results, sort_keys=True))
