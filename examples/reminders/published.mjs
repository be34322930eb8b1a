// Reminders as they are published: a Lambda function on the table's stream makes a one-time schedule for each item with a REMINDER_TIMESTAMP, which sends a mail.
//
// Written from the description of the pattern, mistakes included: README.md lists them, and careful.mjs is the program without them.
import { CreateScheduleCommand, SchedulerClient } from "@aws-sdk/client-scheduler";

const scheduler = new SchedulerClient({});
const { SCHEDULE_ROLE_ARN, SCHEDULE_DLQ_ARN, SENDER } = process.env;

export const handler = async (event) => {
  try {
    for (const record of event.Records) {
      const { email } = record.dynamodb;
      const timestamp = record.dynamodb.NewImage.REMINDER_TIMESTAMP.S;
      await scheduler.send(
        new CreateScheduleCommand({
          Name: record.eventID,
          ClientToken: record.dynamodb.SequenceNumber,
          ScheduleExpression: `at(${timestamp})`,
          FlexibleTimeWindow: { Mode: "OFF" },
          ActionAfterCompletion: "DELETE",
          Target: {
            Arn: "arn:aws:scheduler:::aws-sdk:ses:sendEmail",
            RoleArn: SCHEDULE_ROLE_ARN,
            DeadLetterConfig: { Arn: SCHEDULE_DLQ_ARN },
            Input: JSON.stringify({
              Source: SENDER,
              Destination: { ToAddresses: [email] },
              Message: { Subject: { Data: "A reminder" }, Body: { Text: { Data: "It is time." } } },
            }),
          },
        }),
      );
    }
  } catch (error) {
    console.error(error);
    return { statusCode: 500 };
  }
  return { statusCode: 200 };
};
