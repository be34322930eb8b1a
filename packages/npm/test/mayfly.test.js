// Needs MAYFLY_BINARY, the program to test. Uses the AWS SDK if MAYFLY_TEST_SDK names a directory whose node_modules has it.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { connect, start } from "../index.js";

assert.ok(process.env.MAYFLY_BINARY, "MAYFLY_BINARY names no program");
const run = promisify(execFile);
const command = fileURLToPath(new URL("../bin/mayfly.js", import.meta.url));
const library = new URL("../index.js", import.meta.url).href;
const scratch = mkdtempSync(join(tmpdir(), "mayfly-npm-"));
after(() => rmSync(scratch, { recursive: true }));

async function call(server, operation, input) {
  const answer = await fetch(server.url, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `DynamoDB_20120810.${operation}`,
      authorization: "AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
    },
    body: JSON.stringify(input),
  });
  const output = await answer.json();
  assert.ok(answer.ok, `${operation}: ${JSON.stringify(output)}`);
  return output;
}

const sessions = {
  TableName: "sessions",
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
  KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
};
const ttl = { TableName: "sessions", TimeToLiveSpecification: { Enabled: true, AttributeName: "expires" } };
const session = (expires) => ({ TableName: "sessions", Item: { id: { S: "s-1" }, expires: { N: String(expires) } } });
const key = { TableName: "sessions", Key: { id: { S: "s-1" } } };

