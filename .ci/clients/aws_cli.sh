#!/usr/bin/env bash
# Uses the endpoint named by MAYFLY_ENDPOINT as someone at a terminal would, and exits non-zero when something is not as it should be.
# Credentials and region are the usual AWS_* variables, with made-up ones where they are not set. Only what Debian 12's AWS CLI knows is used.
set -euo pipefail

: "${MAYFLY_ENDPOINT:?names no endpoint}"
export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-any} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-any}
export AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-us-east-1} AWS_PAGER='' AWS_MAX_ATTEMPTS=1

table=cli-$$-$RANDOM
made=

db() { aws dynamodb --endpoint-url "$MAYFLY_ENDPOINT" "$@"; }
streams() { aws dynamodbstreams --endpoint-url "$MAYFLY_ENDPOINT" "$@"; }
checked() { echo "aws cli: $*"; }
fail() {
	echo "aws cli: $*" >&2
	exit 1
}
expect() { [ "$1" = "$2" ] || fail "$3: got '$1', want '$2'"; }
cleanup() { [ -z "$made" ] || db delete-table --table-name "$table" >/dev/null || true; }
trap cleanup EXIT

# refused NAME COMMAND...: the command fails with that error.
refused() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then fail "'$*' succeeded, want $name"; fi
	case $said in *"($name)"*) ;; *) fail "'$*': got $said, want $name" ;; esac
}

# until_is WANT WHAT COMMAND...: the command prints WANT soon.
until_is() {
	local want=$1 what=$2 got
	shift 2
	for _ in $(seq 20); do
		got=$("$@")
		[ "$got" != "$want" ] || return 0
		sleep 0.2
	done
	fail "$what: got '$got', want '$want'"
}

db create-table --table-name "$table" --billing-mode PAY_PER_REQUEST \
	--attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=N \
	--key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE \
	--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES >/dev/null
made=yes
db wait table-exists --table-name "$table"
stream=$(db describe-table --table-name "$table" --query Table.LatestStreamArn --output text)
checked 'create-table, wait, describe-table'

db update-time-to-live --table-name "$table" --time-to-live-specification Enabled=true,AttributeName=expires >/dev/null
until_is 'ENABLED expires' 'TTL' bash -c "aws dynamodb --endpoint-url '$MAYFLY_ENDPOINT' describe-time-to-live --table-name '$table' \
	--query 'TimeToLiveDescription.[TimeToLiveStatus,AttributeName]' --output text | tr '\t' ' '"
checked 'update-time-to-live, describe-time-to-live'

db put-item --table-name "$table" --item '{"pk":{"S":"a"},"sk":{"N":"1"},"v":{"L":[{"S":"é"},{"NULL":true}]}}'
got=$(db get-item --table-name "$table" --key '{"pk":{"S":"a"},"sk":{"N":"1.0"}}' --consistent-read --query 'Item.v.L[0].S' --output text)
expect "$got" 'é' 'get-item'
got=$(db update-item --table-name "$table" --key '{"pk":{"S":"a"},"sk":{"N":"1"}}' --update-expression 'ADD n :n' \
	--expression-attribute-values '{":n":{"N":"2.50"}}' --return-values UPDATED_NEW --query Attributes.n.N --output text)
expect "$got" 2.5 'update-item'
checked 'put-item, get-item, update-item'

db batch-write-item --request-items "{\"$table\":[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"a\"},\"sk\":{\"N\":\"2\"}}}},{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"a\"},\"sk\":{\"N\":\"10\"}}}}]}" >/dev/null
# The CLI follows pages by itself: three of one item each.
got=$(db query --table-name "$table" --key-condition-expression 'pk = :p' --expression-attribute-values '{":p":{"S":"a"}}' --page-size 1 \
	--query 'Items[].sk.N' --output text | tr '\t\n' '  ' | xargs)
expect "$got" '1 2 10' 'query'
got=$(db scan --table-name "$table" --filter-expression 'sk > :n' --expression-attribute-values '{":n":{"N":"1"}}' --query Count --output text)
expect "$got" 2 'scan'
checked 'batch-write-item, query over pages, scan'

db transact-write-items --transact-items "[{\"Delete\":{\"TableName\":\"$table\",\"Key\":{\"pk\":{\"S\":\"a\"},\"sk\":{\"N\":\"10\"}},\"ConditionExpression\":\"attribute_exists(pk)\"}}]"
refused TransactionCanceledException db transact-write-items \
	--transact-items "[{\"Delete\":{\"TableName\":\"$table\",\"Key\":{\"pk\":{\"S\":\"a\"},\"sk\":{\"N\":\"10\"}},\"ConditionExpression\":\"attribute_exists(pk)\"}}]"
checked 'transact-write-items'

