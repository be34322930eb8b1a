# One schedule per item: a function on the table's stream keeps an EventBridge schedule for each item with a TTL. The schedule deletes the item at that instant, unless its TTL has changed.

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
  description = "The table that is guarded; up to 58 characters, since the group of its schedules is named after it"
  type        = string

  validation {
    condition     = length(var.table_name) <= 58
    error_message = "The table's name is longer than 58 characters."
  }
}

variable "stream_arn" {
  description = "The stream of a table that is there already, NEW_AND_OLD_IMAGES; empty to make a table"
  type        = string
  default     = ""
}

variable "attribute" {
  description = "The TTL attribute, a number of epoch seconds"
  type        = string
  default     = "ttl"
}

variable "package" {
  description = "Path of the zip file with the program: GOOS=linux GOARCH=arm64 CGO_ENABLED=0 go build -o bootstrap ./cmd/mayfly-lambda && zip stream.zip bootstrap"
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
  account    = data.aws_caller_identity.current.account_id
  partition  = data.aws_partition.current.partition
  region     = data.aws_region.current.name
  table_arn  = "arn:${local.partition}:dynamodb:${local.region}:${local.account}:table/${var.table_name}"
  stream_arn = var.stream_arn == "" ? aws_dynamodb_table.guarded[0].stream_arn : var.stream_arn
  name       = "mayfly-stream-${substr(replace(var.table_name, ".", "-"), 0, 40)}"
}

resource "aws_dynamodb_table" "guarded" {
  count            = var.stream_arn == "" ? 1 : 0
  name             = var.table_name
  billing_mode     = "PAY_PER_REQUEST"
  hash_key         = "PK"
  range_key        = "SK"
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  ttl { # the safety net, for what happens while the function is down for more than a day
    attribute_name = var.attribute
    enabled        = true
  }

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_scheduler_schedule_group" "guarded" {
  name = "guard.${var.table_name}"
}

resource "aws_lambda_function" "stream" {
  function_name    = local.name
  filename         = var.package
  source_code_hash = filebase64sha256(var.package)
  handler          = "bootstrap"
  runtime          = "provided.al2023"
  architectures    = ["arm64"]
  role             = aws_iam_role.function.arn
  timeout          = 60
  memory_size      = 512

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.function.name
  }

  environment {
    variables = {
      MAYFLY_HANDLER      = "stream"
      MAYFLY_TABLE        = var.table_name
      MAYFLY_ATTRIBUTE    = var.attribute
      MAYFLY_ROLE         = aws_iam_role.schedules.arn
      MAYFLY_DEAD_LETTERS = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_lambda_event_source_mapping" "stream" {
  function_name                      = aws_lambda_function.stream.arn
  event_source_arn                   = local.stream_arn
  starting_position                  = "TRIM_HORIZON"
  batch_size                         = 500
  maximum_batching_window_in_seconds = 0
  function_response_types            = ["ReportBatchItemFailures"]
  bisect_batch_on_function_error     = true
  maximum_retry_attempts             = -1 # until it succeeds or the record is a day old
  maximum_record_age_in_seconds      = -1

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_iam_role" "function" {
  name_prefix = "mayfly-stream-"
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
  name = "stream"
  role = aws_iam_role.function.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Table" # DeleteItem of what has expired when its record comes
        Effect   = "Allow"
        Action   = ["dynamodb:DeleteItem", "dynamodb:DescribeTable"]
        Resource = local.table_arn
      },
      {
        Sid      = "Schedules"
        Effect   = "Allow"
        Action   = ["scheduler:CreateSchedule", "scheduler:DeleteSchedule", "scheduler:GetSchedule", "scheduler:UpdateSchedule"]
        Resource = "arn:${local.partition}:scheduler:${local.region}:${local.account}:schedule/${aws_scheduler_schedule_group.guarded.name}/*"
      },
      {
        Sid       = "Role"
        Effect    = "Allow"
        Action    = ["iam:PassRole"]
        Resource  = aws_iam_role.schedules.arn
        Condition = { StringEquals = { "iam:PassedToService" = "scheduler.amazonaws.com" } }
      },
      {
        Sid      = "Stream" # the event source mapping's
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
        Resource = local.stream_arn
      },
      {
        Sid      = "Streams" # the event source mapping's; it knows no resource
        Effect   = "Allow"
        Action   = ["dynamodb:ListStreams"]
        Resource = "*"
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

resource "aws_iam_role" "schedules" {
  name_prefix = "mayfly-schedules-"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = aws_scheduler_schedule_group.guarded.arn
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "schedules" {
  name = "fire"
  role = aws_iam_role.schedules.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Table"
        Effect   = "Allow"
        Action   = ["dynamodb:DeleteItem"]
        Resource = local.table_arn
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

resource "aws_sqs_queue" "dead_letters" {
  name                      = local.name
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_cloudwatch_metric_alarm" "failing" {
  alarm_name          = "${local.name}-failing"
  alarm_description   = "Records of ${var.table_name} cannot be handled"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  dimensions          = { FunctionName = aws_lambda_function.stream.function_name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "behind" {
  alarm_name          = "${local.name}-behind"
  alarm_description   = "The stream of ${var.table_name} is read minutes late; after a day its records are gone"
  namespace           = "AWS/Lambda"
  metric_name         = "IteratorAge"
  dimensions          = { FunctionName = aws_lambda_function.stream.function_name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  threshold           = 300000
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "dropped" {
  alarm_name          = "${local.name}-dropped"
  alarm_description   = "Deletions from ${var.table_name} were given up"
  namespace           = "AWS/Scheduler"
  metric_name         = "InvocationDroppedCount"
  dimensions          = { ScheduleGroup = aws_scheduler_schedule_group.guarded.name }
  statistic           = "Sum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = var.alarm_topics
}

resource "aws_cloudwatch_metric_alarm" "dead_letters" {
  alarm_name          = "${local.name}-dead-letters"
  alarm_description   = "Records or deletions of ${var.table_name} are in the dead letter queue"
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
  value = aws_lambda_function.stream.function_name
}

output "schedule_group" {
  value = aws_scheduler_schedule_group.guarded.name
}

output "dead_letter_queue" {
  value = aws_sqs_queue.dead_letters.url
}
