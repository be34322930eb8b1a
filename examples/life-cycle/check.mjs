// Runs published.mjs and careful.mjs against the endpoint, and checks for each known flaw of the pattern whether it shows.
import { randomUUID } from "node:crypto";
import { CreateTableCommand, DynamoDBClient, UpdateTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import { HOUR, flaw, now, run, setClock } from "../flaws.mjs";
import { Loop } from "../lambda_loop.mjs";
import { sent } from "./kinesis.mjs";

process.env.STREAM = "transitions";
process.env.TABLE = "garden";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const { TableDescription } = await documents.send(
  new CreateTableCommand({
    TableName: process.env.TABLE,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: ["PK", "SK"].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
    KeySchema: [
      { AttributeName: "PK", KeyType: "HASH" },
      { AttributeName: "SK", KeyType: "RANGE" },
    ],
    StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
  }),
);
await documents.send(
  new UpdateTimeToLiveCommand({ TableName: process.env.TABLE, TimeToLiveSpecification: { Enabled: true, AttributeName: "TTL" } }),
);

// World is a butterfly, with the program under test on the streams, from their present end on.
class World {
  id = "butterfly-" + randomUUID().slice(0, 8);

  static async make(program) {
    const w = new World();
    w.program = program;
    w.loop = new Loop(TableDescription.LatestStreamArn, async () => {});
    await w.loop.drain();
    w.loop.handler = program.handler;
    w.from = sent.length;
    w.at = (await now()) + HOUR;
    return w;
  }

  // live runs the function on the table's stream, then the one on Kinesis, for all records that there are.
  async live() {
    await this.loop.drain();
    const records = this.messages();
    this.from = sent.length;
    if (records.length > 0) await this.program.perform({ Records: records });
    return records;
  }

  messages = () => sent.slice(this.from);

  async state() {
    const { Item } = await documents.send(new GetCommand({ TableName: process.env.TABLE, Key: { PK: this.id, SK: "BUTTERFLY" }, ConsistentRead: true }));
    return Item.state;
  }
}

const to = (record) => JSON.parse(Buffer.from(record.kinesis.data, "base64")).to;

flaw(1, "a transition is minutes to days late, or early", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["larva", w.at]]);
  await setClock(w.at - 0.001);
  await w.live();
  const early = (await w.state()) !== "egg";
  await setClock(w.at);
  await w.live();
  return early || (await w.state()) !== "larva";
});

flaw(2, "transitions that are close come in the wrong order", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["dead", w.at + 3], ["cocoon", w.at + 1], ["butterfly", w.at + 2], ["larva", w.at]]);
  await setClock(w.at + 10);
  const order = (await w.live()).map(to).join(" ");
  return order !== "larva cocoon butterfly dead" || (await w.state()) !== "dead";
});

flaw(2.1, "… and then the butterfly is what came last", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["larva", w.at], ["cocoon", w.at + 1]]);
  await setClock(w.at + 1);
  await w.loop.drain();
  await program.perform({ Records: w.messages().reverse() });
  return (await w.state()) !== "cocoon";
});

flaw(3, "a message that comes again turns time back", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["larva", w.at], ["cocoon", w.at + 1]]);
  await setClock(w.at + 1);
  const [first] = await w.live();
  await program.perform({ Records: [first] });
  return (await w.state()) !== "cocoon";
});

flaw(4, "cancelling a transition performs it", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["larva", w.at]]);
  await program.cancel(w.id, w.at, "larva");
  await w.live();
  return (await w.state()) !== "egg";
});

flaw(5, "postponing a transition performs it", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["larva", w.at]]);
  await program.postpone(w.id, "larva", w.at, w.at + HOUR);
  await setClock(w.at);
  await w.live();
  const early = (await w.state()) !== "egg";
  await setClock(w.at + HOUR);
  await w.live();
  if ((await w.state()) !== "larva") throw new Error("the postponed transition did not happen");
  return early;
});

flaw(6, "expiries cannot be told from deletions", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  const records = [];
  w.loop.handler = async (event) => void records.push(...event.Records);
  await program.lay(w.id, [["larva", w.at], ["cocoon", w.at + HOUR]]);
  await program.cancel(w.id, w.at + HOUR, "cocoon");
  await setClock(w.at);
  await w.loop.drain();
  const removals = records.filter(({ eventName }) => eventName === "REMOVE").map(({ userIdentity }) => userIdentity?.type);
  return JSON.stringify(removals) !== JSON.stringify([undefined, "Service"]);
});

flaw(7, "of many transitions in one instant some are lost, or come twice", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  for (let i = 0; i < 300; i++) await program.lay(`${w.id}-${i}`, [["larva", w.at]]);
  await setClock(w.at);
  await w.loop.drain();
  const messages = w.messages();
  return messages.length !== 300 || new Set(messages.map(({ kinesis }) => kinesis.partitionKey)).size !== 300;
});

flaw(8, "transitions of more than a day ago, which nobody has read, are lost", { published: true, careful: true }, async (program) => {
  const w = await World.make(program);
  await program.lay(w.id, [["larva", w.at]]);
  await w.live();
  await setClock(w.at);
  await setClock(w.at + 26 * HOUR);
  await w.live();
  return (await w.state()) !== "larva";
});

await run({ published: await import("./published.mjs"), careful: await import("./careful.mjs") });
