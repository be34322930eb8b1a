// Runs published.mjs and careful.mjs against the endpoint, and checks for each known flaw of the pattern whether it shows.
//
// No mail is sent: the server records deliveries to unmapped targets in the table mayfly.recorded.
import { randomUUID } from "node:crypto";
import { CreateTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, DynamoDBDocumentClient, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { DeleteScheduleCommand, ListSchedulesCommand, SchedulerClient } from "@aws-sdk/client-scheduler";
import { HOUR, flaw, never, now, run, setClock, until } from "../flaws.mjs";
import { Loop } from "../lambda_loop.mjs";

process.env.SENDER = "reminders@shop.example";
process.env.SCHEDULE_DLQ_ARN = "arn:aws:sqs:us-east-1:000000000000:failed-reminders";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const scheduler = new SchedulerClient({});
const iso = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);

// World is a table of appointments with the program under test on its stream.
class World {
  name = "appointments-" + randomUUID().slice(0, 8);
  email = `${this.name}@customer.example`;

  static async make({ handler }) {
    const w = new World();
    const { TableDescription } = await documents.send(
      new CreateTableCommand({
        TableName: w.name,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
        KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
        StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
      }),
    );
    w.loop = new Loop(TableDescription.LatestStreamArn, handler);
    for (const Name of await schedules()) await scheduler.send(new DeleteScheduleCommand({ Name })); // of worlds before
    w.before = await allMails();
    return w;
  }

  put = (id, REMINDER_TIMESTAMP) => documents.send(new PutCommand({ TableName: this.name, Item: { id, REMINDER_TIMESTAMP, email: this.email } }));
  remove = (id) => documents.send(new DeleteCommand({ TableName: this.name, Key: { id } }));

  // mails returns the mails since the creation of this world.
  mails = async () => (await allMails()).filter(({ id }) => !this.before.some((mail) => mail.id === id));
  has = (count) => until(async () => (await this.mails()).length >= count);
}

async function allMails() {
  const KeyConditionExpression = "arn = :arn";
  const ExpressionAttributeValues = { ":arn": "arn:aws:scheduler:::aws-sdk:ses:sendEmail" };
  try {
    const { Items } = await documents.send(
      new QueryCommand({ TableName: "mayfly.recorded", KeyConditionExpression, ExpressionAttributeValues, ConsistentRead: true }),
    );
    return Items.map(({ id, body }) => ({ id, ...JSON.parse(body) }));
  } catch (error) {
    if (error.name === "ResourceNotFoundException") return []; // nothing was ever delivered
    throw error;
  }
}

async function schedules() {
  const { Schedules } = await scheduler.send(new ListSchedulesCommand({ MaxResults: 100 }));
  return Schedules.map(({ Name }) => Name);
}

flaw(1, "the mail has no recipient", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  const at = (await now()) + HOUR;
  await w.put("a", iso(at));
  await w.loop.drain();
  await setClock(at);
  if (!(await w.has(1))) throw new Error("no mail");
  return (await w.mails())[0].Destination.ToAddresses[0] !== w.email;
});

flaw(2, "the removal of an item is a TypeError", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await w.put("a", iso((await now()) + HOUR));
  await w.remove("a");
  await w.loop.drain();
  return w.loop.answers.some(({ statusCode }) => statusCode === 500);
});

flaw(3, "a changed reminder is sent twice, the first time at the old time", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  const at = (await now()) + HOUR;
  await w.put("a", iso(at));
  await w.put("a", iso(at + HOUR));
  await w.loop.drain();
  await setClock(at);
  const early = !(await never(async () => (await w.mails()).length > 0));
  await setClock(at + HOUR);
  if (!(await w.has(1))) throw new Error("no mail");
  return early;
});

flaw(4, "the reminder of a deleted item is sent", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  const at = (await now()) + HOUR;
  await w.put("a", iso(at));
  await w.loop.drain();
  await w.remove("a");
  await w.loop.drain();
  await setClock(at);
  return !(await never(async () => (await w.mails()).length > 0));
});

flaw(5, "after an error the rest of the batch is lost, since 500 is success to Lambda", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await w.put("a", "soon");
  await w.put("a", iso((await now()) + HOUR)); // of one item, so in one shard
  await w.loop.drain();
  return (await schedules()).length === 0;
});

flaw(6, "a time with Z or milliseconds is refused", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  await w.put("a", new Date(((await now()) + HOUR) * 1000).toISOString());
  await w.loop.drain();
  return (await schedules()).length === 0;
});

flaw(7, "a reminder whose time has passed is never sent", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  await w.put("a", iso((await now()) - HOUR));
  await w.loop.drain();
  return !(await w.has(1));
});

flaw(8, "nothing tells a mail that comes twice", { published: true, careful: false }, async (program) => {
  const w = await World.make(program);
  const at = (await now()) + HOUR;
  await w.put("a", iso(at));
  await w.loop.drain();
  await setClock(at);
  if (!(await w.has(1))) throw new Error("no mail");
  return (await w.mails())[0].Tags === undefined;
});

flaw(9, "a redelivered record makes a second reminder", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  const at = (await now()) + HOUR;
  await w.put("a", iso(at));
  await w.loop.drain();
  w.loop.after.clear();
  await w.loop.drain();
  await setClock(at);
  if (!(await w.has(1))) throw new Error("no mail");
  return !(await never(async () => (await w.mails()).length > 1));
});

flaw(10, "the reminder is up to a minute late, or early", { published: false, careful: false }, async (program) => {
  const w = await World.make(program);
  const at = (await now()) + HOUR;
  await w.put("a", iso(at));
  await w.loop.drain();
  await setClock(at - 0.001);
  const early = !(await never(async () => (await w.mails()).length > 0));
  await setClock(at);
  return early || !(await w.has(1));
});

await run({ published: await import("./published.mjs"), careful: await import("./careful.mjs") });
