// A butterfly's life without the published program's mistakes. There is an item for the butterfly, and one for each of its transitions, whose TTL is the instant of
// the transition. When a transition's item expires (a user's deletion does not count), a Lambda function on the table's stream sends its details to Kinesis. Another
// function, on the Kinesis stream, performs the transition, unless the butterfly is already in that state or a later one.
import { ConditionalCheckFailedException, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DeleteCommand, DynamoDBDocumentClient, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { KinesisClient, PutRecordsCommand } from "@aws-sdk/client-kinesis";

const documents = DynamoDBDocumentClient.from(new DynamoDBClient({}));
const kinesis = new KinesisClient({});
const { TABLE, STREAM } = process.env;

const states = ["egg", "larva", "cocoon", "butterfly", "dead"];

// The key of a transition has the state to which it leads, and no time, so that its time can be changed.
const transitionKey = (id, to) => ({ PK: id, SK: `TRANSITION#${to}` });

// lay creates a butterfly with its later states, each with its second: [["larva", 1893456000], …].
export async function lay(id, transitions) {
  const Puts = [{ PK: id, SK: "BUTTERFLY", state: "egg", rank: 0 }, ...transitions.map(([to, TTL]) => ({ ...transitionKey(id, to), TTL, details: JSON.stringify({ id, to }) }))];
  await documents.send(new TransactWriteCommand({ TransactItems: Puts.map((Item) => ({ Put: { TableName: TABLE, Item } })) }));
}

// cancel deletes a transition that has not happened yet.
export async function cancel(id, _ttl, to) {
  await documents.send(new DeleteCommand({ TableName: TABLE, Key: transitionKey(id, to) }));
}

// postpone changes the time of a transition that has not happened yet.
export async function postpone(id, to, _ttl, later) {
  await documents.send(
    new UpdateCommand({
      TableName: TABLE,
      Key: transitionKey(id, to),
      UpdateExpression: "SET #ttl = :later",
      ConditionExpression: "attribute_exists(PK)",
      ExpressionAttributeNames: { "#ttl": "TTL" },
      ExpressionAttributeValues: { ":later": later },
    }),
  );
}

const isExpiry = ({ eventName, userIdentity }) =>
  eventName === "REMOVE" && userIdentity?.type === "Service" && userIdentity.principalId === "dynamodb.amazonaws.com";

// handler is the function on the table's stream. It names the first record whose message Kinesis refused (ReportBatchItemFailures).
export const handler = async (event) => {
  const due = event.Records.filter((record) => isExpiry(record) && record.dynamodb.Keys.SK.S.startsWith("TRANSITION#"));
  for (let first = 0; first < due.length; first += 500) {
    const some = due.slice(first, first + 500);
    const { Records } = await kinesis.send(
      new PutRecordsCommand({
        StreamName: STREAM,
        Records: some.map(({ dynamodb }) => ({ PartitionKey: dynamodb.Keys.PK.S, Data: Buffer.from(dynamodb.OldImage.details.S) })),
      }),
    );
    const failed = Records.findIndex(({ ErrorCode }) => ErrorCode);
    if (failed >= 0) return { batchItemFailures: [{ itemIdentifier: some[failed].dynamodb.SequenceNumber }] };
  }
  return { batchItemFailures: [] };
};

// perform is the function on the Kinesis stream. A repeated message, or one that arrives after a later one, changes nothing.
export const perform = async (event) => {
  for (const record of event.Records) {
    const { id, to } = JSON.parse(Buffer.from(record.kinesis.data, "base64"));
    try {
      await documents.send(
        new UpdateCommand({
          TableName: TABLE,
          Key: { PK: id, SK: "BUTTERFLY" },
          UpdateExpression: "SET #state = :to, #rank = :rank",
          ConditionExpression: "#rank < :rank",
          ExpressionAttributeNames: { "#state": "state", "#rank": "rank" },
          ExpressionAttributeValues: { ":to": to, ":rank": states.indexOf(to) },
        }),
      );
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
    }
  }
};
