# The scheduled sweep: every minute a function removes the expired items, through the table's expiration-window index (or an index of shards).

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.32"
    }
  }
}

variable "table_name" {
  description = "The table that is guarded"
  type        = string
}

variable "create_table" {
  description = "Whether this makes the table and its index, or both are there already"
  type        = bool
  default     = true
}

variable "attribute" {
  description = "The TTL attribute, a number of epoch seconds"
  type        = string
  default     = "ttl"
}

variable "index_name" {
  description = "The index that is asked. Its sort key is the TTL attribute"
  type        = string
  default     = "expirationWindowIndex"
}

variable "index_key" {
  description = "The index's partition key, which holds windows or shards"
  type        = string
  default     = "expirationWindow"
}

variable "granularity" {
  description = "Length of a window, such as 1m"
  type        = string
  default     = "1m"
}

variable "shards" {
  description = "Shards that windows end with, or that the index's partition key holds"
  type        = number
  default     = 1
}

variable "create_leases" {
  description = "Whether this makes the table mayfly.leases, or it exists in this account and region already (another stack or mayfly guard made it)"
  type        = bool
  default     = true
}

variable "package" {
  description = "Path of the zip file with the program: GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -o bootstrap ./cmd/mayfly-lambda && zip sweep.zip bootstrap"
  type        = string
}

variable "alarm_topics" {
  description = "ARNs of the SNS topics that alarms go to"
  type        = list(string)
  default     = []
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  tables     = "arn:${data.aws_partition.current.partition}:dynamodb:${data.aws_region.current.name}:${data.aws_caller_identity.current.account_id}:table"
  table_arn  = "${local.tables}/${var.table_name}"
  leases_arn = "${local.tables}/mayfly.leases"
  name       = "mayfly-sweep-${substr(replace(var.table_name, ".", "-"), 0, 40)}"
}

resource "aws_dynamodb_table" "guarded" {
  count        = var.create_table ? 1 : 0
  name         = var.table_name
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "itemId"

  attribute {
    name = "itemId"
    type = "S"
  }

  attribute {
    name = var.index_key
    type = "S"
  }

  attribute {
    name = var.attribute
    type = "N"
  }

  global_secondary_index {
    name            = var.index_name
    hash_key        = var.index_key
    range_key       = var.attribute
    projection_type = "KEYS_ONLY" # all that a sweep needs
  }

  ttl { # the safety net
    attribute_name = var.attribute
    enabled        = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "leases" {
  count        = var.create_leases ? 1 : 0
  name         = "mayfly.leases"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "consumer"
  range_key    = "shard"

  attribute {
    name = "consumer"
    type = "S"
  }

  attribute {
    name = "shard"
    type = "S"
  }
}

resource "aws_lambda_function" "sweep" {
  function_name                  = local.name
  filename                       = var.package
  source_code_hash               = filebase64sha256(var.package)
  handler                        = "bootstrap"
  runtime                        = "provided.al2023"
  architectures                  = ["arm64"]
  role                           = aws_iam_role.function.arn
  timeout                        = 300
  memory_size                    = 512
  reserved_concurrent_executions = 1 # runs that overlap would pay twice

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.function.name
  }

  environment {
    variables = {
      MAYFLY_HANDLER     = "sweep"
      MAYFLY_TABLE       = var.table_name
      MAYFLY_ATTRIBUTE   = var.attribute
      MAYFLY_INDEX       = var.index_name
      MAYFLY_GRANULARITY = var.granularity
      MAYFLY_SHARDS      = var.shards
      MAYFLY_ALONE       = "true" # see reserved_concurrent_executions
    }
  }
}

resource "aws_lambda_function_event_invoke_config" "sweep" {
  function_name          = aws_lambda_function.sweep.function_name
  maximum_retry_attempts = 0 # the next minute's run takes up where this one failed

  destination_config {
    on_failure {
      destination = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_iam_role" "function" {
  name_prefix = "mayfly-sweep-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  name = "sweep"
  role = aws_iam_role.function.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Table"
        Effect   = "Allow"
        Action   = ["dynamodb:DeleteItem", "dynamodb:DescribeTable"]
        Resource = local.table_arn
      },
      {
        Sid      = "Index"
        Effect   = "Allow"
        Action   = ["dynamodb:Query", "dynamodb:Scan"]
        Resource = "${local.table_arn}/index/${var.index_name}"
      },
      {
        Sid      = "Leases"
        Effect   = "Allow"
        Action   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
        Resource = local.leases_arn
      },
      {
        Sid      = "Logs"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = "${aws_cloudwatch_log_group.function.arn}:*"
      },
      {
        Sid      = "DeadLetters"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = aws_sqs_queue.dead_letters.arn
      },
    ]
  })
}

resource "aws_cloudwatch_log_group" "function" {
  name              = "/mayfly/${local.name}"
  retention_in_days = 30
}

resource "aws_cloudwatch_event_rule" "every_minute" {
  name                = local.name
  description         = "Sweeps ${var.table_name}"
  schedule_expression = "rate(1 minute)"
  state               = "ENABLED"
}

resource "aws_cloudwatch_event_target" "sweep" {
  rule      = aws_cloudwatch_event_rule.every_minute.name
  target_id = "sweep"
  arn       = aws_lambda_function.sweep.arn

  input_transformer {
    input_paths    = { time = "$.time" }
    input_template = "{\"time\": <time>}"
  }

  dead_letter_config {
    arn = aws_sqs_queue.dead_letters.arn
  }
}

resource "aws_lambda_permission" "rule" {
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.sweep.function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.every_minute.arn
}

resource "aws_sqs_queue" "dead_letters" {
  name                      = local.name
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "events.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.dead_letters.arn
      Condition = { ArnEquals = { "aws:SourceArn" = aws_cloudwatch_event_rule.every_minute.arn } }
    }]
  })
}

resource "aws_cloudwatch_metric_alarm" "failing" {
  alarm_name          = "${local.name}-failing"
  alarm_description   = "Sweeps of ${var.table_name} fail"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.sweep.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "missing" {
  alarm_name          = "${local.name}-missing"
  alarm_description   = "Nothing sweeps ${var.table_name}"
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = aws_lambda_function.sweep.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  alarm_actions       = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "slow" {
  alarm_name          = "${local.name}-slow"
  alarm_description   = "A sweep of ${var.table_name} takes longer than the minute that it has"
  namespace           = "AWS/Lambda"
  metric_name         = "Duration"
  dimensions          = { FunctionName = aws_lambda_function.sweep.function_name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 60000
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  alarm_name          = "${local.name}-dead-letters"
  alarm_description   = "Sweeps of ${var.table_name} were given up"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.dead_letters.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
}

output "function_name" {
  value = aws_lambda_function.sweep.function_name
}

output "dead_letter_queue" {
  value = aws_sqs_queue.dead_letters.url
}
