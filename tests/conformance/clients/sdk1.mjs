// @modelcontextprotocol/sdk 1: the handshake.

import { main } from "./play.mjs";

await main(async (require, url) => {
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client({ name: "sdk1", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return {
    listTools: () => client.listTools(),
    callTool: (parameters, signal) => client.callTool(parameters, undefined, { signal }),
    close: () => client.close(),
  };
});
