// A client of the matrix by the first major version of the official TypeScript library. Usage: client_first.mjs PEERS URL
import { answers, capabilities, report } from './features.mjs';
import { load } from './served.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const schemas = await load('@modelcontextprotocol/sdk/types.js');

const library = new Client({ name: 'eras', version: '1' }, { capabilities });
const client = {
  library,
  logs: [],
  updates: [],
  changes: [],
  modern: () => false,
  async call(name, given, { level, ...options } = {}) {
    if (level) await library.setLoggingLevel(level);
    return library.callTool({ name, arguments: given }, undefined, options);
  },
  async subscribe(uri) {
    await library.subscribeResource({ uri });
    return () => library.unsubscribeResource({ uri });
  },
};
library.setRequestHandler(schemas.ElicitRequestSchema, answers.elicits);
library.setRequestHandler(schemas.CreateMessageRequestSchema, answers.samples);
library.setRequestHandler(schemas.ListRootsRequestSchema, answers.roots);
library.setNotificationHandler(schemas.LoggingMessageNotificationSchema, ({ params }) => { client.logs.push(params.data); });
library.setNotificationHandler(schemas.ResourceUpdatedNotificationSchema, ({ params }) => { client.updates.push(params.uri); });
library.setNotificationHandler(schemas.ToolListChangedNotificationSchema, () => { client.changes.push('tools'); });
await library.connect(new StreamableHTTPClientTransport(new URL(process.argv[3])));
await report(client);
