// Stands for Kinesis: takes PutRecord and PutRecords over HTTP/2, as the SDK's client sends them, and keeps the records.
import { createServer } from "node:http2";

export const sent = []; // as a Lambda function gets them

const take = ({ Data, PartitionKey }) => {
  const SequenceNumber = String(sent.length + 1);
  sent.push({ kinesis: { data: Data, partitionKey: PartitionKey, sequenceNumber: SequenceNumber } });
  return { SequenceNumber, ShardId: "shardId-000000000000" };
};

const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const input = JSON.parse(body);
  const operation = request.headers["x-amz-target"].split(".")[1];
  const answer = operation === "PutRecords" ? { FailedRecordCount: 0, Records: input.Records.map(take) } : take(input);
  response.setHeader("Content-Type", "application/x-amz-json-1.1");
  response.end(JSON.stringify(answer));
});

await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
process.env.AWS_ENDPOINT_URL_KINESIS = `http://127.0.0.1:${server.address().port}`;
