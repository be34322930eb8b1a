"""Near-real-time TTL as it is published: a Lambda function on the table's stream keeps one schedule per item, which deletes the item at its TTL.

Written from the description of the pattern, mistakes included: README.md lists them, and careful.py is the program without them.
"""

import json
import logging
import os
from datetime import datetime

import boto3

TIMEZONE = os.environ.get("TIMEZONE", "UTC")
ROLE_ARN = os.environ["SCHEDULE_ROLE_ARN"]

logger = logging.getLogger()
scheduler = boto3.client("scheduler", endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))


def lambda_handler(event, context):
    try:
        for record in event["Records"]:
            table = record["eventSourceARN"].split("/")[1]
            keys = record["dynamodb"]["Keys"]
            if record["eventName"] == "INSERT":
                create_schedule(table, keys, record["dynamodb"]["NewImage"]["ttl"]["N"])
            elif record["eventName"] == "MODIFY":
                old, new = record["dynamodb"]["OldImage"], record["dynamodb"]["NewImage"]
                if "ttl" not in old or "ttl" not in new:
                    continue
                if old["ttl"]["N"] != new["ttl"]["N"]:
                    update_schedule(table, keys, new["ttl"]["N"])
            elif record["eventName"] == "REMOVE":
                delete_schedule(keys)
    except Exception:
        logger.exception("could not handle the records")
        return {"statusCode": 500}
    return {"statusCode": 200}


def create_schedule(table, keys, ttl):
    scheduler.create_schedule(
        Name=schedule_name(keys),
        ScheduleExpression=expression(ttl),
        ScheduleExpressionTimezone=TIMEZONE,
        FlexibleTimeWindow={"Mode": "OFF"},
        ActionAfterCompletion="DELETE",
        Target=target(table, keys),
    )


def update_schedule(table, keys, ttl):
    try:
        scheduler.update_schedule(
            Name=schedule_name(keys),
            ScheduleExpression=expression(ttl),
            ScheduleExpressionTimezone=TIMEZONE,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target=target(table, keys),
        )
    except scheduler.exceptions.ResourceNotFoundException:
        logger.warning("no schedule %s", schedule_name(keys))


def delete_schedule(keys):
    try:
        scheduler.delete_schedule(Name=schedule_name(keys))
    except scheduler.exceptions.ResourceNotFoundException:
        pass


def schedule_name(keys):
    return f"dynamodb_ttl_{keys['PK']['S']}_{keys['SK']['S']}"


def expression(ttl):
    return f"at({datetime.fromtimestamp(int(ttl)).strftime('%Y-%m-%dT%H:%M:%S')})"


def target(table, keys):
    return {
        "Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:deleteItem",
        "RoleArn": ROLE_ARN,
        "Input": json.dumps({"TableName": table, "Key": keys}),
    }
