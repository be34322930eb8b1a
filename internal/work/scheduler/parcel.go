package scheduler

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/target"
)

// The origins of deliveries whose attempts and end the scheduler handles.
const (
	originAttempt = "scheduler.attempt" // the input contains the attempt's number
	originEnd     = "scheduler.end"     // also, the delivery completes the schedule
)

const typeScheduled = "Scheduled Event"

// parcel returns the delivery of a firing. end describes the schedule that it completes, or is nil.
func (s *Scheduler) parcel(group string, f *firing, d *document, end *completion) deliver.Parcel {
	arn := s.scheduleARN(group, f.name)
	j := deliver.Parcel{
		Delivery: target.Delivery{
			ID: f.id(arn), Source: arn, Type: typeScheduled, Subject: f.name, Time: f.occurrence,
			TargetARN: *d.Target.Arn, Parameters: parameters(d.Target), Key: orderKey(d.Target),
		},
		Policy: policy(d.Target.RetryPolicy),
		Group:  group,
	}
	if c := d.Target.DeadLetterConfig; c != nil {
		j.DeadLetter = orElse(c.Arn, "")
	}
	body := s.notification(arn, j.Delivery.ID, f.occurrence)
	if d.Target.Input != nil {
		body = []byte(contextValues{arn, f.occurrence, j.Delivery.ID}.replace(*d.Target.Input))
		if namesAttempt(*d.Target.Input) {
			j.Origin.Kind = originAttempt
		}
	}
	j.Delivery.Body, j.Delivery.ContentType = body, contentType(body)
	if end != nil {
		j.Origin = deliver.Origin{Kind: originEnd, Data: mustJSON(end)}
	}
	return j
}

func policy(r *RetryPolicy) deliver.Policy {
	if r == nil {
		r = &RetryPolicy{}
	}
	return deliver.Policy{
		MaxAttempts: int(orElse(r.MaximumRetryAttempts, retriesMax)) + 1,
		MaxAge:      time.Duration(orElse(r.MaximumEventAgeInSeconds, ageMax)) * time.Second,
	}
}

func contentType(body []byte) string {
	if json.Valid(body) {
		return "application/json"
	}
	return "text/plain"
}

// parameters returns a target's blocks of parameters as JSON; nil if it has none.
func parameters(t *Target) []byte {
	if t.EcsParameters == nil && t.EventBridgeParameters == nil && t.KinesisParameters == nil && t.SageMakerPipelineParameters == nil && t.SqsParameters == nil {
		return nil
	}
	return mustJSON(Target{
		EcsParameters: t.EcsParameters, EventBridgeParameters: t.EventBridgeParameters, KinesisParameters: t.KinesisParameters,
		SageMakerPipelineParameters: t.SageMakerPipelineParameters, SqsParameters: t.SqsParameters,
	})
}

// orderKey returns the target's ordering key: deliveries with equal keys stay in order.
func orderKey(t *Target) string {
	switch {
	case t.SqsParameters != nil:
		return orElse(t.SqsParameters.MessageGroupId, "")
	case t.KinesisParameters != nil:
		return orElse(t.KinesisParameters.PartitionKey, "")
	}
	return ""
}

// event is the default input of a target. A schedule's detail is a string, a rule's an object.
type event struct {
	Version    string   `json:"version"`
	ID         string   `json:"id"`
	DetailType string   `json:"detail-type"`
	Source     string   `json:"source"`
	Account    string   `json:"account"`
	Time       string   `json:"time"`
	Region     string   `json:"region"`
	Resources  []string `json:"resources"`
	Detail     any      `json:"detail"`
}

func (s *Scheduler) event(source, arn, id string, at time.Time, detail any) event {
	return event{
		Version: "0", ID: uuid(id), DetailType: typeScheduled, Source: source, Account: s.o.Account, Time: timeText(at), Region: s.o.Region,
		Resources: []string{arn}, Detail: detail,
	}
}

// notification returns the default input of a schedule's target.
func (s *Scheduler) notification(arn, id string, at time.Time) []byte {
	return mustJSON(s.event("aws.scheduler", arn, id, at, "{}"))
}

// uuid returns a delivery's ID in the form of a UUID, so that an event has the same in every
// attempt.
func uuid(id string) string {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != 16 {
		panic("scheduler: an ID is not 32 hexadecimal digits: " + id)
	}
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: custom
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// timeText formats an instant as AWS does: with milliseconds only if they are not zero.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z") }

// contextValues has the values of the context attributes of an input, except for the attempt's
// number.
type contextValues struct {
	arn string
	at  time.Time
	id  string
}

const (
	contextPrefix  = "aws.scheduler."
	contextAttempt = "attempt-number"
)

// replace replaces the context attributes in an input. Their values need no escaping in JSON. Some
// JSON encoders write "<" as \u003c, so it accepts that form too.
func (c contextValues) replace(input string) string {
	if !strings.Contains(input, contextPrefix) {
		return input
	}
	return replacer(
		"schedule-arn", c.arn,
		"scheduled-time", timeText(c.at),
		"execution-id", c.id[:16],
	).Replace(input)
}

// replacer returns a replacer of context attributes, from pairs of name and value, in both forms.
func replacer(values ...string) *strings.Replacer {
	var pairs []string
	for i := 0; i < len(values); i += 2 {
		for _, quote := range [][2]string{{"<", ">"}, {`\u003c`, `\u003e`}, {`\u003C`, `\u003E`}} {
			pairs = append(pairs, quote[0]+contextPrefix+values[i]+quote[1], values[i+1])
		}
	}
	return strings.NewReplacer(pairs...)
}

// namesAttempt reports whether an input contains the number of the attempt.
func namesAttempt(input string) bool { return strings.Contains(input, contextPrefix+contextAttempt) }

// attempt returns the delivery of one attempt.
func attempt(j deliver.Parcel) target.Delivery {
	d := j.Delivery
	if body := string(d.Body); namesAttempt(body) {
		d.Body = []byte(replacer(contextAttempt, fmt.Sprint(d.Attempt)).Replace(body))
	}
	return d
}
