#!/usr/bin/env node
// A first hour in JavaScript: sessions that end, and a handler of the stream.
//
// Needs mayfly on PATH and the AWS SDK: npm install --prefix examples. Run it in an empty directory.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { after, before, beforeEach, test } from "node:test";
import { DynamoDBClient, CreateTableCommand, UpdateTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";

let program, url, raw, db, handler;
const events = []; // that the function has received

const post = async (path, body = {}) => {
  const answer = await fetch(url + path, { method: "POST", body: JSON.stringify(body) });
  const result = await answer.json();
  assert.ok(answer.ok, result.error);
  return result;
};

// The function is an address that receives the event of Lambda's event source mapping.
before(async () => {
  handler = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    events.push(...JSON.parse(text).Records);
    response.end("{}");
  }).listen(0, "127.0.0.1");
  await once(handler, "listening");
  writeFileSync("targets.yaml", `targets:
  - arn: "arn:aws:lambda:*:*:function:ended"
    webhook: { url: "http://127.0.0.1:${handler.address().port}", mode: plain }
`);
  program = spawn("mayfly", ["serve", "--memory", "--port", "0", "--start", "2030-01-01T12:00:00Z", "--frozen",
    "--targets", "targets.yaml", "--log-format", "json"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: program.stdout })) {
    url = JSON.parse(line).url; // the one line of --log-format json
    break;
  }
  raw = new DynamoDBClient({ endpoint: url, region: "us-east-1", credentials: { accessKeyId: "any", secretAccessKey: "any" } });
  db = DynamoDBDocumentClient.from(raw);
});

after(async () => {
  program.kill();
  handler.close();
  handler.closeAllConnections();
});

// One server for all tests: each begins with an empty one, at noon of the first of January.
beforeEach(async () => {
  await post("/_mayfly/reset");
  events.length = 0;
  await raw.send(new CreateTableCommand({
    TableName: "sessions", BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [{ AttributeName: "user", AttributeType: "S" }, { AttributeName: "id", AttributeType: "S" }],
    KeySchema: [{ AttributeName: "user", KeyType: "HASH" }, { AttributeName: "id", KeyType: "RANGE" }],
    StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
  }));
  await raw.send(new UpdateTimeToLiveCommand({
    TableName: "sessions", TimeToLiveSpecification: { Enabled: true, AttributeName: "expires" },
  }));
  await promisify(execFile)("mayfly", ["trigger", "create", "--endpoint", url, "--table", "sessions", "--expired", "--function", "ended"]);
});

const begin = async (id, seconds) => {
  const { now_ms: now } = await post("/_mayfly/clock/advance", { by: 0 });
  await db.send(new PutCommand({ TableName: "sessions", Item: { user: "ada", id, expires: Math.floor(now / 1000) + seconds } }));
};
const session = (id) => db.send(new GetCommand({ TableName: "sessions", Key: { user: "ada", id } })).then((answer) => answer.Item);

test("a session ends after an hour, for every reader", async () => {
  await begin("phone", 3600);
  await begin("laptop", 7200);
  await post("/_mayfly/clock/advance", { by: "1h" });
  assert.equal(await session("phone"), undefined);
  assert.ok(await session("laptop"));
  const all = await db.send(new QueryCommand({
    TableName: "sessions", KeyConditionExpression: "#u = :u", ExpressionAttributeNames: { "#u": "user" }, ExpressionAttributeValues: { ":u": "ada" },
  }));
  assert.deepEqual(all.Items.map((item) => item.id), ["laptop"]);
});

test("the function hears of the end, with the old image", async () => {
  await begin("phone", 30 * 24 * 3600);
  const moved = await post("/_mayfly/clock/advance", { by: "30d" }); // returns when the function has answered
  assert.equal(moved.expired, 1);
  assert.equal(events.length, 1);
  assert.equal(events[0].eventName, "REMOVE");
  assert.equal(events[0].userIdentity.principalId, "dynamodb.amazonaws.com");
  assert.equal(events[0].dynamodb.OldImage.id.S, "phone");
});
