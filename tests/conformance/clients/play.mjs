// What every TypeScript client here does: play one episode of the demo, then give up a call of a slow tool and go on.
//
//     node CLIENT.mjs '{"modules": FOLDER, "demo": URL, "slow": URL, "seed": 1, "cells": [2, 3, 5, 8]}'
//
// prints one JSON line with what it saw, as play.py does. A client is a function `connect(require, url)` that gives an object
// with `listTools()`, `callTool(parameters, signal)` and `close()`; `require` resolves in the folder of the installed packages.

import { createRequire } from "node:module";
import path from "node:path";

const GIVE_UP_MS = 700;
const LIMIT_MS = 60_000;
const TRIES = 6;

class Agent {
  // A client and what a model does with it: it reads the schemas, and passes on the handle that they require.
  constructor(client) {
    this.client = client;
  }

  async learn() {
    const { tools } = await this.client.listTools();
    this.tools = Object.fromEntries(tools.map((tool) => [tool.name, tool.inputSchema]));
  }

  async call(name, given, signal) {
    const asked = this.tools[name].required?.includes("session_id") && this.handle !== undefined;
    const result = await this.client.callTool({ name, arguments: asked ? { ...given, session_id: this.handle } : given }, signal);
    if (result.isError) return { told: {}, pictures: [], failure: result.content[0].text };
    this.handle = result.structuredContent.session_id ?? this.handle;
    const pictures = result.content.filter((block) => block.type === "image").map((block) => block.mimeType);
    return { told: result.structuredContent, pictures, failure: "" };
  }
}

async function episode(agent, seed, cells) {
  await agent.learn();
  const turns = [await agent.call("reset", { seed })];
  for (const cell of cells) turns.push(await agent.call("step", { cell }));
  const state = await agent.call("state", {});
  return {
    tools: Object.keys(agent.tools),
    turns: turns.map(({ told }) => [told.reward, told.done]),
    board: state.told.state.board,
    pictures: turns.flatMap(({ pictures }) => pictures),
  };
}

async function interruption(agent) {
  await agent.learn();
  await agent.call("reset", {});
  const gaveUp = await outcome(agent, "wait", { seconds: 2 }, GIVE_UP_MS);
  const told = [];
  let notes = await outcome(agent, "note", { text: "after" }, LIMIT_MS);
  while (notes.failure && told.push(notes.failure) < TRIES) notes = await outcome(agent, "note", { text: "after" }, LIMIT_MS);
  const state = await agent.call("state", {});
  return { gave_up: gaveUp.failure, told, notes: notes.told.observation.result, steps: state.told.state.step_count };
}

async function outcome(agent, name, given, limit) {
  const signal = AbortSignal.timeout(limit);
  try {
    return await agent.call(name, given, signal);
  } catch (error) {
    if (signal.aborted) return { told: {}, failure: "timed out" };
    throw error;
  }
}

async function played(client, work) {
  try {
    return await work(new Agent(client));
  } finally {
    await client.close();
  }
}

export async function main(connect) {
  const target = JSON.parse(process.argv[2]);
  const require = createRequire(path.join(target.modules, "any.js"));
  const seen = await played(await connect(require, target.demo), (agent) => episode(agent, target.seed, target.cells));
  seen.interruption = await played(await connect(require, target.slow), interruption);
  console.log(JSON.stringify(seen));
}
