// A small event source mapping: reads a table's stream from its beginning and calls a Lambda handler with the records, as Lambda does.
//
// A failed batch is repeated from the first record that the handler names (ReportBatchItemFailures), or as a whole if the handler throws. Any other result, for
// instance a statusCode of 500, is success.
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  TrimmedDataAccessException,
} from "@aws-sdk/client-dynamodb-streams";

const BATCH = 100;

export class Loop {
  answers = []; // the results of the handler
  after = new Map(); // by shard: the last processed sequence number
  streams = new DynamoDBStreamsClient({});

  constructor(arn, handler) {
    this.arn = arn;
    this.handler = handler;
  }

  // drain hands over all present records. A batch that fails too often stays for the next call.
  async drain(attempts = 3) {
    const { StreamDescription } = await this.streams.send(new DescribeStreamCommand({ StreamArn: this.arn }));
    for (const { ShardId } of StreamDescription.Shards) await this.drainShard(ShardId, attempts);
  }

  async drainShard(shard, attempts) {
    for (let failures = 0; failures < attempts; ) {
      const records = await this.read(shard);
      if (records.length === 0) return;
      const failed = await this.call(records);
      const done = failed === undefined ? records.length : failed;
      if (done > 0) this.after.set(shard, records[done - 1].dynamodb.SequenceNumber);
      failures = failed === 0 ? failures + 1 : 0;
    }
  }

  // read returns the next records of a shard, in the form of Lambda's events.
  async read(shard) {
    const { Records } = await this.streams.send(new GetRecordsCommand({ ShardIterator: await this.iterator(shard), Limit: BATCH }));
    return Records.map(({ userIdentity, ...record }) => ({
      ...record,
      eventSourceARN: this.arn,
      ...(userIdentity && { userIdentity: { type: userIdentity.Type, principalId: userIdentity.PrincipalId } }),
    }));
  }

  // iterator returns an iterator after the last processed record. If that record was trimmed, after a day, it begins at the oldest present one.
  async iterator(ShardId) {
    const position = (more) => this.streams.send(new GetShardIteratorCommand({ StreamArn: this.arn, ShardId, ...more }));
    const SequenceNumber = this.after.get(ShardId);
    if (SequenceNumber) {
      try {
        return (await position({ ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber })).ShardIterator;
      } catch (error) {
        if (!(error instanceof TrimmedDataAccessException)) throw error;
      }
    }
    return (await position({ ShardIteratorType: "TRIM_HORIZON" })).ShardIterator;
  }

  // call calls the handler. It returns the index of the first failed record, or undefined.
  async call(records) {
    let answer;
    try {
      answer = await this.handler({ Records: records });
    } catch {
      return 0;
    }
    this.answers.push(answer);
    const named = (answer?.batchItemFailures ?? []).map(({ itemIdentifier }) => records.findIndex((record) => record.dynamodb.SequenceNumber === itemIdentifier));
    return named.length > 0 ? Math.min(...named) : undefined;
  }
}
