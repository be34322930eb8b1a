// Reminders without the published program's mistakes: a Lambda function on the table's stream keeps one schedule for each item that has a REMINDER_TIMESTAMP,
// and the schedule sends a mail to the item's email at that time. Changes and the removal of the item change and delete its schedule.
//
// The function names the first record that it could not handle (ReportBatchItemFailures), so that Lambda continues from there. A redelivered record has no
// second effect: a schedule has the sequence number of its record, and no older record changes it.
import { createHash } from "node:crypto";
import {
  ConflictException,
  CreateScheduleCommand,
  DeleteScheduleCommand,
  GetScheduleCommand,
  ResourceNotFoundException,
  SchedulerClient,
  UpdateScheduleCommand,
} from "@aws-sdk/client-scheduler";

const scheduler = new SchedulerClient({});
const { SCHEDULE_ROLE_ARN, SCHEDULE_DLQ_ARN, SENDER } = process.env;

export const handler = async (event) => {
  for (const record of event.Records) {
    const { Keys, NewImage, SequenceNumber } = record.dynamodb;
    const Name = nameOf(record.eventSourceARN, Keys);
    const reminder = reminderOf(NewImage);
    try {
      if (reminder) await put(Name, reminder, SequenceNumber);
      else await remove(Name, SequenceNumber);
    } catch (error) {
      console.error(SequenceNumber, error);
      return { batchItemFailures: [{ itemIdentifier: SequenceNumber }] };
    }
  }
  return { batchItemFailures: [] };
};

// reminderOf returns an item's time and address. It returns nothing for a removed item, and for an invalid time or address, which a retry would not mend.
function reminderOf(image) {
  const at = new Date(image?.REMINDER_TIMESTAMP?.S);
  const email = image?.email?.S;
  if (Number.isNaN(at.getTime()) || !email) {
    if (image?.REMINDER_TIMESTAMP) console.warn("not a reminder", image);
    return undefined;
  }
  return { at, email };
}

async function put(Name, { at, email }, sequenceNumber) {
  const schedule = {
    Name,
    Description: sequenceNumber,
    // at() has no zone and no fraction of a second. A past time counts as now.
    ScheduleExpression: `at(${at.toISOString().slice(0, 19)})`,
    ScheduleExpressionTimezone: "UTC",
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
        // A delivery may come twice: this ID identifies the mail.
        Tags: [{ Name: "reminder", Value: `${Name}-${sequenceNumber}` }],
      }),
    },
  };
  try {
    await scheduler.send(new CreateScheduleCommand(schedule));
  } catch (error) {
    if (!(error instanceof ConflictException)) throw error;
    if (await isNewer(Name, sequenceNumber)) await scheduler.send(new UpdateScheduleCommand(schedule));
  }
}

async function remove(Name, sequenceNumber) {
  try {
    if (await isNewer(Name, sequenceNumber)) await scheduler.send(new DeleteScheduleCommand({ Name }));
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw error;
  }
}

// isNewer returns whether a record is newer than the schedule's.
async function isNewer(Name, sequenceNumber) {
  const { Description } = await scheduler.send(new GetScheduleCommand({ Name }));
  return BigInt(sequenceNumber) > BigInt(Description);
}

const nameOf = (stream, keys) => "reminder-" + createHash("sha256").update(JSON.stringify([stream, Object.entries(keys).sort()])).digest("hex").slice(0, 32);
