"""A small event source mapping: reads a table's stream from its beginning and calls a Lambda handler with the records, as Lambda does.

A failed batch is repeated from the first record that the handler names (ReportBatchItemFailures), or as a whole if the handler raises. Any other result, for
instance a statusCode of 500, is success.
"""

import os

import boto3

BATCH = 100


class Loop:
    def __init__(self, stream_arn, handler):
        self.arn = stream_arn
        self.handler = handler
        self.streams = boto3.client("dynamodbstreams", endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))
        self.after = {}  # by shard: the last processed sequence number
        self.answers = []  # the results of the handler

    def drain(self, attempts=3):
        """Hands over all present records. A batch that fails too often stays for the next call."""
        for shard in self.streams.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"]:
            self.drain_shard(shard["ShardId"], attempts)

    def drain_shard(self, shard, attempts):
        failures = 0
        while failures < attempts:
            records = self.read(shard)
            if not records:
                return
            failed = self.call(records)
            done = records if failed is None else records[: failed]
            if done:
                self.after[shard] = done[-1]["dynamodb"]["SequenceNumber"]
            failures = failures + 1 if failed == 0 else 0

    def read(self, shard):
        return self.streams.get_records(ShardIterator=self.iterator(shard), Limit=BATCH)["Records"]

    def iterator(self, shard):
        """Returns an iterator after the last processed record. If that record was trimmed, after a day, it begins at the oldest present one."""
        of = {"StreamArn": self.arn, "ShardId": shard}
        if shard in self.after:
            try:
                return self.streams.get_shard_iterator(ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=self.after[shard], **of)["ShardIterator"]
            except self.streams.exceptions.TrimmedDataAccessException:
                pass
        return self.streams.get_shard_iterator(ShardIteratorType="TRIM_HORIZON", **of)["ShardIterator"]

    def call(self, records):
        """Calls the handler. Returns the index of the first failed record, or None."""
        event = {"Records": [self.as_event(record) for record in records]}
        try:
            answer = self.handler(event, None)
        except Exception:
            return 0
        self.answers.append(answer)
        named = [failure["itemIdentifier"] for failure in (answer or {}).get("batchItemFailures", [])]
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        return min((numbers.index(name) for name in named), default=None)

    def as_event(self, record):
        """Returns a record in the form of Lambda's events."""
        event = {**record, "eventSourceARN": self.arn}
        event["dynamodb"] = {**record["dynamodb"], "ApproximateCreationDateTime": record["dynamodb"]["ApproximateCreationDateTime"].timestamp()}
        if "userIdentity" in record:
            event["userIdentity"] = {"type": record["userIdentity"]["Type"], "principalId": record["userIdentity"]["PrincipalId"]}
        return event
