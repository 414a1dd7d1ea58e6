// Validates each ServiceMonitor among the documents on standard input (JSON lines) by the schema of the operator.
import { createInterface } from "node:readline";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";

let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const document = JSON.parse(line);
  if (document?.kind !== "ServiceMonitor") continue;
  new ServiceMonitor(document).validate();
  count += 1;
}
console.log(`${count} valid`);
process.exitCode = count > 0 ? 0 : 1;
