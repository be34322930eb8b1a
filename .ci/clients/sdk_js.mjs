// Uses the endpoint named by MAYFLY_ENDPOINT as a JavaScript application would, and exits non-zero when something is not as it should be.
// Credentials and region are the usual AWS_* variables, with made-up ones where they are not set.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  ConditionalCheckFailedException,
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTimeToLiveCommand,
  DuplicateItemException,
  DynamoDBClient,
  ResourceInUseException,
  ResourceNotFoundException,
  TransactionCanceledException,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
  waitUntilTableNotExists,
} from "@aws-sdk/client-dynamodb";
import { DescribeStreamCommand, DynamoDBStreamsClient, GetRecordsCommand, GetShardIteratorCommand } from "@aws-sdk/client-dynamodb-streams";
import {
  BatchExecuteStatementCommand,
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  DynamoDBDocumentClient,
  ExecuteStatementCommand,
  ExecuteTransactionCommand,
  GetCommand,
  paginateQuery,
  PutCommand,
  ScanCommand,
  TransactGetCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";

assert.ok(process.env.MAYFLY_ENDPOINT, "MAYFLY_ENDPOINT names no endpoint");
const settings = {
  endpoint: process.env.MAYFLY_ENDPOINT,
  region: process.env.AWS_REGION ?? "us-east-1",
  credentials: {
    accessKeyId: process.env.AWS_ACCESS_KEY_ID ?? "any",
    secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY ?? "any",
  },
  maxAttempts: 1,
};
const db = new DynamoDBClient(settings);
const documents = DynamoDBDocumentClient.from(db);
const streams = new DynamoDBStreamsClient(settings);
const TableName = "js-" + randomUUID();

const checked = (what) => console.log("javascript:", what);

// until waits for what happens behind the endpoint's answers.
async function until(what, condition) {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await pause(20)) {
    const answer = await condition();
    if (answer) return answer;
  }
  assert.fail(`${what}: not after 30 s`);
}

async function create() {
  const request = new CreateTableCommand({
    TableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [
      { AttributeName: "pk", AttributeType: "S" },
      { AttributeName: "sk", AttributeType: "N" },
      { AttributeName: "kind", AttributeType: "S" },
    ],
    KeySchema: [
      { AttributeName: "pk", KeyType: "HASH" },
      { AttributeName: "sk", KeyType: "RANGE" },
    ],
    GlobalSecondaryIndexes: [
      { IndexName: "byKind", KeySchema: [{ AttributeName: "kind", KeyType: "HASH" }], Projection: { ProjectionType: "KEYS_ONLY" } },
    ],
    StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
  });
  const { TableDescription } = await db.send(request);
  await waitUntilTableExists({ client: db, maxWaitTime: 60, minDelay: 1, maxDelay: 1 }, { TableName });
  await assert.rejects(db.send(request), ResourceInUseException);
  checked("CreateTable with an index and a stream; the waiter; ResourceInUseException");
  return TableDescription.LatestStreamArn;
}

async function enableTTL() {
  const TimeToLiveSpecification = { Enabled: true, AttributeName: "expires" };
  const answer = await db.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
  assert.deepEqual(answer.TimeToLiveSpecification, TimeToLiveSpecification);
  await until("TTL", async () => {
    const { TimeToLiveDescription } = await db.send(new DescribeTimeToLiveCommand({ TableName }));
    return TimeToLiveDescription.TimeToLiveStatus === "ENABLED" && TimeToLiveDescription.AttributeName === "expires";
  });
  checked("UpdateTimeToLive, DescribeTimeToLive");
}

