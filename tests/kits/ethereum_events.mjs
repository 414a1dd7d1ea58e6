// Reads the subscriptions of the kit as event streams, and those of the node over a direct WebSocket, while blocks are
// made. Prints the events of both as JSON.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [url, socket, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const { JsonRpcProvider, WebSocketProvider, parseEther } = require('ethers');

const TRANSFERS = 3;
const WAIT_MS = 20000;

/** Reads an event stream, and returns its events, of which the list grows. */
async function stream(path, options = {}) {
  const events = [];
  const response = await fetch(`${url}${path}`, options);
  if (response.status !== 200) {
    throw new Error(`${path}: ${response.status} ${await response.text()}`);
  }
  (async () => {
    let text = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const line = text.slice(0, end).split('\n').find((line) => line.startsWith('data: '));
        text = text.slice(end + 2);
        if (line) events.push(JSON.parse(line.slice('data: '.length)));
      }
    }
  })().catch(() => {});
  return events;
}

/** Subscribes over the direct WebSocket, and returns the events, of which the list grows. */
async function direct(provider, params) {
  const events = [];
  const id = await provider.send('eth_subscribe', params);
  provider.websocket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(data);
    if (message.params?.subscription === id) events.push(message.params.result);
  });
  return events;
}

const post = (body) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const node = new WebSocketProvider(socket);
const filter = {};
const translated = {
  heads: await stream('/subscriptions/heads'),
  logs: await stream('/subscriptions/logs', post({ filter })),
  pending: await stream('/subscriptions/pending-transactions'),
};
const own = {
  heads: await direct(node, ['newHeads']),
  logs: await direct(node, ['logs', filter]),
  pending: await direct(node, ['newPendingTransactions']),
};

// JSON-RPC calls pass through the kit to the node.
const provider = new JsonRpcProvider(url, undefined, { cacheTimeout: -1, pollingInterval: 50 });
const signer = await provider.getSigner(0);
const [, second] = await provider.send('eth_accounts', []);
for (let sent = 0; sent < TRANSFERS; sent += 1) {
  await (await signer.sendTransaction({ to: second, value: parseEther('1') })).wait();
}
// PUSH1 1, PUSH1 0, PUSH1 0, LOG1: the constructor of a contract logs the topic 1.
await (await signer.sendTransaction({ data: '0x600160006000a100' })).wait();

const wanted = { heads: TRANSFERS + 1, logs: 1, pending: TRANSFERS + 1 };
const isComplete = (all) => Object.entries(wanted).every(([kind, count]) => all[kind].length >= count);
const until = Date.now() + WAIT_MS;
while (!(isComplete(translated) && isComplete(own)) && Date.now() < until) {
  await new Promise((resolve) => setTimeout(resolve, 20));
}
console.log(JSON.stringify({ direct: own, translated }));
process.exit(0);
