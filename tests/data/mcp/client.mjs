// An MCP client on the official TypeScript libraries; the second argument tells which.

const [url, library] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } =
  library === "sdk"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      }
    : await import("@modelcontextprotocol/client");

const client = new Client({ name: "tests", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const called = await client.callTool({ name: "list_tables", arguments: {} });
const failed = await client.callTool({ name: "query_records", arguments: { table_name: "nosuch" } });
await client.ping();
const refused = await client.callTool({ name: "nope", arguments: {} }).then(
  () => null,
  (error) => error.message,
);
const names = tools.map((tool) => tool.name);
console.log(JSON.stringify([client.getServerVersion().name, names, called.content[0].text, refused, failed.isError, failed.content[0].text]));
await client.close();
