"""Uses the endpoint named by MAYFLY_ENDPOINT as a Python application would, and exits non-zero when something is not as it should be.

Credentials and region are boto3's usual AWS_* variables, with made-up ones where they are not set. Only what Debian 12's boto3 knows is used.
"""

import os
import sys
import time
import uuid
from datetime import timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime

import boto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.config import Config

ENDPOINT = os.environ.get("MAYFLY_ENDPOINT")
SOON = 30  # seconds to wait for what the endpoint does by itself


def connect(service):
    return boto3.client(service, **settings())


def settings():
    return {
        "endpoint_url": ENDPOINT,
        "region_name": os.environ.get("AWS_REGION", "us-east-1"),
        "aws_access_key_id": os.environ.get("AWS_ACCESS_KEY_ID", "any"),
        "aws_secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY", "any"),
        "config": Config(retries={"max_attempts": 1}),
    }


def checked(what):
    print("boto3:", what)


def expect(got, want, what):
    if got != want:
        sys.exit(f"boto3: {what}: got {got!r}, want {want!r}")


def refused(error, what, call, **arguments):
    """Checks that a call raises the given class of error."""
    try:
        call(**arguments)
    except error as e:
        return e
    sys.exit(f"boto3: {what} succeeded, want {error.__name__}")


def until(what, condition):
    """Waits for what happens behind the endpoint's answers."""
    deadline = time.monotonic() + SOON
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            sys.exit(f"boto3: {what}: not after {SOON} s")
        time.sleep(0.02)


