"""Uses the tables of MAYFLY_ENDPOINT through mayfly guard proxy at MAYFLY_PROXY, as a Python application would, and exits non-zero when something
that has expired shows. The endpoint is mayfly, told to keep what has expired for an hour.

The proxy takes the credentials client and secret only.
"""

import os
import sys
import time
import uuid

import boto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.config import Config
from botocore.exceptions import ClientError

ATTEMPTS = Config(retries={"max_attempts": 1})
NAME = "sessions-" + uuid.uuid4().hex


def resource(url, key, secret):
    return boto3.resource("dynamodb", endpoint_url=url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret, config=ATTEMPTS)


def expect(got, want, what):
    if got != want:
        sys.exit(f"boto3 through the proxy: {what}: got {got!r}, want {want!r}")


def code(call, **arguments):
    """The code with which a call is refused."""
    try:
        call(**arguments)
    except ClientError as e:
        return e.response["Error"]["Code"]
    return None


def make(db):
    db.create_table(
        TableName=NAME,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "user", "AttributeType": "S"}, {"AttributeName": "at", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "user", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
        Tags=[{"Key": "mayfly:expiry", "Value": "aws"}, {"Key": "mayfly:expiry-delay", "Value": "fixed:1h"}],
    )
    db.meta.client.update_time_to_live(TableName=NAME, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
    return db.Table(NAME)


def run(direct, through):
    soon = int(time.time()) + 2
    for at, ttl in (1, soon), (2, soon + 3600), (3, soon), (4, soon):
        through.put_item(Item={"user": "ann", "at": at, "ttl": ttl, "count": at * 10})
    while time.time() < soon + 0.05:
        expect(len(direct.query(KeyConditionExpression=Key("user").eq("ann"))["Items"]), 4, "what the endpoint has")
        time.sleep(0.05)
    # The proxy goes by the endpoint's clock, which tells whole seconds, and rather hides late than early; it knows it the closer, the more it is asked.
    shown = lambda: [i["at"] for i in through.query(KeyConditionExpression=Key("user").eq("ann"))["Items"]]
    while shown() != [2] and time.time() < soon + 1.5:
        time.sleep(0.02)
    expect(shown(), [2], "query")
    expect(through.scan(Select="COUNT", FilterExpression=Attr("count").gt(0))["Count"], 1, "scan with a filter")
    expect(through.get_item(Key={"user": "ann", "at": 1}, ProjectionExpression="#c", ExpressionAttributeNames={"#c": "count"}).get("Item"), None, "get")
    keys = [{"user": "ann", "at": at} for at in (1, 2, 3)]
    got = through.meta.client.batch_get_item(RequestItems={NAME: {"Keys": keys, "ProjectionExpression": "#a", "ExpressionAttributeNames": {"#a": "at"}}})
    expect(got["Responses"][NAME], [{"at": 2}], "batch")
    expect(code(through.put_item, Item={"user": "ann", "at": 1}, ConditionExpression=Attr("user").exists()), "ConditionalCheckFailedException", "a condition")
    out = through.update_item(Key={"user": "ann", "at": 1}, UpdateExpression="ADD #c :one", ExpressionAttributeNames={"#c": "count"},
                              ExpressionAttributeValues={":one": 1}, ReturnValues="ALL_NEW")
    expect(out["Attributes"], {"user": "ann", "at": 1, "count": 1}, "an update of what has expired")
    through.put_item(Item={"user": "ann", "at": 3}, ConditionExpression=Attr("user").not_exists())
    expect(through.delete_item(Key={"user": "ann", "at": 4}, ReturnValues="ALL_OLD").get("Attributes"), None, "delete")
    got = through.meta.client.execute_statement(Statement=f"""SELECT "at" FROM "{NAME}" WHERE "user" = 'ann' AND "at" IN [2, 4]""")
    expect(got["Items"], [{"at": 2}], "a statement")


def main():
    url = os.environ["MAYFLY_PROXY"]
    direct = resource(os.environ["MAYFLY_ENDPOINT"], os.environ.get("AWS_ACCESS_KEY_ID", "any"), os.environ.get("AWS_SECRET_ACCESS_KEY", "any"))
    through = resource(url, "client", "secret")
    expect(code(resource(url, "client", "guessed").meta.client.list_tables), "InvalidSignatureException", "a wrong secret")
    table = make(through)
    try:
        run(direct.Table(NAME), table)
    finally:
        table.delete()
    print("boto3: strict reads through mayfly guard proxy")


main()
