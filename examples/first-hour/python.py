#!/usr/bin/env python3
"""A first hour in Python: tests of a shop that used DynamoDB Local.

Needs mayfly on PATH and boto3. Run it in an empty directory: python3 python.py
"""

import json
import pathlib
import subprocess
import time
import urllib.request

import boto3
from botocore.exceptions import ClientError


class Server:
    """mayfly behind DynamoDB Local's command line, on a free port, for a whole test run."""

    def __enter__(self):
        ready = pathlib.Path("ready.json").resolve()
        self.process = subprocess.Popen(
            ["mayfly", "-jar", "DynamoDBLocal.jar", "-sharedDb", "-inMemory", "-port", "0",
             "--start", "2030-01-01T12:00:00Z", "--frozen", "--ready-file", str(ready)],
            stdout=subprocess.DEVNULL)
        while not ready.exists():
            assert self.process.poll() is None, "mayfly did not start"
            time.sleep(0.01)
        self.url = json.loads(ready.read_text())["url"]
        self.settings = {"endpoint_url": self.url, "region_name": "eu-west-1",
                         "aws_access_key_id": "any", "aws_secret_access_key": "any"}
        self.db = boto3.client("dynamodb", **self.settings)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def post(self, path, **body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        return json.load(urllib.request.urlopen(request))

    def advance(self, by):
        return self.post("/_mayfly/clock/advance", by=by)

    def reset(self):
        return self.post("/_mayfly/reset")


def create_locks(server):
    server.db.create_table(
        TableName="locks", BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "name", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "name", "KeyType": "HASH"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
    server.db.get_waiter("table_exists").wait(TableName="locks", WaiterConfig={"Delay": 1, "MaxAttempts": 5})
    server.db.update_time_to_live(
        TableName="locks", TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"})


def take(server, owner, seconds):
    """Takes the lock for some seconds, unless somebody has it."""
    now = server.post("/_mayfly/clock/advance", by=0)["now_ms"] // 1000
    try:
        server.db.put_item(
            TableName="locks", ConditionExpression="attribute_not_exists(#n)", ExpressionAttributeNames={"#n": "name"},
            Item={"name": {"S": "till"}, "owner": {"S": owner}, "expires": {"N": str(now + seconds)}})
        return True
    except ClientError as error:
        assert error.response["Error"]["Code"] == "ConditionalCheckFailedException", error
        return False


def test_lock_ends(server):
    create_locks(server)
    assert take(server, "ada", 60)
    assert not take(server, "bob", 60)
    assert server.advance("59s")["expired"] == 0
    assert not take(server, "bob", 60)
    assert server.advance("1s")["expired"] == 1
    assert take(server, "bob", 60), "the lock is gone at its deadline, to the millisecond"


def test_removal_is_an_event(server):
    create_locks(server)
    take(server, "ada", 3600)
    server.advance("2h")
    streams = boto3.client("dynamodbstreams", **server.settings)
    arn = streams.list_streams(TableName="locks")["Streams"][0]["StreamArn"]
    events = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        at = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
        events += streams.get_records(ShardIterator=at["ShardIterator"])["Records"]
    assert [e["eventName"] for e in events] == ["INSERT", "REMOVE"]
    assert events[1]["userIdentity"]["PrincipalId"] == "dynamodb.amazonaws.com"
    assert events[1]["dynamodb"]["OldImage"]["owner"]["S"] == "ada"


def main():
    begun = time.monotonic()
    with Server() as server:
        for test in (test_lock_ends, test_removal_is_an_event):
            server.reset()  # one server, a clean table and clock for each test
            test(server)
            print(f"ok {test.__name__}")
        assert server.db.describe_table(TableName="locks")["Table"]["TableArn"].startswith("arn:aws:dynamodb:")
    print(f"done in {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main()
