"""Near-real-time TTL without the published program's mistakes: a Lambda function on the table's stream keeps one schedule for each item with a TTL. The
schedule deletes the item at that instant, unless its TTL has changed.

The function reports the first record that it could not handle (ReportBatchItemFailures), so that Lambda continues from there. A redelivered record has no
second effect: a schedule has the sequence number of its record, and no older record changes it.
"""

import hashlib
import json
import logging
import os
from datetime import datetime, timezone
from decimal import ROUND_CEILING, Decimal

import boto3

ROLE_ARN = os.environ["SCHEDULE_ROLE_ARN"]
TTL = "ttl"

logger = logging.getLogger()
scheduler = boto3.client("scheduler", endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))
dynamodb = boto3.client("dynamodb", endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))


def lambda_handler(event, context):
    for record in event["Records"]:
        change = record["dynamodb"]
        try:
            handle(record["eventSourceARN"].split("/")[1], change["Keys"], change.get("NewImage", {}), int(change["SequenceNumber"]))
        except Exception:
            logger.exception("could not handle %s", change["SequenceNumber"])
            return {"batchItemFailures": [{"itemIdentifier": change["SequenceNumber"]}]}
    return {"batchItemFailures": []}


def backfill(table):
    """Creates the schedules of items that are older than the stream. Their sequence number is 0, so any record of theirs is newer."""
    for page in dynamodb.get_paginator("scan").paginate(TableName=table):
        for item in page["Items"]:
            handle(table, key_of(table, item), item, 0)


def handle(table, key, image, sequence):
    """Creates, changes or deletes an item's schedule to match the item in a record or a scan."""
    ttl = image.get(TTL, {}).get("N")
    if ttl is None:
        remove(table, key, sequence)
    else:
        put(table, key, ttl, sequence)


def put(table, key, ttl, sequence):
    schedule = {
        "Name": schedule_name(key),
        "GroupName": group_of(table),
        "Description": str(sequence),
        "ScheduleExpression": expression(ttl),
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ActionAfterCompletion": "DELETE",
        "Target": target(table, key, ttl),
    }
    try:
        scheduler.create_schedule(**schedule)
    except scheduler.exceptions.ConflictException:
        if newer(schedule["GroupName"], schedule["Name"], sequence):
            scheduler.update_schedule(**schedule)
    except scheduler.exceptions.ResourceNotFoundException:
        create_group(schedule["GroupName"])
        scheduler.create_schedule(**schedule)


def remove(table, key, sequence):
    try:
        if newer(group_of(table), schedule_name(key), sequence):
            scheduler.delete_schedule(GroupName=group_of(table), Name=schedule_name(key))
    except scheduler.exceptions.ResourceNotFoundException:
        pass


def newer(group, name, sequence):
    """Returns whether a record is newer than the schedule's."""
    return sequence > int(scheduler.get_schedule(GroupName=group, Name=name)["Description"])


def create_group(group):
    try:
        scheduler.create_schedule_group(Name=group)
    except scheduler.exceptions.ConflictException:
        pass


def group_of(table):
    return "ttl-" + hashlib.sha256(table.encode()).hexdigest()[:40]


def schedule_name(key):
    """Returns a schedule's name for a key, which may have any type, length and characters."""
    return "item-" + hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:40]


def expression(ttl):
    """Returns the first whole second at which the TTL has passed, in UTC."""
    at = int(Decimal(ttl).to_integral_value(rounding=ROUND_CEILING))
    return f"at({datetime.fromtimestamp(at, timezone.utc).strftime('%Y-%m-%dT%H:%M:%S')})"


def target(table, key, ttl):
    """Deletes the item unless its TTL was changed or removed meanwhile."""
    return {
        "Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:deleteItem",
        "RoleArn": ROLE_ARN,
        "Input": json.dumps(
            {
                "TableName": table,
                "Key": key,
                "ConditionExpression": "#ttl <= :seen",
                "ExpressionAttributeNames": {"#ttl": TTL},
                "ExpressionAttributeValues": {":seen": {"N": ttl}},
            }
        ),
    }


def key_of(table, item):
    schema = dynamodb.describe_table(TableName=table)["Table"]["KeySchema"]
    return {element["AttributeName"]: item[element["AttributeName"]] for element in schema}