db execute-statement --statement "INSERT INTO \"$table\" VALUE {'pk': 'sql', 'sk': ?}" --parameters '[{"N":"1"}]' >/dev/null
refused DuplicateItemException db execute-statement --statement "INSERT INTO \"$table\" VALUE {'pk': 'sql', 'sk': 1}"
got=$(db execute-statement --statement "UPDATE \"$table\" SET n = 5 WHERE pk = 'sql' AND sk = 1 RETURNING ALL NEW *" --query 'Items[0].n.N' --output text)
expect "$got" 5 'execute-statement'
got=$(db batch-execute-statement --statements "[{\"Statement\":\"SELECT n FROM \\\"$table\\\" WHERE pk = 'sql' AND sk = 1\"}]" --query 'Responses[0].Item.n.N' --output text)
expect "$got" 5 'batch-execute-statement'
db execute-transaction --transact-statements "[{\"Statement\":\"DELETE FROM \\\"$table\\\" WHERE pk = 'sql' AND sk = 1\"}]" >/dev/null
checked 'execute-statement, batch-execute-statement, execute-transaction'

refused ResourceNotFoundException db describe-table --table-name "$table-none"
refused ConditionalCheckFailedException db delete-item --table-name "$table" --key '{"pk":{"S":"a"},"sk":{"N":"1"}}' --condition-expression 'attribute_not_exists(pk)'
refused ValidationException db get-item --table-name "$table" --key '{"pk":{"S":"a"}}'
checked 'errors by name'

db put-item --table-name "$table" --item "{\"pk\":{\"S\":\"gone\"},\"sk\":{\"N\":\"1\"},\"expires\":{\"N\":\"$(($(date +%s) - 1))\"}}"
left() { db get-item --table-name "$table" --key '{"pk":{"S":"gone"},"sk":{"N":"1"}}' --consistent-read --query Item.pk.S --output text; }
until_is None 'expiry' left
removals() {
	local shard iterator
	for shard in $(streams describe-stream --stream-arn "$stream" --query 'StreamDescription.Shards[].ShardId' --output text); do
		iterator=$(streams get-shard-iterator --stream-arn "$stream" --shard-id "$shard" --shard-iterator-type TRIM_HORIZON --query ShardIterator --output text)
		streams get-records --shard-iterator "$iterator" --query "Records[?userIdentity.Type=='Service'].dynamodb.Keys.pk.S" --output text
	done | xargs
}
until_is gone 'the record of the removal' removals
checked 'an item expires, and its removal is in the stream, marked as the service'\''s'

# The server's clock, which tests may have moved.
now=$(date -d "$(curl -sI "$MAYFLY_ENDPOINT/" | tr -d '\r' | sed -n 's/^[Dd]ate: //p')" +%s)
removed() {
	aws cloudwatch --endpoint-url "$MAYFLY_ENDPOINT" get-metric-statistics --namespace AWS/DynamoDB --metric-name TimeToLiveDeletedItemCount \
		--dimensions "Name=TableName,Value=$table" --start-time "$((now - 3600))" --end-time "$((now + 60))" --period 3660 --statistics Sum \
		--query 'Datapoints[].Sum' --output text
}
until_is 1.0 'the metric of the removal' removed
checked 'cloudwatch get-metric-statistics'

scaling() {
	local command=$1
	shift
	aws application-autoscaling --endpoint-url "$MAYFLY_ENDPOINT" "$command" --service-namespace dynamodb "$@"
}
db update-table --table-name "$table" --billing-mode PROVISIONED --provisioned-throughput ReadCapacityUnits=5,WriteCapacityUnits=5 >/dev/null
until_is ACTIVE 'the billing mode' db describe-table --table-name "$table" --query Table.TableStatus --output text
target=(--resource-id "table/$table" --scalable-dimension dynamodb:table:ReadCapacityUnits)
scaling register-scalable-target "${target[@]}" --min-capacity 2 --max-capacity 50 >/dev/null
got=$(scaling describe-scalable-targets --resource-ids "table/$table" --query 'ScalableTargets[].[MinCapacity,MaxCapacity]' --output text | xargs)
expect "$got" '2 50' 'describe-scalable-targets'
scaling put-scaling-policy "${target[@]}" --policy-name seventy --policy-type TargetTrackingScaling --target-tracking-scaling-policy-configuration \
	'{"TargetValue":70,"PredefinedMetricSpecification":{"PredefinedMetricType":"DynamoDBReadCapacityUtilization"}}' >/dev/null
got=$(scaling describe-scaling-policies --resource-id "table/$table" --query 'ScalingPolicies[].PolicyName' --output text)
expect "$got" seventy 'describe-scaling-policies'
got=$(scaling describe-scaling-activities --resource-id "table/$table" --query 'length(ScalingActivities)')
expect "$got" 0 'describe-scaling-activities'
scaling deregister-scalable-target "${target[@]}"
refused ObjectNotFoundException scaling delete-scaling-policy "${target[@]}" --policy-name seventy
checked 'application-autoscaling: a target and a policy'

db delete-table --table-name "$table" >/dev/null
made=
db wait table-not-exists --table-name "$table"
checked 'delete-table, wait'