def create(db, name):
    db.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": "device", "AttributeType": "S"},
            {"AttributeName": "at", "AttributeType": "N"},
            {"AttributeName": "kind", "AttributeType": "S"},
        ],
        KeySchema=[{"AttributeName": "device", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "byKind",
                "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=[{"Key": "made-by", "Value": "boto3"}],
    )
    db.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    table = db.describe_table(TableName=name)["Table"]
    expect(table["TableStatus"], "ACTIVE", "status")
    tags = db.list_tags_of_resource(ResourceArn=table["TableArn"])["Tags"]
    expect(tags, [{"Key": "made-by", "Value": "boto3"}], "tags")
    checked("create_table with an index, a stream and tags; the waiter")
    return table


def enable_ttl(db, name):
    specification = {"Enabled": True, "AttributeName": "expires"}
    answer = db.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
    expect(answer["TimeToLiveSpecification"], specification, "echo of the TTL specification")
    until("TTL", lambda: db.describe_time_to_live(TableName=name)["TimeToLiveDescription"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"})
    checked("update_time_to_live, describe_time_to_live")


def single_items(db, table):
    """The resource interface: Python's types for DynamoDB's."""
    item = {"device": "a", "at": 1, "n": Decimal("12.5"), "tags": {"x", "y"}, "raw": b"\x00\xff", "deep": {"list": [1, "two", None, True]}, "nothing": None}
    table.put_item(Item=item, ConditionExpression=Attr("device").not_exists())
    got = table.get_item(Key={"device": "a", "at": 1}, ConsistentRead=True)["Item"]
    expect(bytes(got["raw"].value), item["raw"], "binary")
    expect({k: v for k, v in got.items() if k != "raw"}, {k: v for k, v in item.items() if k != "raw"}, "item")
    changed = table.update_item(
        Key={"device": "a", "at": 1},
        UpdateExpression="SET deep.#l[0] = :v ADD n :one REMOVE nothing",
        ExpressionAttributeNames={"#l": "list"},
        ExpressionAttributeValues={":v": "one", ":one": 1},
        ReturnValues="ALL_NEW",
    )["Attributes"]
    expect((changed["n"], changed["deep"]["list"][0], "nothing" in changed), (Decimal("13.5"), "one", False), "updated item")
    old = table.delete_item(Key={"device": "a", "at": 1}, ReturnValues="ALL_OLD")["Attributes"]
    expect(old["n"], Decimal("13.5"), "deleted item")
    expect("Item" in table.get_item(Key={"device": "a", "at": 1}), False, "item after its deletion")
    checked("put_item, get_item, update_item, delete_item")


def many_items(db, table, name):
    with table.batch_writer() as batch:
        for at in range(60):
            batch.put_item(Item={"device": "b", "at": at, "kind": "even" if at % 2 == 0 else "odd"})
    pages = list(
        db.get_paginator("query").paginate(
            TableName=name,
            KeyConditionExpression="device = :d AND #at >= :from",
            ExpressionAttributeNames={"#at": "at"},
            ExpressionAttributeValues={":d": {"S": "b"}, ":from": {"N": "10"}},
            ScanIndexForward=False,
            PaginationConfig={"PageSize": 7},
        )
    )
    ats = [int(item["at"]["N"]) for page in pages for item in page["Items"]]
    expect(ats, list(range(59, 9, -1)), "pages of a query")
    odd = until("the index", lambda: items_of(table.query(IndexName="byKind", KeyConditionExpression=Key("kind").eq("odd") & Key("at").lt(10)), 5))
    expect([int(i["at"]) for i in odd], [1, 3, 5, 7, 9], "query of the index")
    expect(table.scan(FilterExpression=Attr("at").between(0, 4), Select="COUNT")["Count"], 5, "filtered count")
    answer = db.batch_get_item(RequestItems={name: {"Keys": [{"device": {"S": "b"}, "at": {"N": str(at)}} for at in range(58, 62)]}})
    expect(len(answer["Responses"][name]), 2, "batch_get_item")
    checked("batch_writer, paginator, query of table and index, scan, batch_get_item")


def items_of(answer, count):
    """The answer's items, once there are enough of them: an index may lag."""
    return answer["Items"] if answer["Count"] == count else None


def index_changes(db, name):
    """An index is added to the table and removed, with the wait that Terraform and migrations make."""
    index = "byAt"
    create = {
        "IndexName": index,
        "KeySchema": [{"AttributeName": "at", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kind"]},
    }
    answer = db.update_table(
        TableName=name, AttributeDefinitions=[{"AttributeName": "at", "AttributeType": "N"}], GlobalSecondaryIndexUpdates=[{"Create": create}]
    )["TableDescription"]
    expect((answer["TableStatus"], status_of(answer, index)), ("UPDATING", "CREATING"), "answer to the creation of an index")
    db.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    until("the new index", lambda: status_of(db.describe_table(TableName=name)["Table"], index) == "ACTIVE")
    query = {"TableName": name, "IndexName": index, "KeyConditionExpression": "#at = :a", "ExpressionAttributeNames": {"#at": "at"}, "ExpressionAttributeValues": {":a": {"N": "5"}}}
    found = until("the items in the new index", lambda: db.query(**query)["Items"])
    expect(found, [{"device": {"S": "b"}, "at": {"N": "5"}, "kind": {"S": "odd"}}], "query of the new index")
    answer = db.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": index}}])["TableDescription"]
    expect(status_of(answer, index), "DELETING", "answer to the removal of an index")
    until("the removal of the index", lambda: status_of(db.describe_table(TableName=name)["Table"], index) is None)
    invalid = refused(db.exceptions.ClientError, "a query of the removed index", db.query, **query)
    expect(invalid.response["Error"], {"Code": "ValidationException", "Message": "The table does not have the specified index: " + index}, "error")
    checked("update_table adds an index to a filled table and removes it; the waiter")


def status_of(table, index):
    """The status of a table's global index; None when there is none of that name."""
    return {i["IndexName"]: i["IndexStatus"] for i in table.get("GlobalSecondaryIndexes", [])}.get(index)


def transactions(db, name):
    put = {"Put": {"TableName": name, "Item": {"device": {"S": "t"}, "at": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(device)"}}
    other = {"Put": {"TableName": name, "Item": {"device": {"S": "t"}, "at": {"N": "2"}}}}
    token = str(uuid.uuid4())
    for _ in range(2):
        db.transact_write_items(TransactItems=[put, other], ClientRequestToken=token)
    canceled = refused(db.exceptions.TransactionCanceledException, "a transaction whose condition is false", db.transact_write_items, TransactItems=[other, put])
    expect([r["Code"] for r in canceled.response["CancellationReasons"]], ["None", "ConditionalCheckFailed"], "cancellation reasons")
    got = db.transact_get_items(TransactItems=[{"Get": {"TableName": name, "Key": {"device": {"S": "t"}, "at": {"N": at}}}} for at in ("2", "3")])
    expect([("Item" in r) for r in got["Responses"]], [True, False], "transact_get_items")
    checked("transact_write_items with a token and with a false condition, transact_get_items")


def statements(db, name):
    insert = f"""INSERT INTO "{name}" VALUE {{'device': ?, 'at': ?}}"""
    db.execute_statement(Statement=insert, Parameters=[{"S": "sql"}, {"N": "1"}])
    refused(db.exceptions.DuplicateItemException, "a second INSERT", db.execute_statement, Statement=insert, Parameters=[{"S": "sql"}, {"N": "1"}])
    got = db.batch_execute_statement(Statements=[{"Statement": f"""SELECT "at" FROM "{name}" WHERE device = 'sql' AND "at" = {at}"""} for at in (1, 2)])
    expect([r.get("Item") for r in got["Responses"]], [{"at": {"N": "1"}}, None], "batch_execute_statement")
    db.execute_transaction(TransactStatements=[{"Statement": f"""DELETE FROM "{name}" WHERE device = 'sql' AND "at" = 1"""}])
    expect(db.execute_statement(Statement=f"""SELECT * FROM "{name}" WHERE device = 'sql'""")["Items"], [], "execute_statement")
    checked("execute_statement, batch_execute_statement, execute_transaction")


def errors(db, table, name):
    refused(db.exceptions.ResourceNotFoundException, "a read of an unknown table", db.get_item, TableName=name + "-none", Key={"a": {"S": "a"}})
    refused(db.exceptions.ResourceInUseException, "a second table of that name", create, db=db, name=name)
    refused(db.exceptions.ConditionalCheckFailedException, "a put whose condition is false", table.put_item, Item={"device": "t", "at": 1}, ConditionExpression=Attr("device").not_exists())
    invalid = refused(db.exceptions.ClientError, "an expression with a reserved word", db.scan, TableName=name, FilterExpression="name = device")
    expect(invalid.response["Error"], {"Code": "ValidationException", "Message": "Invalid FilterExpression: Attribute name is a reserved keyword; reserved keyword: name"}, "error")
    checked("errors by class")


def expiry_and_stream(db, table, arn):
    """An item is written, expires, and its end is read from the stream."""
    table.put_item(Item={"device": "gone", "at": 1, "expires": int(time.time()) - 1})
    until("expiry", lambda: "Item" not in table.get_item(Key={"device": "gone", "at": 1}, ConsistentRead=True))
    streams = connect("dynamodbstreams")

    def removal():
        for record in records_of(streams, arn):
            if record["eventName"] == "REMOVE" and record["dynamodb"]["Keys"]["device"] == {"S": "gone"}:
                return record
        return None

    record = until("the record of the removal", removal)
    expect(record["userIdentity"], {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}, "userIdentity")
    expect("expires" in record["dynamodb"]["OldImage"], True, "old image")
    checked("an item expires, and its removal is in the stream, marked as the service's")


def records_of(streams, arn):
    """All records of a stream, shard by shard."""
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        while iterator:
            page = streams.get_records(ShardIterator=iterator)
            yield from page["Records"]
            iterator = page.get("NextShardIterator") if page["Records"] else None


def backups(db, table, name):
    table.put_item(Item={"device": "saved", "at": 1, "kind": "backup"})
    details = db.create_backup(TableName=name, BackupName="boto3")["BackupDetails"]
    arn = details["BackupArn"]
    expect(details["BackupName"], "boto3", "the name of a backup")
    until("the backup", lambda: db.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupStatus"] == "AVAILABLE")
    described = db.describe_backup(BackupArn=arn)["BackupDescription"]
    expect(described["SourceTableDetails"]["TableName"], name, "the table of a backup")
    expect(described["SourceTableFeatureDetails"]["GlobalSecondaryIndexes"][0]["IndexName"], "byKind", "the index of a backup")
    # The server's clock, which tests may have moved, dates a backup.
    listed = db.list_backups(TableName=name, TimeRangeUpperBound=details["BackupCreationDateTime"] + timedelta(hours=1))["BackupSummaries"]
    expect([b["BackupArn"] for b in listed], [arn], "the backups of the table")
    table.delete_item(Key={"device": "saved", "at": 1})

    copy = name + "-copy"
    restored = db.restore_table_from_backup(TargetTableName=copy, BackupArn=arn, GlobalSecondaryIndexOverride=[])["TableDescription"]
    expect(restored["TableStatus"], "CREATING", "a table under restore")
    expect(restored["RestoreSummary"]["SourceBackupArn"], arn, "the source of a restore")
    try:
        db.get_waiter("table_exists").wait(TableName=copy, WaiterConfig={"Delay": 1})
        got = boto3.resource("dynamodb", **settings()).Table(copy).get_item(Key={"device": "saved", "at": 1}, ConsistentRead=True)
        expect(got.get("Item"), {"device": "saved", "at": 1, "kind": "backup"}, "a restored item")
        expect("GlobalSecondaryIndexes" in db.describe_table(TableName=copy)["Table"], False, "an index that was left out")
        refused(db.exceptions.TableAlreadyExistsException, "a restore into a table", db.restore_table_from_backup, TargetTableName=copy, BackupArn=arn)
        expect(db.delete_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupStatus"], "DELETED", "a deleted backup")
        refused(db.exceptions.BackupNotFoundException, "describing a deleted backup", db.describe_backup, BackupArn=arn)
        refused(db.exceptions.TableNotFoundException, "a backup of no table", db.create_backup, TableName=name + "-none", BackupName="boto3")
    finally:
        db.delete_table(TableName=copy)
    checked("backups: created, described, listed, restored, deleted")


def point_in_time(db, table, name):
    table.put_item(Item={"device": "timed", "at": 1, "kind": "first"})
    # Debian's boto3 does not know RecoveryPeriodInDays yet.
    spec = {"PointInTimeRecoveryEnabled": True}
    on = db.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=spec)["ContinuousBackupsDescription"]
    expect(on["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"], "ENABLED", "point-in-time recovery")
    table.put_item(Item={"device": "timed", "at": 1, "kind": "second"})
    window = db.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    copy = name + "-timed"
    early = window["EarliestRestorableDateTime"] - timedelta(days=1)
    refused(db.exceptions.InvalidRestoreTimeException, "a restore to before", db.restore_table_to_point_in_time,
            SourceTableName=name, TargetTableName=copy, RestoreDateTime=early)
    restored = db.restore_table_to_point_in_time(SourceTableName=name, TargetTableName=copy, UseLatestRestorableTime=True)["TableDescription"]
    expect(restored["TableStatus"], "CREATING", "a table under restore")
    try:
        db.get_waiter("table_exists").wait(TableName=copy, WaiterConfig={"Delay": 1})
        got = boto3.resource("dynamodb", **settings()).Table(copy).get_item(Key={"device": "timed", "at": 1}, ConsistentRead=True)
        expect(got.get("Item"), {"device": "timed", "at": 1, "kind": "second"}, "a restored item")
        off = db.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
        status = off["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
        expect(status, "DISABLED", "point-in-time recovery")
        refused(db.exceptions.PointInTimeRecoveryUnavailableException, "a restore without a history", db.restore_table_to_point_in_time,
                SourceTableName=name, TargetTableName=copy + "-none", UseLatestRestorableTime=True)
    finally:
        db.delete_table(TableName=copy)
    table.delete_item(Key={"device": "timed", "at": 1})
    checked("point-in-time recovery: on, restored, off")


def exports(db, table, name):
    """Exports the table to the bucket named exports, and imports it from there."""
    refused(db.exceptions.PointInTimeRecoveryUnavailableException, "an export without a history", db.export_table_to_point_in_time,
            TableArn=table.table_arn, S3Bucket="exports")
    db.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
    item = {"device": "exported", "at": Decimal("1.5"), "kind": "export", "parts": {b"\x00\xff"}, "more": [None, True, {"é": "ü"}]}
    table.put_item(Item=item)
    request = {"TableArn": table.table_arn, "S3Bucket": "exports", "S3Prefix": name, "ClientToken": name}
    begun = db.export_table_to_point_in_time(**request)["ExportDescription"]
    expect(begun["ExportStatus"], "IN_PROGRESS", "the status of an export")
    expect(begun["S3Prefix"], name, "the prefix of an export")
    arn = begun["ExportArn"]
    expect(db.export_table_to_point_in_time(**request)["ExportDescription"]["ExportArn"], arn, "the export of the same token")
    refused(db.exceptions.ExportConflictException, "an export with the token of another", db.export_table_to_point_in_time, **{**request, "S3Prefix": "other"})
    table.put_item(Item={"device": "later", "at": 1})

    def ended(describe):
        described = describe()
        return described if described["ExportStatus"] != "IN_PROGRESS" else None

    done = until("the export", lambda: ended(lambda: db.describe_export(ExportArn=arn)["ExportDescription"]))
    expect(done["ExportStatus"], "COMPLETED", "the export")
    expect(done["ExportManifest"].startswith(name + "/AWSDynamoDB/"), True, "the manifest's place")
    listed = db.list_exports(TableArn=table.table_arn)["ExportSummaries"]
    expect([e["ExportArn"] for e in listed], [arn], "the exports of the table")
    refused(db.exceptions.ExportNotFoundException, "describing no export", db.describe_export, ExportArn=arn[:-8] + "00000000")

    copy = name + "-imported"
    parameters = {
        "TableName": copy,
        "KeySchema": [{"AttributeName": "device", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
        "AttributeDefinitions": [{"AttributeName": "device", "AttributeType": "S"}, {"AttributeName": "at", "AttributeType": "N"},
                                 {"AttributeName": "kind", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [{"IndexName": "byKind", "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}],
    }
    source = {"S3Bucket": "exports", "S3KeyPrefix": "/".join(done["ExportManifest"].split("/")[:-1]) + "/data/"}
    begun = db.import_table(S3BucketSource=source, InputFormat="DYNAMODB_JSON", InputCompressionType="GZIP", TableCreationParameters=parameters)
    begun = begun["ImportTableDescription"]
    expect(begun["ImportStatus"], "IN_PROGRESS", "the status of an import")
    try:
        refused(db.exceptions.ResourceInUseException, "an import into a table", db.import_table, S3BucketSource=source, InputFormat="DYNAMODB_JSON",
                TableCreationParameters=parameters)
        db.get_waiter("table_exists").wait(TableName=copy, WaiterConfig={"Delay": 1})
        done = db.describe_import(ImportArn=begun["ImportArn"])["ImportTableDescription"]
        expect([done["ImportStatus"], done["ErrorCount"]], ["COMPLETED", 0], "the import")
        expect(done["TableCreationParameters"]["GlobalSecondaryIndexes"][0]["IndexName"], "byKind", "the index of an import")
        imported = boto3.resource("dynamodb", **settings()).Table(copy)
        expect(imported.query(IndexName="byKind", KeyConditionExpression=Key("kind").eq("export"))["Items"], [item], "an imported item, by its index")
        expect("Item" in imported.get_item(Key={"device": "later", "at": 1}), False, "an item from after the export")
        expect(imported.scan(Select="COUNT")["Count"], done["ImportedItemCount"], "the number of items")
        listed = db.list_imports(TableArn=done["TableArn"])["ImportSummaryList"]
        expect([i["ImportArn"] for i in listed], [done["ImportArn"]], "the imports of the table")
        refused(db.exceptions.ImportNotFoundException, "describing no import", db.describe_import, ImportArn=done["ImportArn"][:-8] + "00000000")
    finally:
        db.delete_table(TableName=copy)
    for key in [{"device": "exported", "at": Decimal("1.5")}, {"device": "later", "at": 1}]:
        table.delete_item(Key=key)
    db.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})
    checked("exports and imports: begun, described, listed, compared")


def metrics(db, name):
    """Reads what the checks before have consumed from CloudWatch, by the server's clock, which tests may have moved."""
    date = parsedate_to_datetime(db.list_tables()["ResponseMetadata"]["HTTPHeaders"]["date"])
    span = {"StartTime": date - timedelta(hours=1), "EndTime": date + timedelta(minutes=1)}
    dimensions = [{"Name": "TableName", "Value": name}]
    cloudwatch = connect("cloudwatch")
    listed = [m for page in cloudwatch.get_paginator("list_metrics").paginate(Namespace="AWS/DynamoDB", Dimensions=dimensions) for m in page["Metrics"]]
    expect({m["MetricName"] for m in listed} >= {"ConsumedWriteCapacityUnits", "TimeToLiveDeletedItemCount", "SuccessfulRequestLatency"}, True, "metrics")
    metric = {"Namespace": "AWS/DynamoDB", "MetricName": "TimeToLiveDeletedItemCount", "Dimensions": dimensions}
    queries = [{"Id": "removed", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}]
    result = cloudwatch.get_metric_data(MetricDataQueries=queries, **span)["MetricDataResults"][0]
    expect([result["Id"], result["StatusCode"], sum(result["Values"]) >= 1], ["removed", "Complete", True], "removals")
    points = cloudwatch.get_metric_statistics(Statistics=["Sum", "SampleCount"], Period=3660, **metric, **span)["Datapoints"]
    expect([p["Sum"] for p in points], [sum(result["Values"])], "removals by statistics")
    error = refused(cloudwatch.exceptions.ClientError, "no statistics", cloudwatch.get_metric_statistics, Period=60, **metric, **span)
    expect(error.response["Error"]["Code"], "InvalidParameterCombination", "the code of an error")
    checked("cloudwatch: list_metrics, get_metric_data, get_metric_statistics")


def autoscaling(db, name):
    """A scalable target and a policy of a provisioned table, by the service's own names and errors."""
    scaled = name + "-scaled"
    db.create_table(
        TableName=scaled,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    try:
        db.get_waiter("table_exists").wait(TableName=scaled, WaiterConfig={"Delay": 1})
        client = connect("application-autoscaling")
        target = {"ServiceNamespace": "dynamodb", "ResourceId": "table/" + scaled, "ScalableDimension": "dynamodb:table:WriteCapacityUnits"}
        configuration = {"TargetValue": 70.0, "PredefinedMetricSpecification": {"PredefinedMetricType": "DynamoDBWriteCapacityUtilization"}}
        policy = {"PolicyName": "seventy", "PolicyType": "TargetTrackingScaling", "TargetTrackingScalingPolicyConfiguration": configuration, **target}
        refused(client.exceptions.ObjectNotFoundException, "a policy without a target", client.put_scaling_policy, **policy)
        refused(client.exceptions.ValidationException, "crossed bounds", client.register_scalable_target, MinCapacity=9, MaxCapacity=8, **target)
        client.register_scalable_target(MinCapacity=2, MaxCapacity=50, **target)
        listed = client.describe_scalable_targets(ServiceNamespace="dynamodb", ResourceIds=[target["ResourceId"]])["ScalableTargets"]
        expect([(t["ScalableDimension"], t["MinCapacity"], t["MaxCapacity"]) for t in listed], [(target["ScalableDimension"], 2, 50)], "targets")
        arn = client.put_scaling_policy(**policy)["PolicyARN"]
        pages = client.get_paginator("describe_scaling_policies").paginate(ServiceNamespace="dynamodb", ResourceId=target["ResourceId"])
        policies = [p for page in pages for p in page["ScalingPolicies"]]
        expect([(p["PolicyARN"], p["TargetTrackingScalingPolicyConfiguration"]) for p in policies], [(arn, configuration)], "policies")
        activities = client.describe_scaling_activities(ServiceNamespace="dynamodb", ResourceId=target["ResourceId"])["ScalingActivities"]
        expect(activities, [], "activities of an idle table")
        client.delete_scaling_policy(PolicyName="seventy", **target)
        client.deregister_scalable_target(**target)
        refused(client.exceptions.ObjectNotFoundException, "a second removal of the target", client.deregister_scalable_target, **target)
    finally:
        db.delete_table(TableName=scaled)
    checked("application-autoscaling: a target and a policy, registered, described, deleted")


def main():
    if not ENDPOINT:
        sys.exit("boto3: MAYFLY_ENDPOINT names no endpoint")
    db = connect("dynamodb")
    name = "boto3-" + uuid.uuid4().hex[:12]
    table = boto3.resource("dynamodb", **settings()).Table(name)
    description = create(db, name)
    try:
        enable_ttl(db, name)
        single_items(db, table)
        many_items(db, table, name)
        index_changes(db, name)
        transactions(db, name)
        statements(db, name)
        errors(db, table, name)
        backups(db, table, name)
        point_in_time(db, table, name)
        exports(db, table, name)
        expiry_and_stream(db, table, description["LatestStreamArn"])
        metrics(db, name)
        autoscaling(db, name)
    finally:
        db.delete_table(TableName=name)
    db.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    checked("delete_table; the waiter")


main()
