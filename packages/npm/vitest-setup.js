// Vitest's globalSetup: one server for the run, whose address is in the environment of the tests. test.provide.mayfly has the options of start.
import { start } from "./index.js";

export default async function setup(project) {
  const server = await start(project?.config?.provide?.mayfly);
  Object.assign(process.env, server.env);
  return () => server.stop();
}
