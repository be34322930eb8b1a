// Runs the published sweeper and mayfly guard on the same data, and checks for each known flaw of the pattern whether it shows.
//
// invoke.py calls the function at the instants of the last minutes, as the schedule would have. Guard follows the endpoint's clock, by which these instants are past, too.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateTableCommand, DynamoDBClient, TagResourceCommand, UpdateTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { BatchWriteCommand, DynamoDBDocumentClient, GetCommand, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { now, until } from "../flaws.mjs";
import { Guard, Proxy, compare, deletions, refusal, removes, shared, showing } from "../guarded.mjs";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const proxy = await Proxy.start();

const MINUTE = 60;
const PERIOD = 5 * MINUTE;
const HOUR = 3600;
const iso = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19) + "Z";

// World is a table of logins with a sparse index of shards, and one of the programs that delete from it. T is the last run of the schedule.
class World {
  table = "logins-" + randomUUID().slice(0, 8);
  guards = [];
  zone = "UTC"; // of the program's machine

  static async make(program, { shards = 4 } = {}) {
    const w = new World();
    w.program = program;
    w.shards = shards;
    w.T = Math.floor((await now()) / MINUTE) * MINUTE - 2 * PERIOD;
    const attribute = (AttributeName, AttributeType) => ({ AttributeName, AttributeType });
    const key = (AttributeName, KeyType) => ({ AttributeName, KeyType });
    const { TableDescription } = await documents.send(
      new CreateTableCommand({
        TableName: w.table,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [attribute("PK", "S"), attribute("SK", "S"), attribute("GSI_PK", "S"), attribute("TTL", program.type)],
        KeySchema: [key("PK", "HASH"), key("SK", "RANGE")],
        GlobalSecondaryIndexes: [
          { IndexName: "GSI_PK-TTL-index", KeySchema: [key("GSI_PK", "HASH"), key("TTL", "RANGE")], Projection: { ProjectionType: "KEYS_ONLY" } },
        ],
      }),
    );
    w.arn = TableDescription.TableArn;
    proxy.reset();
    return w;
  }

  // item returns a login in the published form. For guard its TTL is in epoch seconds.
  item(id, at) {
    const TTL = this.program.type === "S" ? iso(at) : at;
    return { PK: "user", SK: id, TTL, GSI_PK: String(Math.floor(Math.random() * this.shards)) };
  }

  put = (id, at) => documents.send(new PutCommand({ TableName: this.table, Item: this.item(id, at) }));

  async putMany(count, at) {
    for (let first = 0; first < count; first += 25) {
      const requests = Array.from({ length: Math.min(25, count - first) }, (_, i) => ({ PutRequest: { Item: this.item(String(first + i), at) } }));
      await documents.send(new BatchWriteCommand({ RequestItems: { [this.table]: requests } }));
    }
  }

  // sweep runs the function at these instants, or starts guard.
  sweep = (...instants) => this.program.sweep(this, instants);

  // gone returns whether an item is gone. It waits a moment for guard.
  gone = (id) => this.program.gone(async () => !(await this.get(id)));
  empty = () => this.program.gone(async () => (await this.items()).length === 0);

  items = async () => (await documents.send(new ScanCommand({ TableName: this.table, ConsistentRead: true }))).Items;

  get = async (SK) => (await documents.send(new GetCommand({ TableName: this.table, Key: { PK: "user", SK }, ConsistentRead: true }))).Item;

  async end() {
    await Promise.all(this.guards.map((guard) => guard.stop()));
  }
}

const published = {
  type: "S",
  async sweep(w, instants) {
    for (const instant of instants) await this.invoke(w, instant);
  },
  invoke(w, instant) {
    const env = { ...process.env, AWS_ENDPOINT_URL: proxy.url, TABLE_NAME: w.table, SHARDS: String(w.shards), TZ: w.zone };
    const function_ = spawn(process.env.PYTHON, ["invoke.py", String(instant)], { env, stdio: "ignore" });
    return new Promise((end) => function_.on("exit", end));
  },
  gone: (condition) => condition(),
};

const guard = {
  type: "N",
  async sweep(w) {
    if (w.guards.length === 0) this.start(w);
  },
  start(w) {
    process.env.TZ = w.zone;
    w.guards.push(new Guard(proxy, w.table, "--attribute", "TTL", "--strategy", "index", "--shards", String(w.shards), "--period", "1s", "--lease", "3s"));
    delete process.env.TZ;
  },
  gone: (condition) => until(condition, 30_000),
};

const shows = showing(World);

