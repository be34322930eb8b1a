package aws

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	sesv2types "github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/mayflydb/mayfly/target"
)

// outcome returns the failure in an answer with a successful HTTP status, or nil. Of several failed
// entries it returns the first that another attempt can mend, or else the first: a retry repeats the
// whole call.
//
// A function that fails has been invoked, so it is not invoked again; EventBridge Scheduler does
// not either. Its failure goes to the dead letters.
func outcome(out any) error {
	var failed failures
	switch out := out.(type) {
	case *lambda.InvokeOutput:
		if err := functionFailure(out); err != nil {
			e := target.AsError(err)
			e.Permanent = true
			return e
		}
	case *sqs.SendMessageBatchOutput:
		for _, e := range out.Failed {
			failed.add(entryFailure(e.Code, e.Message, e.SenderFault))
		}
	case *sqs.DeleteMessageBatchOutput:
		for _, e := range out.Failed {
			failed.add(entryFailure(e.Code, e.Message, e.SenderFault))
		}
	case *sqs.ChangeMessageVisibilityBatchOutput:
		for _, e := range out.Failed {
			failed.add(entryFailure(e.Code, e.Message, e.SenderFault))
		}
	case *sns.PublishBatchOutput:
		for _, e := range out.Failed {
			failed.add(entryFailure(e.Code, e.Message, e.SenderFault))
		}
	case *kinesis.PutRecordsOutput:
		for _, e := range out.Records {
			failed.add(entryFailure(e.ErrorCode, e.ErrorMessage, false))
		}
	case *eventbridge.PutEventsOutput:
		for _, e := range out.Entries {
			failed.add(eventFailure(e.ErrorCode, e.ErrorMessage))
		}
	case *eventbridge.PutTargetsOutput:
		for _, e := range out.FailedEntries {
			failed.add(eventFailure(e.ErrorCode, e.ErrorMessage))
		}
	case *eventbridge.RemoveTargetsOutput:
		for _, e := range out.FailedEntries {
			failed.add(eventFailure(e.ErrorCode, e.ErrorMessage))
		}
	case *sesv2.SendBulkEmailOutput:
		for _, e := range out.BulkEmailEntryResults {
			if e.Status != sesv2types.BulkEmailStatusSuccess {
				code := string(e.Status)
				failed.add(entryFailure(&code, e.Error, !slices.Contains(passingEmailStates, e.Status)))
			}
		}
	}
	return failed.error()
}

// passingEmailStates are the states of mails that another attempt can send.
var passingEmailStates = []sesv2types.BulkEmailStatus{
	sesv2types.BulkEmailStatusAccountThrottled, sesv2types.BulkEmailStatusAccountDailyQuotaExceeded, sesv2types.BulkEmailStatusTransientFailure,
}

// failures are the failures of a batch call's entries.
type failures struct {
	first *target.Error // the first that another attempt can mend, else the first
	count int
}

// add notes the failure of an entry, or nil.
func (f *failures) add(err error) {
	e := target.AsError(err)
	if e == nil {
		return
	}
	f.count++
	if f.first == nil || f.first.Permanent && !e.Permanent {
		f.first = e
	}
}

// error is nil if none has failed.
func (f *failures) error() error {
	if f.first == nil {
		return nil
	}
	if f.count > 1 {
		f.first.Message = fmt.Sprintf("%s (%d entries failed)", f.first.Message, f.count)
	}
	return f.first
}
