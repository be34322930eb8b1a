"""Deletion within minutes through a sharded index, as it is published: each item that can expire has the number of a shard. A schedule of rate(5 minutes)
calls a Lambda function, which queries a sparse index for expired items, shard after shard, and deletes them.

Written from the description of the pattern, mistakes included: README.md lists them.
"""

import os
from datetime import datetime

import boto3

TABLE_NAME = os.environ["TABLE_NAME"]
INDEX_NAME = "GSI_PK-TTL-index"
SHARDS = int(os.environ["SHARDS"])

table = boto3.resource("dynamodb", endpoint_url=os.environ.get("AWS_ENDPOINT_URL")).Table(TABLE_NAME)


def lambda_handler(event, context):
    now = datetime.now().replace(second=0, microsecond=0).isoformat()
    for shard in range(SHARDS):
        delete(expired(str(shard), now))
    return {"statusCode": 200}


def expired(shard, now):
    """Returns the keys of a shard's items whose TTL has passed."""
    request = {
        "IndexName": INDEX_NAME,
        "KeyConditionExpression": "GSI_PK = :shard AND #ttl < :now",
        "ExpressionAttributeNames": {"#ttl": "TTL"},
        "ExpressionAttributeValues": {":shard": shard, ":now": now},
    }
    keys = []
    while True:
        page = table.query(**request)
        keys += [{"PK": item["PK"], "SK": item["SK"]} for item in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return keys
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def delete(keys):
    with table.batch_writer() as batch:
        for key in keys:
            batch.delete_item(Key=key)
