"""A small event source mapping: reads a table's stream from its beginning and calls a Lambda handler with the records, as Lambda does.

A batch that fails is given again, from the first record that the handler names (ReportBatchItemFailures), else whole. What a handler returns besides, a
statusCode of 500 for instance, is success.
"""

import os

import boto3

BATCH = 100


class Loop:
    def __init__(self, stream_arn, handler):
        self.arn = stream_arn
        self.handler = handler
        self.streams = boto3.client("dynamodbstreams", endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))
        self.after = {}  # by shard: the last sequence number that is done with
        self.answers = []  # what the handler has returned

    def drain(self, attempts=3):
        """Hands over all records that there are. A batch that keeps failing stays for the next time."""
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
        """Where to go on: after what is done with, or, when that was more than a day ago, with the oldest record that there still is."""
        of = {"StreamArn": self.arn, "ShardId": shard}
        if shard in self.after:
            try:
                return self.streams.get_shard_iterator(ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=self.after[shard], **of)["ShardIterator"]
            except self.streams.exceptions.TrimmedDataAccessException:
                pass
        return self.streams.get_shard_iterator(ShardIteratorType="TRIM_HORIZON", **of)["ShardIterator"]

    def call(self, records):
        """Calls the handler and gives the index of the first record that failed, or None."""
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
        """A record as Lambda gives it to functions."""
        event = {**record, "eventSourceARN": self.arn}
        event["dynamodb"] = {**record["dynamodb"], "ApproximateCreationDateTime": record["dynamodb"]["ApproximateCreationDateTime"].timestamp()}
        if "userIdentity" in record:
            event["userIdentity"] = {"type": record["userIdentity"]["Type"], "principalId": record["userIdentity"]["PrincipalId"]}
        return event
