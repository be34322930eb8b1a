// Jest's globalSetup: one server for the run, whose address is in the environment of the tests. globals.mayfly of the project has the options of start.
import { start } from "./index.js";

export default async function setup(globalConfig, projectConfig) {
  const server = await start(projectConfig?.globals?.mayfly);
  Object.assign(process.env, server.env);
  globalThis[Symbol.for("mayfly.jest")] = server;
}
