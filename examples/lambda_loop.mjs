// A small event source mapping: reads a table's stream from its beginning and calls a Lambda handler with the records, as Lambda does.
//
// A batch that fails is given again, from the first record that the handler names (ReportBatchItemFailures), else whole. What a handler returns besides, a
// statusCode of 500 for instance, is success.
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  TrimmedDataAccessException,
} from "@aws-sdk/client-dynamodb-streams";

const BATCH = 100;

export class Loop {
  answers = []; // what the handler has returned
  after = new Map(); // by shard: the last sequence number that is done with
  streams = new DynamoDBStreamsClient({});

  constructor(arn, handler) {
    this.arn = arn;
    this.handler = handler;
  }

  // drain hands over all records that there are. A batch that keeps failing stays for the next time.
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

  // read gives the next records of a shard, as Lambda gives them to functions.
  async read(shard) {
    const { Records } = await this.streams.send(new GetRecordsCommand({ ShardIterator: await this.iterator(shard), Limit: BATCH }));
    return Records.map(({ userIdentity, ...record }) => ({
      ...record,
      eventSourceARN: this.arn,
      ...(userIdentity && { userIdentity: { type: userIdentity.Type, principalId: userIdentity.PrincipalId } }),
    }));
  }

  // iterator is where to go on: after what is done with, or, when that was more than a day ago, with the oldest record that there still is.
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

  // call gives the index of the first record that failed, or undefined.
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
