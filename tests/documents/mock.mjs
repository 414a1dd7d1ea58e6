// REST servers made from OpenAPI documents by Prism, for `tests/documents.rs`.
//
// Each line on standard input is a command, each line on standard output its answer as JSON:
//   open FILE   serves the document; {"port": …, "operations": [{"method", "path", "request", "response", "has_success"}]}
//   take        the calls since the last `take`: [{"operation", "status", "violations", "doubts"}], with the differences
//               of the request and of the response from the document
//   random      responds with values made from the schemas instead of examples, until `examples`
//   close       stops serving
//
// Credentials are not checked: the documents do not contain any.
import http from 'node:http';
import readline from 'node:readline';
import { createRequire } from 'node:module';

const require = createRequire(process.argv[2]);
const { createInstance, getHttpOperationsFromSpec } = require('@stoplight/prism-http');
const { createLogger } = require('@stoplight/prism-core');
const { default: route } = require('@stoplight/prism-http/dist/router/index.js');
const { serialize } = require('@stoplight/prism-http-server/dist/serialize.js');
const RefParser = require('@stoplight/json-schema-ref-parser');

const settings = {
  isProxy: false,
  validateRequest: true,
  validateResponse: true,
  checkSecurity: false,
  errors: false,
  mock: { dynamic: false },
};
const logger = createLogger('mock', { level: 'silent' });
// Warnings are about deprecated values.
const isError = ({ severity }) => severity === 0 || severity === 'Error';
const isRight = (either) => either._tag === 'Right';

/// Returns the path of the first server of an operation.
function basePath(document, operation) {
  if (document.swagger) return (document.basePath ?? '').replace(/\/+$/, '');
  const server = operation.servers?.[0];
  if (!server) return '';
  const url = server.url.replace(/\{([^}]*)\}/g, (_, name) => server.variables?.[name]?.default ?? '');
  return new URL(url, 'http://mock/').pathname.replace(/\/+$/, '');
}

function described(operation) {
  const types = (contents) => (contents ?? []).map((content) => content.mediaType);
  return {
    method: operation.method.toUpperCase(),
    path: operation.path,
    request: types(operation.request?.body?.contents),
    response: types(operation.responses.find(({ code }) => /^2/.test(code))?.contents),
    has_success: operation.responses.some(({ code }) => /^(2..|default)$/i.test(code)),
  };
}

function query(parameters) {
  const all = {};
  for (const name of parameters.keys()) {
    const values = parameters.getAll(name);
    all[name] = values.length === 1 ? values[0] : values;
  }
  return all;
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const type = request.headers['content-type'] ?? '';
  // Prism splits multipart bodies as text; bytes beyond ASCII keep their count in Latin-1.
  const isForm = type.startsWith('multipart/');
  const text = Buffer.concat(parts).toString(isForm ? 'latin1' : 'utf8');
  if (text === '') return null;
  return /^application\/(?:[^;]*\+)?json\b/.test(type) ? JSON.parse(text) : text;
}

/// Returns an operation without the optional parameters that a request does not have: Prism fails on absent lists and
/// objects of some styles.
function withoutAbsent(operation, { headers, url }) {
  const request = { ...operation.request };
  const kept = (name, present) => request[name]?.filter((one) => one.required || present(one));
  const names = Object.keys(url.query);
  request.headers = kept('headers', ({ name }) => name.toLowerCase() in headers);
  request.query = kept('query', ({ name }) => names.some((one) => one === name || one.startsWith(`${name}[`)));
  const isSpread = ({ style, explode }) => style === 'form' && explode;
  const spread = operation.request?.query?.filter((one) => isSpread(one) && !request.query.includes(one)) ?? [];
  request.query?.push(...spread);
  return { ...operation, request };
}

/// Returns a value without members `$ref: null`: Prism takes a property of this name for a reference, and generates null.
function withoutNullReferences(value) {
  if (Array.isArray(value)) return value.map(withoutNullReferences);
  if (value === null || typeof value !== 'object') return value;
  const members = Object.entries(value).filter(([name, member]) => !(name === '$ref' && member === null));
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNullReferences(member)]));
}

/// Removes them from a response, with what Prism says about them.
function repair({ output, validations }) {
  if (output.body === null || typeof output.body !== 'object') return;
  output.body = withoutNullReferences(output.body);
  validations.output = validations.output.filter(({ path }) => path?.at(-1) !== '$ref');
}

class Mock {
  calls = [];

