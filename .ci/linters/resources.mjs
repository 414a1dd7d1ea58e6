// Validates each ServiceMonitor and HTTPRoute among the documents on standard input (JSON lines) by their published
// schemas. Fails if there is none.
import { createInterface } from "node:readline";
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";

const schemas = { HTTPRoute, ServiceMonitor };
let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const document = JSON.parse(line);
  const schema = schemas[document?.kind];
  if (!schema) continue;
  new schema(document).validate();
  count += 1;
}
console.log(`${count} valid`);
process.exitCode = count > 0 ? 0 : 1;
