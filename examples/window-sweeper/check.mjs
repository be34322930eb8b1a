// Runs the published sweeper and mayfly guard on the same data, and checks for each known flaw of the pattern whether it shows.
//
// The function gets the rule's events of the last minutes, and takes the time from them. Guard follows the endpoint's clock, by which these events are past, too.
import { createHash, randomUUID } from "node:crypto";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, PutCommand, ScanCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { now, until } from "../flaws.mjs";
import { Guard, Proxy, compare, deletions, refusal, removes, shared, showing } from "../guarded.mjs";
import { Loop } from "../lambda_loop.mjs";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({ endpoint: process.env.AWS_ENDPOINT_URL }));
const proxy = await Proxy.start();
process.env.AWS_ENDPOINT_URL = proxy.url; // the programs' endpoint from here on
const { expirationWindow, handler, put, renew } = await import("./published.mjs");

const MINUTE = 60;
const date = (seconds) => new Date(seconds * 1000);

// World is a table with an index of expiration windows, and one of the programs that delete from it. T is the end of a window, some minutes ago.
class World {
  table = "expirationTable-" + randomUUID().slice(0, 8);
  errors = []; // that the function has thrown
  guards = [];

  static async make(program, { sortKey, projection = "ALL", stream } = {}) {
    const w = new World();
    w.program = program;
    w.T = Math.floor((await now()) / MINUTE) * MINUTE - 5 * MINUTE;
    const attribute = (AttributeName, AttributeType) => ({ AttributeName, AttributeType });
    const key = (AttributeName, KeyType) => ({ AttributeName, KeyType });
    const { TableDescription } = await documents.send(
      new CreateTableCommand({
        TableName: w.table,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [attribute("itemId", "S"), attribute("expirationWindow", "S"), attribute("ttl", "N"), ...(sortKey ? [attribute(sortKey, "N")] : [])],
        KeySchema: [key("itemId", "HASH"), ...(sortKey ? [key(sortKey, "RANGE")] : [])],
        GlobalSecondaryIndexes: [
          { IndexName: "expirationWindowIndex", KeySchema: [key("expirationWindow", "HASH"), key("ttl", "RANGE")], Projection: { ProjectionType: projection } },
        ],
        ...(stream && { StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } }),
      }),
    );
    w.stream = TableDescription.LatestStreamArn;
    process.env.TABLE_NAME = w.table;
    proxy.reset();
    return w;
  }

  put = (itemId, at, more) => put(this.table, { itemId, ...more }, date(at));

  // sweep calls the function with the events of some minutes, or starts guard.
  sweep = (...minutes) => this.program.sweep(this, minutes);

  // gone returns whether an item is gone. It waits a moment for guard.
  gone = (itemId, more) => this.program.gone(async () => !(await this.get(itemId, more)));

  get = async (itemId, more) => (await documents.send(new GetCommand({ TableName: this.table, Key: { itemId, ...more }, ConsistentRead: true }))).Item;

  items = async () => (await documents.send(new ScanCommand({ TableName: this.table, ConsistentRead: true }))).Items;

  async end() {
    await Promise.all(this.guards.map((guard) => guard.stop()));
  }
}

const published = {
  async sweep(w, minutes) {
    for (const minute of minutes) await handler({ time: date(minute).toISOString() }).catch((error) => w.errors.push(error));
  },
  gone: (condition) => condition(),
};

const guard = {
  flags: ["--attribute", "ttl", "--strategy", "index", "--period", "1s", "--lease", "1s"],
  async sweep(w) {
    if (w.guards.length === 0) this.start(w);
  },
  start(w, ...more) {
    const one = new Guard(proxy, w.table, ...this.flags, ...more);
    w.guards.push(one);
    return one;
  },
  gone: (condition) => until(condition, 30_000),
};

const shows = showing(World);

shows(0, "items go up to a minute late", {}, async (w) => {
  const late = (swept, ttl) => swept - ttl > 5;
  if (w.program === published) {
    await w.put("a", w.T - 59);
    await w.sweep(w.T - MINUTE, w.T);
    return (await w.gone("a")) && late(w.T, w.T - 59);
  }
  const ttl = (await now()) + 4;
  await w.put("a", ttl);
  await w.sweep();
  const gone = await w.gone("a");
  return !gone || late(await now(), ttl);
});

