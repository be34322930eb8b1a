package trigger

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// The JSON event of a Lambda function. It is written by hand, since every record passes here,
// including those that the filter excludes. Attributes are in the order of their names, so the same
// record always has the same bytes.

const (
	eventOpen  = `{"Records":[`
	eventClose = `]}`
)

// appendRecord appends a stream record in the form of an event source mapping.
func appendRecord(dst []byte, r *types.Record, streamARN string) []byte {
	dst = append(dst, `{"eventID":`...)
	dst = dynamo.AppendQuoted(dst, aws.ToString(r.EventID))
	dst = append(dst, `,"eventName":"`...)
	dst = append(dst, r.EventName...)
	dst = append(dst, `","eventVersion":`...)
	dst = dynamo.AppendQuoted(dst, aws.ToString(r.EventVersion))
	dst = append(dst, `,"eventSource":`...)
	dst = dynamo.AppendQuoted(dst, aws.ToString(r.EventSource))
	dst = append(dst, `,"awsRegion":`...)
	dst = dynamo.AppendQuoted(dst, aws.ToString(r.AwsRegion))
	if r.Dynamodb != nil {
		dst = append(dst, `,"dynamodb":`...)
		dst = appendChange(dst, r.Dynamodb)
	}
	dst = append(dst, `,"eventSourceARN":`...)
	dst = dynamo.AppendQuoted(dst, streamARN)
	if id := r.UserIdentity; id != nil { // capitalized in the streams API, but not here
		dst = append(dst, `,"userIdentity":{"type":`...)
		dst = dynamo.AppendQuoted(dst, aws.ToString(id.Type))
		dst = append(dst, `,"principalId":`...)
		dst = dynamo.AppendQuoted(dst, aws.ToString(id.PrincipalId))
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendChange appends the record's data about its item.
func appendChange(dst []byte, r *types.StreamRecord) []byte {
	open := byte('{')
	member := func(name string) {
		dst = append(dst, open, '"')
		dst = append(dst, name...)
		dst = append(dst, '"', ':')
		open = ','
	}
	if t := r.ApproximateCreationDateTime; t != nil {
		member("ApproximateCreationDateTime")
		dst = strconv.AppendInt(dst, t.Unix(), 10)
	}
	for _, image := range [...]struct {
		name  string
		attrs map[string]types.AttributeValue
	}{{"Keys", r.Keys}, {"NewImage", r.NewImage}, {"OldImage", r.OldImage}} {
		if image.attrs != nil {
			member(image.name)
			dst = appendAttributes(dst, image.attrs)
		}
	}
	if r.SequenceNumber != nil {
		member("SequenceNumber")
		dst = dynamo.AppendQuoted(dst, *r.SequenceNumber)
	}
	if r.SizeBytes != nil {
		member("SizeBytes")
		dst = strconv.AppendInt(dst, *r.SizeBytes, 10)
	}
	if r.StreamViewType != "" {
		member("StreamViewType")
		dst = dynamo.AppendQuoted(dst, string(r.StreamViewType))
	}
	if open == '{' {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// appendAttributes appends the members of an image or a map.
func appendAttributes(dst []byte, attrs map[string]types.AttributeValue) []byte {
	return dynamo.AppendObject(dst, attrs, appendValue)
}

// appendValue appends an attribute value with its type. Binary values are base64.
func appendValue(dst []byte, v types.AttributeValue) []byte {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return append(dynamo.AppendQuoted(append(dst, `{"S":`...), v.Value), '}')
	case *types.AttributeValueMemberN:
		return append(dynamo.AppendQuoted(append(dst, `{"N":`...), v.Value), '}')
	case *types.AttributeValueMemberB:
		return append(dynamo.AppendBase64(append(dst, `{"B":`...), v.Value), '}')
	case *types.AttributeValueMemberBOOL:
		return append(strconv.AppendBool(append(dst, `{"BOOL":`...), v.Value), '}')
	case *types.AttributeValueMemberNULL:
		return append(strconv.AppendBool(append(dst, `{"NULL":`...), v.Value), '}')
	case *types.AttributeValueMemberM:
		return append(appendAttributes(append(dst, `{"M":`...), v.Value), '}')
	case *types.AttributeValueMemberL:
		return append(dynamo.AppendArray(append(dst, `{"L":`...), v.Value, appendValue), '}')
	case *types.AttributeValueMemberSS:
		return append(dynamo.AppendArray(append(dst, `{"SS":`...), v.Value, dynamo.AppendQuoted[string]), '}')
	case *types.AttributeValueMemberNS:
		return append(dynamo.AppendArray(append(dst, `{"NS":`...), v.Value, dynamo.AppendQuoted[string]), '}')
	case *types.AttributeValueMemberBS:
		return append(dynamo.AppendArray(append(dst, `{"BS":`...), v.Value, dynamo.AppendBase64), '}')
	}
	return append(dst, `{}`...) // a type unknown to the SDK, which keeps none of its data
}