async function singleItems() {
  const Key = { pk: "a", sk: 1 };
  const Item = { ...Key, n: 12.5, yes: true, nothing: null, text: "é 🦋", raw: new Uint8Array([0, 255]), tags: new Set(["x", "y"]), deep: { list: [1, "two", [3]] } };
  await documents.send(new PutCommand({ TableName, Item, ConditionExpression: "attribute_not_exists(pk)" }));
  const got = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
  assert.deepEqual(got.Item, Item);
  const { Attributes } = await documents.send(
    new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: "SET deep.#l[1] = :two ADD n :n REMOVE nothing",
      ExpressionAttributeNames: { "#l": "list" },
      ExpressionAttributeValues: { ":two": 2, ":n": 0.5 },
      ReturnValues: "ALL_NEW",
    }),
  );
  assert.deepEqual([Attributes.n, Attributes.deep.list, "nothing" in Attributes], [13, [1, 2, [3]], false]);
  await assert.rejects(
    documents.send(
      new PutCommand({ TableName, Item: Key, ConditionExpression: "attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure: "ALL_OLD" }),
    ),
    (error) => error instanceof ConditionalCheckFailedException && error.Item.n.N === "13",
  );
  const gone = await documents.send(new DeleteCommand({ TableName, Key, ReturnValues: "ALL_OLD" }));
  assert.equal(gone.Attributes.n, 13);
  assert.equal((await documents.send(new GetCommand({ TableName, Key }))).Item, undefined);
  checked("Put, Get, Update, Delete; ConditionalCheckFailedException with its item");
}

async function manyItems() {
  const items = Array.from({ length: 25 }, (_, sk) => ({ pk: "b", sk, kind: sk % 2 ? "odd" : "even" }));
  const { UnprocessedItems } = await documents.send(
    new BatchWriteCommand({ RequestItems: { [TableName]: items.map((Item) => ({ PutRequest: { Item } })) } }),
  );
  assert.deepEqual(UnprocessedItems ?? {}, {});
  const seen = [];
  const query = { TableName, KeyConditionExpression: "pk = :p AND sk >= :s", ExpressionAttributeValues: { ":p": "b", ":s": 5 }, ScanIndexForward: false };
  for await (const page of paginateQuery({ client: documents, pageSize: 6 }, query)) {
    seen.push(...page.Items.map((item) => item.sk));
  }
  assert.deepEqual(seen, items.map((item) => item.sk).reverse().slice(0, 20));
  await until("the index", async () => {
    const { Count } = await documents.send(new ScanCommand({ TableName, IndexName: "byKind", Select: "COUNT" }));
    return Count === 25;
  });
  const { Count, ScannedCount } = await documents.send(
    new ScanCommand({ TableName, FilterExpression: "kind = :k", ExpressionAttributeValues: { ":k": "odd" }, Select: "COUNT" }),
  );
  assert.deepEqual([Count, ScannedCount], [12, 25]);
  const { Responses } = await documents.send(
    new BatchGetCommand({ RequestItems: { [TableName]: { Keys: [{ pk: "b", sk: 3 }, { pk: "b", sk: 300 }] } } }),
  );
  assert.deepEqual(Responses[TableName], [items[3]]);
  checked("BatchWrite, paginateQuery, Scan of table and index, BatchGet");
}

async function transactions() {
  const first = { Put: { TableName, Item: { pk: "t", sk: 1 }, ConditionExpression: "attribute_not_exists(pk)" } };
  const second = { Update: { TableName, Key: { pk: "t", sk: 2 }, UpdateExpression: "ADD n :one", ExpressionAttributeValues: { ":one": 1 } } };
  const ClientRequestToken = randomUUID();
  for (let i = 0; i < 2; i++) await documents.send(new TransactWriteCommand({ TransactItems: [first, second], ClientRequestToken }));
  await assert.rejects(
    documents.send(new TransactWriteCommand({ TransactItems: [second, first] })),
    (error) =>
      error instanceof TransactionCanceledException && error.CancellationReasons.map((reason) => reason.Code).join() === "None,ConditionalCheckFailed",
  );
  const { Responses } = await documents.send(
    new TransactGetCommand({ TransactItems: [{ Get: { TableName, Key: { pk: "t", sk: 2 } } }, { Get: { TableName, Key: { pk: "t", sk: 3 } } }] }),
  );
  assert.deepEqual([Responses[0].Item, Responses[1].Item], [{ pk: "t", sk: 2, n: 1 }, undefined]);
  checked("TransactWrite with a token, TransactionCanceledException, TransactGet");
}

async function statements() {
  const Statement = `INSERT INTO "${TableName}" VALUE {'pk': ?, 'sk': ?}`;
  await documents.send(new ExecuteStatementCommand({ Statement, Parameters: ["sql", 1] }));
  await assert.rejects(documents.send(new ExecuteStatementCommand({ Statement, Parameters: ["sql", 1] })), DuplicateItemException);
  const one = `FROM "${TableName}" WHERE pk = 'sql' AND sk = 1`;
  const { Responses } = await documents.send(new BatchExecuteStatementCommand({ Statements: [{ Statement: `SELECT sk ${one}` }] }));
  assert.deepEqual(Responses[0].Item, { sk: 1 });
  await documents.send(new ExecuteTransactionCommand({ TransactStatements: [{ Statement: `DELETE ${one}` }] }));
  assert.deepEqual((await documents.send(new ExecuteStatementCommand({ Statement: `SELECT * ${one}` }))).Items, []);
  checked("ExecuteStatement, DuplicateItemException, BatchExecuteStatement, ExecuteTransaction");
}

async function errors() {
  await assert.rejects(documents.send(new GetCommand({ TableName: TableName + "-none", Key: { pk: "a" } })), ResourceNotFoundException);
  await assert.rejects(documents.send(new ScanCommand({ TableName, FilterExpression: "name = pk" })), {
    name: "ValidationException",
    message: "Invalid FilterExpression: Attribute name is a reserved keyword; reserved keyword: name",
  });
  checked("errors by class");
}

async function expiryAndStream(StreamArn) {
  const Key = { pk: "gone", sk: 1 };
  await documents.send(new PutCommand({ TableName, Item: { ...Key, expires: Math.floor(Date.now() / 1000) - 1 } }));
  await until("expiry", async () => !(await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }))).Item);
  const removal = await until("the record of the removal", async () =>
    (await recordsOf(StreamArn)).find((record) => record.eventName === "REMOVE" && record.dynamodb.Keys.pk.S === "gone"),
  );
  assert.deepEqual(removal.userIdentity, { Type: "Service", PrincipalId: "dynamodb.amazonaws.com" });
  checked("an item expires, and its removal is in the stream, marked as the service's");
}

// recordsOf gives all records of a stream, shard by shard.
async function recordsOf(StreamArn) {
  const records = [];
  const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
  for (const { ShardId } of StreamDescription.Shards) {
    let { ShardIterator } = await streams.send(new GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" }));
    while (ShardIterator) {
      const page = await streams.send(new GetRecordsCommand({ ShardIterator }));
      records.push(...page.Records);
      ShardIterator = page.Records.length ? page.NextShardIterator : undefined;
    }
  }
  return records;
}

const stream = await create();
try {
  await enableTTL();
  await singleItems();
  await manyItems();
  await transactions();
  await statements();
  await errors();
  await expiryAndStream(stream);
} finally {
  await db.send(new DeleteTableCommand({ TableName }));
}
await waitUntilTableNotExists({ client: db, maxWaitTime: 60, minDelay: 1, maxDelay: 1 }, { TableName });
checked("DeleteTable; the waiter");
