// Reminders without the published program's mistakes: a Lambda function on the table's stream keeps one schedule for each item that has a REMINDER_TIMESTAMP,
// which sends a mail to the item's email at that time. It follows changes of the item and its removal.
//
// The function names the first record that it could not handle (ReportBatchItemFailures), so that Lambda goes on from there. Whatever is redelivered has no
// second effect: a schedule remembers the sequence number that it was made for, and no older record changes it.
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

// reminderOf is what an item asks for. An item that was removed, or whose time or address nobody could make sense of, asks for nothing: trying again would not mend it.
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
    // at() takes no zone and no fraction of a second; a time that has passed is now.
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
        // Deliveries may come twice: this tells what is the same mail.
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

// isNewer says whether a record is newer than what the schedule was made for.
async function isNewer(Name, sequenceNumber) {
  const { Description } = await scheduler.send(new GetScheduleCommand({ Name }));
  return BigInt(sequenceNumber) > BigInt(Description);
}

const nameOf = (stream, keys) => "reminder-" + createHash("sha256").update(JSON.stringify([stream, Object.entries(keys).sort()])).digest("hex").slice(0, 32);
