// The command line of the MCP Inspector as a client of the matrix, one process for each feature that it has.
// Usage: client_inspector.mjs PEERS URL ERA
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const [peers, url, era] = process.argv.slice(2);
const program = join(dirname(peers), 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const home = mkdtempSync(join(tmpdir(), 'inspector-'));

async function run(method, ...options) {
  const fixed = ['--cli', '--quiet', '--format', 'json', '--transport', 'http', '--server-url', url, '--protocol-era', era];
  const given = [program, ...fixed, '--method', method, ...options];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, given, {
    env: { ...process.env, HOME: home },
    timeout: 30_000,
  }).catch((error) => error);
  const { result, error } = JSON.parse(stdout || stderr);
  if (error) throw new Error(error.message);
  return result;
}

const call = (name, given) => run('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(given));

const features = {
  tools: async () => (await run('tools/list')).tools.map(({ name }) => name),
  call: async () => (await call('add', { a: 1, b: 2 })).content[0].text,
  structured: async () => (await call('add', { a: 1, b: 2 })).structuredContent,
  async is_error() {
    const { isError, content } = await call('fail', {});
    return [isError, content[0].text];
  },
  resources: async () => (await run('resources/list')).resources.map(({ uri }) => uri),
  read: async () => (await run('resources/read', '--uri', 'test://plain')).contents[0].text,
  templates: async () => (await run('resources/templates/list')).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  read_template: async () => (await run('resources/read', '--uri', 'test://item/7')).contents[0].text,
  prompts: async () => (await run('prompts/list')).prompts.map(({ name }) => name),
  prompt: async () =>
    (await run('prompts/get', '--prompt-name', 'greet', '--prompt-args', 'name=Ada')).messages[0].content.text,
};

for (const [feature, use] of Object.entries(features)) {
  const line = await use().then(
    (value) => ({ feature, value }),
    (error) => ({ feature, failed: `${error.name}: ${error.message}`.slice(0, 300) }),
  );
  console.log(JSON.stringify(line));
}
rmSync(home, { recursive: true });