  async open(file) {
    const document = await new RefParser().parse(file);
    // Prism takes operations without `consumes` for ones that accept no body.
    if (document.swagger) document.consumes ??= ['application/json'];
    const operations = await getHttpOperationsFromSpec(document);
    // OpenAPI 3.1 §4.8.12.2.1: parameters with these names are ignored.
    const ignored = ['accept', 'authorization', 'content-type'];
    for (const { request } of operations) {
      if (request?.headers) request.headers = request.headers.filter(({ name }) => !ignored.includes(name.toLowerCase()));
    }
    // Prism takes `*/*` for the name of a type, which no client accepts.
    for (const { responses } of operations) {
      for (const content of responses.flatMap(({ contents }) => contents ?? [])) {
        if (content.mediaType === '*/*') content.mediaType = 'application/json';
      }
    }
    this.operations = operations.map((operation) => ({ operation, base: basePath(document, operation) }));
    this.bases = [...new Set(this.operations.map(({ base }) => base))].sort((a, b) => b.length - a.length);
    this.prism = createInstance(settings, { logger });
    this.server = http.createServer((request, response) => {
      this.serve(request, response).catch((error) => {
        if (process.env.DEBUG) console.error(error.stack);
        this.calls.push({ operation: null, status: 500, violations: [`the mock fails: ${error.message}`] });
        response.writeHead(500).end();
      });
    });
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return { port: this.server.address().port, operations: operations.map(described) };
  }

  /// Finds the operation of a request, below the path of the server of that operation.
  find(method, pathname) {
    for (const base of this.bases) {
      if (!pathname.startsWith(`${base}/`)) continue;
      const path = pathname.slice(base.length);
      const below = this.operations.filter((one) => one.base === base).map((one) => one.operation);
      const found = route({ resources: below, input: { method, url: { path } } });
      if (isRight(found)) return { operation: found.right, path };
    }
    return null;
  }

  /// Returns the first response that the document itself accepts: its example, one made from the schema, one at random.
  async answer(input, operation) {
    let first;
    const random = { dynamic: true, ignoreExamples: true, seed: 'one' };
    const kinds = [{ dynamic: false }, { dynamic: false, ignoreExamples: true }, random];
    for (const mock of this.isRandom ? [random, { dynamic: false }] : kinds) {
      const result = await this.prism.request(input, [operation], { ...settings, mock })();
      if (isRight(result)) repair(result.right);
      // Its generator fails on some schemas.
      if (first && !isRight(result)) return first;
      if (!isRight(result) || result.right.validations.output.length === 0) return result;
      first ??= result;
    }
    return first;
  }

  async serve(request, response) {
    const { pathname, searchParams } = new URL(request.url, 'http://mock/');
    const method = request.method.toLowerCase();
    const body = await bodyOf(request);
    const found = this.find(method, pathname);
    if (!found) {
      this.calls.push({ operation: null, status: 404, violations: [`no operation for ${request.method} ${request.url}`] });
      response.writeHead(404).end();
      return;
    }
    const { operation, path } = found;
    const name = `${operation.method.toUpperCase()} ${operation.path}`;
    const input = { method, url: { path, query: query(searchParams) }, headers: request.headers, body };
    const result = await this.answer(input, withoutAbsent(operation, input));
    if (!isRight(result)) {
      const { status = 500, message, additional, name: kind } = result.left;
      const details = additional?.validation?.filter(isError).map((one) => `${(one.location ?? []).join('.')} ${one.message}`);
      // A valid request of an operation without responses.
      const isValid = kind?.endsWith('#NO_RESPONSE_RESPONSE_DEFINED');
      this.calls.push({ operation: name, status, violations: isValid ? [] : (details ?? [message]) });
      response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify({ details: details ?? message }));
      return;
    }
    const { output, validations } = result.right;
    const violations = validations.input.filter(isError).map((one) => `${(one.path ?? []).join('.')} ${one.message}`);
    const doubts = validations.output.map((one) => `${(one.path ?? []).join('.')} ${one.message}`);
    this.calls.push({ operation: name, status: output.statusCode, violations, doubts });
    for (const [field, value] of Object.entries(output.headers ?? {})) {
      if (value !== null && value !== undefined) response.setHeader(field, String(value).replace(/[^\t\x20-\x7e]/g, '?'));
    }
    response.writeHead(output.statusCode).end(serialize(output.body, response.getHeader('content-type')));
  }

  async close() {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

let mock;
const commands = {
  async open(file) {
    mock = new Mock();
    return mock.open(file);
  },
  async take() {
    const { calls } = mock;
    mock.calls = [];
    return calls;
  },
  async random() {
    mock.isRandom = true;
    return {};
  },
  async examples() {
    mock.isRandom = false;
    return {};
  },
  async close() {
    await mock.close();
    return {};
  },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [command, ...rest] = line.split(' ');
  const answer = await commands[command](rest.join(' ')).catch((error) => ({ error: error.message }));
  console.log(JSON.stringify(answer));
}