shows(1, "an item that is renewed while the sweeper works is deleted", {}, async (w) => {
  await w.put("a", w.T - HOUR);
  let tried = false;
  proxy.around = async (request, next) => {
    if (removes(request, w.table) && !tried) await w.put("a", (await now()) + HOUR);
    const answer = await next(request);
    tried ||= removes(request, w.table);
    return answer;
  };
  await w.sweep(w.T);
  if (!(await until(() => tried))) throw new Error("nothing was deleted");
  return !(await w.get("a"));
});

shows(2, "the table's own TTL is no net, for it knows no strings", {}, async (w) => {
  await documents.send(new TagResourceCommand({ ResourceArn: w.arn, Tags: [{ Key: "mayfly:expiry", Value: "strict" }] }));
  await documents.send(new UpdateTimeToLiveCommand({ TableName: w.table, TimeToLiveSpecification: { Enabled: true, AttributeName: "TTL" } }));
  await w.put("a", w.T); // and nobody sweeps
  return !(await w.gone("a"));
});

shows(3, "the machine's time zone moves the deadline", {}, async (w) => {
  w.zone = "Asia/Tokyo";
  await w.put("a", (await now()) + HOUR);
  await w.put("b", w.T - HOUR);
  await w.sweep(w.T);
  if (!(await w.gone("b"))) throw new Error("what has expired did not go");
  return !(await w.get("a"));
});

shows(3.1, "what expires at the minute of a run waits for the next one: \"…:00\" sorts before \"…:00Z\"", {}, async (w) => {
  await w.put("a", w.T);
  await w.sweep(w.T);
  return !(await w.gone("a"));
});

shows(4, "the permissions are others than those that the calls need", {}, async (w) => {
  const granted = w.program === published ? ["Query", "DeleteItem"] : ["Query", "Scan", "DeleteItem", "DescribeTable"];
  await w.put("a", w.T - HOUR);
  proxy.around = (request, next) => {
    const { TableName = Object.keys(request.body.RequestItems ?? {})[0] } = request.body;
    if (TableName !== w.table || granted.includes(request.op)) return next(request);
    return refusal("AccessDeniedException", `User is not authorized to perform: dynamodb:${request.op} on resource: ${w.arn}`);
  };
  await w.sweep(w.T);
  return !(await w.gone("a"));
});

shows(5, "after three seconds the function ends, and the rest waits for the next run", {}, async (w) => {
  await w.putMany(500, w.T - HOUR);
  proxy.around = async (request, next) => {
    if (removes(request, w.table)) await sleep(200); // a busy endpoint
    return next(request);
  };
  await w.sweep(w.T);
  const empty = await w.empty();
  if (deletions(proxy.seen, w.table) === 0) throw new Error("nothing was deleted");
  return !empty;
});

shows(6, "one shard waits for the other", { shards: 12 }, async (w) => {
  await w.putMany(50, w.T - HOUR);
  let [now, most] = [0, 0];
  proxy.around = async (request, next) => {
    if (request.op !== "Query" || !request.body.IndexName) return next(request);
    most = Math.max(most, ++now);
    await sleep(100);
    const answer = await next(request);
    now--;
    return answer;
  };
  await w.sweep(w.T);
  if (!(await w.empty())) throw new Error("what has expired did not go");
  return most === 1;
});

shows(7, "items go up to five minutes late", {}, async (w) => {
  if (w.program === published) {
    await w.put("a", w.T - PERIOD + 10);
    await w.sweep(w.T - PERIOD);
    return !(await w.gone("a")); // then only the run at T deletes it
  }
  const ttl = (await now()) + 4;
  await w.put("a", ttl);
  await w.sweep();
  return !(await w.gone("a")) || (await now()) - ttl > 5;
});

shows(8, "runs that overlap delete everything twice", {}, async (w) => {
  const count = 40;
  let at = w.T - HOUR;
  if (w.program === guard) {
    await w.put("later", (await now()) + HOUR);
    for (let i = 0; i < 2; i++) guard.start(w, "--lease", "10s"); // a lease of a second moves when the machine is busy
    await shared(documents, w.table);
    at = (await now()) + 3;
  }
  await w.putMany(count, at);
  const waiting = new Set(); // shards of which the function has its answer, and another run has not yet
  proxy.around = async (request, next) => {
    const answer = await next(request);
    if (w.program === published && request.op === "Query") {
      const shard = JSON.stringify(request.body.ExpressionAttributeValues);
      if (waiting.delete(shard)) return answer;
      waiting.add(shard);
      await until(() => !waiting.has(shard));
    }
    return answer;
  };
  await Promise.all([w.sweep(w.T), w.sweep(w.T)]);
  const gone = await w.program.gone(async () => (await w.items()).every(({ SK }) => SK === "later"));
  if (!gone) throw new Error(`the sweepers left items, after ${deletions(proxy.seen, w.table)} deletions`);
  return deletions(proxy.seen, w.table) >= 2 * count;
});

await compare({ published, guard });
