// Deletion within a minute through an index of expiration windows, as it is published. Besides its TTL, each item has the window of time in which the TTL lies. Every
// minute a rule calls a Lambda function, which queries an index for the window that has just ended, and deletes the items in it.
//
// Written from the description of the pattern, mistakes included: README.md lists them.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { BatchWriteCommand, DynamoDBDocumentClient, PutCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const INDEX = "expirationWindowIndex";
const RETRIES = 3;

// expirationWindow names the window of a date. A date on an edge belongs to the window that ends there.
export function expirationWindow(date, minutes = 1) {
  const granularity = minutes * 60_000;
  const end = new Date(Math.ceil(date.getTime() / granularity) * granularity);
  const before = new Date(date);
  before.setSeconds(before.getSeconds() - 1); // so that an edge has another floor than ceiling
  const start = new Date(Math.floor(before.getTime() / granularity) * granularity);
  return `${start.toISOString()}_${end.toISOString()}`;
}

// put writes an item that expires at a date.
export async function put(TableName, item, date) {
  const Item = { ...item, ttl: Math.floor(date.getTime() / 1000), expirationWindow: expirationWindow(date) };
  await documents.send(new PutCommand({ TableName, Item }));
}

// renew changes the date at which an item expires.
export async function renew(TableName, Key, date) {
  await documents.send(
    new UpdateCommand({
      TableName,
      Key,
      UpdateExpression: "SET #ttl = :ttl",
      ExpressionAttributeNames: { "#ttl": "ttl" },
      ExpressionAttributeValues: { ":ttl": Math.floor(date.getTime() / 1000) },
    }),
  );
}

// handler is the function that the rule cron(*/1 * * * ? *) calls with {"time": <the event's time>}.
export const handler = async (event) => {
  const TableName = process.env.TABLE_NAME;
  const time = new Date(event.time);
  const { Items } = await documents.send(
    new QueryCommand({
      TableName,
      IndexName: INDEX,
      KeyConditionExpression: "#expirationWindow = :window AND #ttl < :exp",
      ExpressionAttributeNames: { "#expirationWindow": "expirationWindow", "#ttl": "ttl" },
      ExpressionAttributeValues: { ":window": expirationWindow(time), ":exp": Math.round(time.getTime() / 1000) },
    }),
  );
  await deleteItems(TableName, Items.map(({ itemId }) => itemId), RETRIES);
};

async function deleteItems(TableName, ids, retriesLeft) {
  if (ids.length === 0) return;
  if (retriesLeft === 0) throw new Error(`unable to delete the desired ${ids.length} items`);
  const left = [];
  let hasErrors = false;
  for (let first = 0; first < ids.length; first += 25) {
    const chunk = ids.slice(first, first + 25);
    const requests = chunk.map((itemId) => ({ DeleteRequest: { Key: { itemId } } }));
    try {
      const { UnprocessedItems } = await documents.send(new BatchWriteCommand({ RequestItems: { [TableName]: requests } }));
      for (const { DeleteRequest } of UnprocessedItems?.[TableName] ?? []) left.push(DeleteRequest.Key.itemId);
    } catch {
      hasErrors = true;
      left.push(...chunk);
    }
  }
  await deleteItems(TableName, left, retriesLeft - 1);
}