shows(1, "an item whose TTL is on a full minute stays", {}, async (w) => {
  await w.put("a", w.T);
  await w.sweep(w.T, w.T + MINUTE, w.T + 2 * MINUTE);
  return !(await w.gone("a"));
});

shows(2, "of a window with more than a megabyte the rest stays", {}, async (w) => {
  for (let i = 0; i < 6; i++) await w.put(String(i), w.T - 30, { details: "x".repeat(300_000) });
  await w.sweep(w.T, w.T + MINUTE);
  return !(await w.program.gone(async () => (await w.items()).length === 0));
});

shows(3, "a run that is left out leaves its window for ever", {}, async (w) => {
  await w.put("first", w.T - 30);
  await w.sweep(w.T);
  if (!(await w.gone("first"))) throw new Error("the first item did not go");
  await Promise.all(w.guards.splice(0).map((one) => one.stop("SIGKILL")));
  await w.put("a", w.T + 30); // nothing runs at T + 1 min
  await w.sweep(w.T + 2 * MINUTE, w.T + 3 * MINUTE);
  return !(await w.gone("a"));
});

shows(4, "an item that has expired when it is written stays", {}, async (w) => {
  await w.put("first", w.T - 30);
  await w.sweep(w.T);
  if (!(await w.gone("first"))) throw new Error("the first item did not go");
  await w.put("a", w.T - 10 * MINUTE);
  await w.sweep(w.T + MINUTE, w.T + 2 * MINUTE);
  return !(await w.gone("a"));
});

shows(5, "an item that the index does not have yet when it is asked stays", {}, async (w) => {
  await w.put("a", w.T - 5);
  const shown = performance.now() + 2000; // until then the index lags behind
  proxy.around = async (request, next) => {
    const answer = await next(request);
    if (request.op === "Query" && request.body.IndexName && performance.now() < shown) Object.assign(answer.body, { Items: [], Count: 0 });
    return answer;
  };
  await w.sweep(w.T, w.T + MINUTE, w.T + 2 * MINUTE);
  return !(await w.gone("a"));
});

shows(6, "an item that is renewed while the sweeper works is deleted", {}, async (w) => {
  await w.put("a", w.T - 30);
  let tried = false;
  proxy.around = async (request, next) => {
    if (removes(request, w.table) && !tried) await w.put("a", (await now()) + 3600);
    const answer = await next(request);
    tried ||= removes(request, w.table);
    return answer;
  };
  await w.sweep(w.T);
  if (!(await until(() => tried))) throw new Error("nothing was deleted");
  return !(await w.get("a"));
});

shows(7, "when writes are throttled for a moment three attempts are gone at once, and the items stay", {}, async (w) => {
  await w.put("a", w.T - 30);
  let until;
  proxy.around = async (request, next) => {
    if (!removes(request, w.table)) return next(request);
    until ??= performance.now() + 500;
    if (performance.now() > until) return next(request);
    if (request.op === "BatchWriteItem") return { body: { UnprocessedItems: request.body.RequestItems } };
    return refusal("ThrottlingException", "Rate exceeded");
  };
  await w.sweep(w.T, w.T + MINUTE);
  return !(await w.gone("a"));
});

shows(8, "a missing permission is tried three times, and looks like throttling", {}, async (w) => {
  await w.put("a", w.T - 30);
  const message = "User: arn:aws:sts::000000000000:assumed-role/sweeper is not authorized to perform this";
  proxy.around = (request, next) => (removes(request, w.table) ? refusal("AccessDeniedException", message) : next(request));
  await w.sweep(w.T);
  const told = () => /AccessDenied|not authorized/.test(w.errors.join() + w.guards.map(({ said }) => said).join());
  return !(await w.program.gone(told));
});

shows(9, "all that goes within a minute lies in one partition of the index", {}, async (w) => {
  for (let i = 0; i < 20; i++) {
    await w.put(String(i), w.T - 30);
    if (w.program === guard) await shard(w, String(i), 4); // guard takes windows that end in the number of a shard
  }
  const partitions = new Set((await w.items()).map((item) => item.expirationWindow)).size;
  if (w.program === guard) guard.start(w, "--shards", "4");
  await w.sweep(w.T);
  const swept = await w.program.gone(async () => (await w.items()).length === 0);
  return !swept || partitions === 1;
});

