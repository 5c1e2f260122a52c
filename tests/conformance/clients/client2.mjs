// @modelcontextprotocol/client 2: asks which revision is spoken, and takes the newest.

import { main } from "./play.mjs";

await main(async (require, url) => {
  const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
  const client = new Client({ name: "client2", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    listTools: () => client.listTools(),
    callTool: (parameters, signal) => client.callTool(parameters, { signal }),
    close: () => client.close(),
  };
});
