// Evaluates flags with the provider of OpenFeature, and prints the results as JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, token, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const { OpenFeature } = require('@openfeature/server-sdk');
const { OFREPProvider } = require('@openfeature/ofrep-provider');

const headers = [['authorization', `Bearer ${token}`]];
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: url, headers }));
const client = OpenFeature.getClient();
const told = ({ value, variant, reason, errorCode }) => ({
  value,
  variant: variant ?? null,
  reason: reason ?? null,
  error: errorCode ?? null,
});

const results = {};
for (let number = 0; number < 20; number += 1) {
  const context = { targetingKey: `device-${number}`, client: 'ios-app', plan: { size: 1 } };
  results[`device-${number}`] = [
    told(await client.getStringDetails('stage:items.read', 'none', context)),
    told(await client.getBooleanDetails('new:items.read', false, context)),
  ];
}
const regional = { headers: { 'x-region': 'eu-1' } };
results.flag = told(await client.getObjectDetails('flag:half', {}, {}));
results.default = told(await client.getStringDetails('stage:items.read', 'none', {}));
results.regional = told(await client.getBooleanDetails('new:items.read', false, regional));
results.missing = told(await client.getBooleanDetails('new:nothing', true, {}));
results.keyless = told(await client.getBooleanDetails('new:items.read', true, { client: 'ios-app' }));
results.unknown = told(await client.getBooleanDetails('new:items.read', true, { targetingKey: 'a', client: 'nobody' }));
console.log(JSON.stringify(results));