// shard adds the number of a shard to the window of an item, as a writer would.
async function shard(w, itemId, shards) {
  const { expirationWindow } = await w.get(itemId);
  const number = createHash("sha256").update(itemId).digest()[0] % shards;
  const UpdateExpression = "SET expirationWindow = :window";
  await documents.send(
    new UpdateCommand({ TableName: w.table, Key: { itemId }, UpdateExpression, ExpressionAttributeValues: { ":window": `${expirationWindow}#${number}` } }),
  );
}

shows(10, "a date with milliseconds makes a window that nobody asks for", {}, async (w) => {
  await w.put("a", w.T - MINUTE + 0.5);
  await w.put("whole seconds", w.T + 3600);
  await w.sweep(w.T - MINUTE, w.T, w.T + MINUTE);
  return !(await w.gone("a"));
});

shows(11, "runs that overlap delete everything twice", {}, async (w) => {
  const count = 20;
  let at = w.T - 30;
  if (w.program === guard) {
    await w.put("later", w.T + 3600);
    for (let i = 0; i < 2; i++) guard.start(w, "--lease", "10s"); // a lease of a second moves when the machine is busy
    await shared(documents, w.table);
    at = (await now()) + 3;
  }
  for (let i = 0; i < count; i++) await w.put(String(i), at);
  let asked = 0;
  proxy.around = async (request, next) => {
    const answer = await next(request);
    if (w.program === published && request.op === "Query" && ++asked < 3) await until(() => asked >= 2); // both have their answer
    return answer;
  };
  await Promise.all([w.sweep(w.T), w.sweep(w.T)]);
  const gone = await w.program.gone(async () => (await w.items()).every(({ itemId }) => itemId === "later"));
  if (!gone) throw new Error(`the sweepers left items, after ${deletions(proxy.seen, w.table)} deletions`);
  return deletions(proxy.seen, w.table) >= 2 * count;
});

shows(12, "an item whose TTL is moved, but not its window, stays", {}, async (w) => {
  await w.put("a", w.T - 30);
  await renew(w.table, { itemId: "a" }, date(w.T + 30));
  await w.sweep(w.T, w.T + MINUTE, w.T + 2 * MINUTE);
  return !(await w.gone("a"));
});

shows(13, "items with a sort key cannot be deleted", { sortKey: "part" }, async (w) => {
  await w.put("a", w.T - 30, { part: 7 });
  await w.sweep(w.T, w.T + MINUTE);
  return !(await w.gone("a", { part: 7 }));
});

shows(14, "each write is paid twice, with the whole item in the index", { projection: "ALL" }, async (w) => {
  if (w.program === guard) Object.assign(w, await World.make(guard, { projection: "KEYS_ONLY" })); // all that guard needs
  const Item = { itemId: "a", ttl: w.T - 30, expirationWindow: expirationWindow(date(w.T - 30)), details: "x".repeat(3000) };
  const { ConsumedCapacity } = await documents.send(new PutCommand({ TableName: w.table, Item, ReturnConsumedCapacity: "INDEXES" }));
  await w.sweep(w.T);
  if (!(await w.gone("a"))) return true;
  const { Table, GlobalSecondaryIndexes } = ConsumedCapacity;
  return GlobalSecondaryIndexes.expirationWindowIndex.CapacityUnits >= Table.CapacityUnits;
});

shows(15, "an expiry looks like a user's deletion in the stream", { stream: true }, async (w) => {
  await w.put("a", w.T - 30);
  if (w.program === guard) guard.start(w, "--mark", "expiredAt");
  await w.sweep(w.T);
  if (!(await w.gone("a"))) return true;
  const records = [];
  await new Loop(w.stream, async (event) => void records.push(...event.Records)).drain();
  const { OldImage } = records.find(({ eventName }) => eventName === "REMOVE").dynamodb;
  return OldImage.expiredAt?.N !== OldImage.ttl.N;
});

await compare({ published, guard });
