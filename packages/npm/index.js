import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { findBinary } from "./binary.js";
import { connect, Endpoint, instant } from "./connect.cjs";

export { connect };

const kept = 64 * 1024; // characters of the program's stderr
const asyncDispose = Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose");

// The programs that run, of every copy of this package in the process: two copies must not wait for each other's signal handlers.
const running = (globalThis[Symbol.for("mayfly.running")] ??= new Set());

function killAll() {
  for (const child of running) child.kill("SIGTERM");
}

const handlers = new Map(["SIGINT", "SIGTERM", "SIGHUP"].map((signal) => [signal, () => {
  if (process.listenerCount(signal) > 1) return; // the application handles the signal, and may need the server until it exits
  killAll();
  process.off(signal, handlers.get(signal));
  process.kill(process.pid, signal);
}]));

function track(child) {
  if (running.size === 0) {
    process.on("exit", killAll);
    for (const [signal, handler] of handlers) process.on(signal, handler);
  }
  running.add(child);
  child.once("exit", () => {
    running.delete(child);
    if (running.size > 0) return;
    process.off("exit", killAll);
    for (const [signal, handler] of handlers) process.off(signal, handler);
  });
}

export async function start(options = {}) {
  const { binary, dataDir, args = [], frozen = false, region = "us-east-1", timeout = 30_000 } = options;
  const first = options.start === undefined ? undefined : instant(options.start);
  const command = ["serve", ...(dataDir === undefined ? ["--memory"] : ["--data", dataDir]), "--port", "0", "--region", region];
  if (first !== undefined) command.push("--start", first);
  if (frozen) command.push("--frozen");
  const { MAYFLY_DATA, MAYFLY_MEMORY, MAYFLY_SERVE_DATA, MAYFLY_SERVE_MEMORY, ...env } = process.env; // dataDir decides
  const child = spawn(findBinary(binary), [...command, ...args], { env, stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
  const server = new Server(child, region);
  const late = new AbortController();
  try {
    await Promise.race([
      server._listen(late.signal),
      pause(timeout, undefined, { signal: late.signal }).then(() => { throw new Error(`mayfly was not ready after ${timeout} ms`); }),
    ]);
  } catch (error) {
    await server.stop();
    if (server.stderr) error.message += `\n${server.stderr.trimEnd()}`;
    throw error;
  } finally {
    late.abort();
  }
  server._release();
  return server;
}

class Server extends Endpoint {
  #child;
  #failed; // why the program could not be started
  #closed; // resolves when the program is gone and its output is read

  constructor(child, region) {
    super("", region);
    this.#child = child;
    this.stderr = "";
    this.#closed = new Promise((resolve) => {
      child.once("error", (error) => { this.#failed = error; resolve(); });
      child.once("close", resolve);
    });
    if (child.pid !== undefined) track(child);
    child.stderr.setEncoding("utf8").on("data", (text) => { this.stderr = (this.stderr + text).slice(-kept); });
  }

  // _listen reads the URL that the program prints, and waits until the server is ready.
  async _listen(signal) {
    const lines = createInterface({ input: this.#child.stdout });
    const url = await new Promise((resolve, reject) => {
      lines.on("line", (line) => {
        const found = /^(?:listening on |\{"msg":"listening","url":")(http:[^\s"]+)/.exec(line);
        if (found) resolve(found[1]);
      });
      this.#closed.then(() => {
        const { exitCode, signalCode } = this.#child;
        reject(this.#failed ?? new Error(`mayfly did not start: ${signalCode ? `signal ${signalCode}` : `exit code ${exitCode}`}`));
      });
    });
    this.url = url;
    while (!signal.aborted) {
      const answer = await fetch(`${url}/readyz`, { signal });
      await answer.text();
      if (answer.ok) return;
      await pause(20, undefined, { signal });
    }
  }

  // _release lets the process end while the program runs: the handler of "exit" stops it then.
  _release() {
    this.#child.unref();
    this.#child.stdout.unref();
    this.#child.stderr.unref();
  }

  get pid() {
    return this.#child.pid;
  }

  async stop() {
    const child = this.#child;
    if (child.pid === undefined) return;
    if (child.exitCode === null && child.signalCode === null) {
      child.ref();
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      const force = setTimeout(() => child.kill("SIGKILL"), 10_000);
      await exited;
      clearTimeout(force);
    }
    child.stdout.ref();
    child.stderr.ref();
    await this.#closed;
  }

  async [asyncDispose]() {
    await this.stop();
  }
}
