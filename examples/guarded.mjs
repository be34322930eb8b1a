// Shared by the checks of the sweepers: a proxy in front of the endpoint, which delays, refuses and counts requests, and mayfly guard as a process behind it.
// The published sweepers and guard reach the endpoint only through the proxy. The checks themselves reach it directly.
import { spawn } from "node:child_process";
import http from "node:http";
import { crc32 } from "node:zlib";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { flaw, run, until } from "./flaws.mjs";

const endpoint = process.env.AWS_ENDPOINT_URL;

// Proxy forwards requests. It calls around with each request, { op, body }, and a function that forwards it. The result, { status, body }, is the answer.
export class Proxy {
  around = (request, next) => next(request);
  seen = []; // { op, body } of each request

  static async start() {
    const proxy = new Proxy();
    proxy.server = http.createServer((request, response) => proxy.serve(request, response));
    await new Promise((ready) => proxy.server.listen(0, "127.0.0.1", ready));
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  async serve(request, response) {
    const chunks = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return; // the client was killed
    }
    const text = Buffer.concat(chunks).toString();
    const op = (request.headers["x-amz-target"] ?? "").split(".").pop();
    const asked = { op, body: text ? JSON.parse(text) : {} };
    this.seen.push(asked);
    const next = async (sent) => {
      const { host, connection, "content-length": length, ...headers } = request.headers;
      const answer = await fetch(endpoint + request.url, { method: request.method, headers, body: JSON.stringify(sent.body) });
      return { status: answer.status, body: await answer.json(), date: answer.headers.get("date") };
    };
    try {
      const { status = 200, body, date } = await this.around(asked, next);
      if (date) response.setHeader("date", date);
      const text = JSON.stringify(body);
      response.writeHead(status, { "content-type": "application/x-amz-json-1.0", "x-amz-crc32": crc32(text) }).end(text);
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  }

  // reset forgets the requests so far, and forwards all later ones unchanged.
  reset() {
    this.seen = [];
    this.around = (request, next) => next(request);
  }

  count = (matches) => this.seen.filter(matches).length;
}

// refusal returns an error answer of DynamoDB.
export const refusal = (type, message, status = 400) => ({ status, body: { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message } });

// removes returns whether a request deletes items of a table. Guard's own tables, such as leases, do not count.
export const removes = ({ op, body }, table) =>
  (op === "DeleteItem" && body.TableName === table) ||
  (op === "BatchWriteItem" && (body.RequestItems[table] ?? []).some(({ DeleteRequest }) => DeleteRequest)) ||
  (op === "TransactWriteItems" && body.TransactItems.some(({ Delete }) => Delete?.TableName === table));

// deletions counts the keys of a table that requests delete.
export const deletions = (requests, table) =>
  requests.reduce((sum, { op, body }) => {
    if (op === "DeleteItem") return sum + (body.TableName === table ? 1 : 0);
    if (op === "BatchWriteItem") return sum + (body.RequestItems[table] ?? []).filter(({ DeleteRequest }) => DeleteRequest).length;
    if (op === "TransactWriteItems") return sum + body.TransactItems.filter(({ Delete }) => Delete?.TableName === table).length;
    return sum;
  }, 0);

const running = new Set();
process.on("exit", () => running.forEach((guard) => guard.kill("SIGKILL")));

// Guard is a process of mayfly guard for one table.
export class Guard {
  said = "";

  constructor(proxy, table, ...flags) {
    this.process = spawn(process.env.MAYFLY, ["guard", "--endpoint", proxy.url, "--table", table, "--accept-overdue", "any", ...flags], {
      env: { ...process.env, AWS_ENDPOINT_URL: proxy.url, MAYFLY: "" },
    });
    running.add(this.process);
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on("data", (data) => (this.said += data));
    this.ended = new Promise((end) => this.process.on("exit", (code) => end(code)));
    this.ended.then(() => running.delete(this.process));
  }

  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    await this.ended;
  }

  // says waits until the process has printed a text.
  says = (text) => until(() => this.said.includes(text));
}

// shared waits until the leases show that two guards share a table.
export async function shared(documents, table) {
  const owners = async () => {
    const { Items } = await documents.send(new ScanCommand({ TableName: "mayfly.leases", ConsistentRead: true })).catch(() => ({ Items: [] }));
    const rows = Items.filter(({ consumer, owner, shard }) => consumer.includes(`/${table}/`) && owner && /^(sweep|patrol)/.test(shard));
    return new Set(rows.map(({ owner }) => owner)).size;
  };
  if (!(await until(async () => (await owners()) === 2))) throw new Error("the guards do not share the work");
}

// showing returns a function that declares a flaw of the published sweeper that guard lacks. The scenario gets a new world, and returns whether the flaw shows.
export const showing = (World) => (number, title, options, scenario) =>
  flaw(number, title, { published: true, guard: false }, async (program) => {
    const w = await World.make(program, options);
    try {
      return await scenario(w);
    } finally {
      await w.end();
    }
  });

// compare plays all scenarios with the published sweeper and with guard, or only with the one that PROGRAMS names.
export function compare(programs) {
  const chosen = process.env.PROGRAMS?.split(",") ?? Object.keys(programs);
  return run(Object.fromEntries(chosen.map((name) => [name, programs[name]])), { frozen: false });
}
