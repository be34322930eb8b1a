// A butterfly's life as it is published: an item for the butterfly, and one for each of its transitions, whose TTL is the moment of the transition. When a
// transition's item is deleted, a Lambda function on the table's stream sends its details to Kinesis, and another function, on the Kinesis stream, performs it.
//
// Written from the description of the pattern, mistakes included: README.md lists them, and careful.mjs is the program without them.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, DynamoDBDocumentClient, PutCommand, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { KinesisClient, PutRecordCommand } from "@aws-sdk/client-kinesis";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const kinesis = new KinesisClient({});
const { TABLE, STREAM } = process.env;

const transitionItem = (id, to, ttl) => ({ PK: id, SK: `TRANSITION#${String(ttl).padStart(12, "0")}`, TTL: ttl, details: JSON.stringify({ id, to }) });

// lay creates a butterfly with its later states, each with its second: [["larva", 1893456000], …].
export async function lay(id, transitions) {
  const Puts = [{ PK: id, SK: "BUTTERFLY", state: "egg" }, ...transitions.map(([to, ttl]) => transitionItem(id, to, ttl))];
  await documents.send(new TransactWriteCommand({ TransactItems: Puts.map((Item) => ({ Put: { TableName: TABLE, Item } })) }));
}

// cancel deletes a transition.
export async function cancel(id, ttl) {
  await documents.send(new DeleteCommand({ TableName: TABLE, Key: { PK: id, SK: transitionItem(id, "", ttl).SK } }));
}

// postpone changes the time of a transition, which is a part of its sort key.
export async function postpone(id, to, ttl, later) {
  await cancel(id, ttl);
  await documents.send(new PutCommand({ TableName: TABLE, Item: transitionItem(id, to, later) }));
}

// handler is the function on the table's stream.
export const handler = async (event) => {
  for (const { dynamodb } of event.Records) {
    if (dynamodb.OldImage && !dynamodb.NewImage && dynamodb.Keys.SK.S.startsWith("TRANSITION#")) {
      await kinesis.send(new PutRecordCommand({ StreamName: STREAM, PartitionKey: dynamodb.Keys.PK.S, Data: Buffer.from(dynamodb.OldImage.details.S) }));
    }
  }
};

// perform is the function on the Kinesis stream.
export const perform = async (event) => {
  for (const record of event.Records) {
    const { id, to } = JSON.parse(Buffer.from(record.kinesis.data, "base64"));
    await documents.send(
      new UpdateCommand({
        TableName: TABLE,
        Key: { PK: id, SK: "BUTTERFLY" },
        UpdateExpression: "SET #state = :to",
        ExpressionAttributeNames: { "#state": "state" },
        ExpressionAttributeValues: { ":to": to },
      }),
    );
  }
};