function alive(pid) {
  try {
    if (process.platform === "linux" && / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) return false; // dead, and its parent has not noticed
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function gone(pid) {
  for (let i = 0; i < 500 && alive(pid); i++) await new Promise((done) => setTimeout(done, 20));
  return !alive(pid);
}

test("an item is gone when the clock reaches its deadline", async () => {
  const server = await start({ start: "2030-01-01T12:00:00Z", frozen: true });
  try {
    assert.equal((await server.clock.now()).toISOString(), "2030-01-01T12:00:00.000Z");
    await call(server, "CreateTable", sessions);
    await call(server, "UpdateTimeToLive", ttl);
    await call(server, "PutItem", session(Date.UTC(2030, 0, 1, 13) / 1000));
    await server.clock.advance("59m");
    assert.ok((await call(server, "GetItem", key)).Item);
    const moved = await server.clock.advance(60_000);
    assert.equal(moved.expired, 1);
    assert.equal(moved.unfinished, false);
    assert.equal((await call(server, "GetItem", key)).Item, undefined);
  } finally {
    await server.stop();
  }
});

test("a reset empties the server for every client, and puts the clock back", async () => {
  const server = await start({ start: "2030-01-01T12:00:00Z", frozen: true });
  try {
    const client = connect({ url: server.url });
    assert.deepEqual(client.clientConfig, server.clientConfig);
    assert.equal(client.port, server.port);
    for (let i = 0; i < 2; i++) {
      await call(server, "CreateTable", sessions);
      await client.clock.advance("1h");
      assert.equal((await client.reset()).now, "2030-01-01T12:00:00.000Z");
      assert.deepEqual((await call(client, "ListTables", {})).TableNames, []);
    }
    assert.throws(() => connect({ url: "" }), /connect needs a url/);
  } finally {
    await server.stop();
  }
});

test("the clock can be set, frozen and sped up", async () => {
  const server = await start({ start: new Date("2030-01-01T00:00:00Z") });
  try {
    assert.equal((await server.clock.freeze()).frozen, true);
    assert.equal((await server.clock.set("2030-02-01T00:00:00Z")).now, "2030-02-01T00:00:00.000Z");
    assert.equal((await server.clock.set(new Date("2030-03-01T00:00:00Z"))).now, "2030-03-01T00:00:00.000Z");
    assert.equal((await server.clock.set(Date.UTC(2030, 3, 1), { limit: "1m" })).now, "2030-04-01T00:00:00.000Z");
    assert.equal((await server.clock.rate(60)).rate, 60);
    assert.equal((await server.clock.state()).frozen, false);
    await assert.rejects(server.clock.set("2029-01-01T00:00:00Z"), /mayfly's clock: set to 2029.* \(HTTP 409\)/);
  } finally {
    await server.stop();
  }
});

test("two servers run at a time, and stop", async () => {
  const [one, two] = await Promise.all([start(), start({ region: "eu-west-1" })]);
  assert.notEqual(one.port, two.port);
  assert.equal(one.url, `http://127.0.0.1:${one.port}`);
  assert.deepEqual(two.clientConfig, { endpoint: two.url, region: "eu-west-1", credentials: { accessKeyId: "any", secretAccessKey: "any" } });
  assert.equal(two.env.AWS_ENDPOINT_URL, two.url);
  assert.match((await call(two, "CreateTable", sessions)).TableDescription.TableArn, /:eu-west-1:/);
  assert.deepEqual((await call(one, "ListTables", {})).TableNames, []);
  await one.stop();
  await one.stop();
  assert.equal(alive(one.pid), false);
  assert.deepEqual((await call(two, "ListTables", {})).TableNames, ["sessions"]);
  await two[Symbol.asyncDispose ?? Symbol.for("nodejs.asyncDispose")]();
  assert.equal(alive(two.pid), false);
  for (const event of ["exit", "SIGTERM"]) assert.equal(process.listeners(event).filter((f) => f.toString().includes("killAll")).length, 0);
});

test("a directory keeps the data", async () => {
  const dataDir = join(scratch, "data");
  process.env.MAYFLY_DATA = join(scratch, "other"); // ignored: the options decide
  try {
    let server = await start({ dataDir });
    await call(server, "CreateTable", sessions);
    await server.stop();
    server = await start({ dataDir, args: ["--clock-control"], frozen: true });
    assert.deepEqual((await call(server, "ListTables", {})).TableNames, ["sessions"]);
    assert.equal((await server.clock.state()).frozen, true);
    await server.stop();
    server = await start();
    assert.deepEqual((await call(server, "ListTables", {})).TableNames, []);
    await server.stop();
  } finally {
    delete process.env.MAYFLY_DATA;
  }
});

test("a failed start carries the program's stderr", async () => {
  await assert.rejects(start({ args: ["--shards", "none"] }), /^Error: mayfly did not start: exit code \d+\nmayfly: --shards: /);
  await assert.rejects(start({ start: "tomorrow" }), /invalid time "tomorrow"; use 2030-01-01T12:00:00Z/);
  await assert.rejects(start({ timeout: 0 }), /mayfly was not ready after 0 ms/);
});

test("a missing program is an error that names the page to install it", async () => {
  const install = "install it as https://github.com/mayflydb/mayfly#install describes, or set MAYFLY_BINARY to its path";
  await assert.rejects(start({ binary: "/none/mayfly" }), { message: `the option binary names "/none/mayfly", which is not an executable file; ${install}` });

  // A script on PATH, as npm's link to this package's own command, is not the program.
  const link = join(scratch, "mayfly");
  writeFileSync(link, "#!/bin/sh\nexit 1\n");
  chmodSync(link, 0o755);
  const env = { PATH: scratch };
  await assert.rejects(run(process.execPath, [command, "--version"], { env }), { code: 127, stderr: `mayfly: the program mayfly is not on PATH; ${install}\n` });
  env.MAYFLY_BINARY = "none";
  await assert.rejects(run(process.execPath, [command], { env }), { stderr: `mayfly: MAYFLY_BINARY names "none", which is not an executable file; ${install}\n` });
});

test("the server stops with its process", async (t) => {
  const program = (end) => `const { start } = await import(${JSON.stringify(library)}); const server = await start(); console.log(server.pid); ${end}`;
  const parent = (end) => spawn(process.execPath, ["--input-type=module", "-e", program(end)], { stdio: ["ignore", "pipe", "inherit"] });
  for (const [name, end, signal, code] of [
    ["at its end", "", null, 0],
    ["by process.exit", "process.exit(3)", null, 3],
    ["by an error", "process.on('uncaughtException', () => process.exit(4)); throw new Error()", null, 4],
    ["by SIGTERM", "setInterval(() => {}, 1000)", "SIGTERM", null],
    ["by SIGINT", "setInterval(() => {}, 1000)", "SIGINT", null],
    ["by its own handler", "setInterval(() => {}, 1000); process.on('SIGTERM', () => process.exit(5))", "SIGTERM", 5],
  ]) {
    await t.test(name, async () => {
      const child = parent(end);
      const exited = once(child, "exit");
      const pid = Number(String((await once(child.stdout, "data"))[0]));
      assert.ok(pid > 0);
      if (signal) setTimeout(() => child.kill(signal), 50);
      assert.deepEqual(await exited, code === null ? [null, signal] : [code, null]);
      assert.ok(await gone(pid));
    });
  }
});

test("the command runs the program", async () => {
  const { stdout } = await run(process.execPath, [command, "--version"]);
  assert.equal(stdout, (await run(process.env.MAYFLY_BINARY, ["--version"])).stdout);
  await assert.rejects(run(process.execPath, [command, "serve", "--port", "none"]), (error) => error.code > 0 && error.code < 126 && /--port/.test(error.stderr));

  const child = spawn(process.execPath, [command, "serve", "--memory", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let output = "";
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    output += text;
    if (/listening on http:\S+\n/.test(output)) break;
  }
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
});

const sdk = process.env.MAYFLY_TEST_SDK;
if (sdk) {
  test("a client of the AWS SDK uses clientConfig", async () => {
    const path = createRequire(pathToFileURL(join(sdk, "package.json"))).resolve("@aws-sdk/client-dynamodb");
    const { CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand, UpdateTimeToLiveCommand } = createRequire(import.meta.url)(path);
    const server = await start({ start: "2030-01-01T12:00:00Z", frozen: true });
    const client = new DynamoDBClient(server.clientConfig);
    try {
      await client.send(new CreateTableCommand(sessions));
      await client.send(new UpdateTimeToLiveCommand(ttl));
      await client.send(new PutItemCommand(session((await server.clock.now()).getTime() / 1000 + 60)));
      assert.ok((await client.send(new GetItemCommand(key))).Item);
      await server.clock.advance("1m");
      assert.equal((await client.send(new GetItemCommand(key))).Item, undefined);
    } finally {
      client.destroy();
      await server.stop();
    }
  });
}
