package trigger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/google/go-cmp/cmp"
)

const arnStream = "arn:aws:dynamodb:eu-west-1:000000000000:table/things/stream/2024-05-01T12:00:00.000"

// everything returns a record with all possible members.
func everything() *types.Record {
	return &types.Record{
		EventID: aws.String("c4ca4238a0b923820dcc509a6f75849b"), EventName: types.OperationTypeModify, EventVersion: aws.String("1.1"),
		EventSource: aws.String("aws:dynamodb"), AwsRegion: aws.String("eu-west-1"),
		Dynamodb: &types.StreamRecord{
			ApproximateCreationDateTime: aws.Time(time.Unix(1479499740, 999e6)),
			Keys:                        map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: `a"\ü` + "\n"}},
			NewImage: map[string]types.AttributeValue{
				"s": &types.AttributeValueMemberS{Value: "x"}, "n": &types.AttributeValueMemberN{Value: "1.5"}, "b": &types.AttributeValueMemberB{Value: []byte{0, 255}},
				"t": &types.AttributeValueMemberBOOL{Value: true}, "z": &types.AttributeValueMemberNULL{Value: true},
				"m":  &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"in": &types.AttributeValueMemberS{Value: ""}}},
				"l":  &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberN{Value: "2"}, &types.AttributeValueMemberBOOL{}}},
				"ss": &types.AttributeValueMemberSS{Value: []string{"p", "q"}}, "ns": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
				"bs": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2}}}, "e": &types.AttributeValueMemberL{},
			},
			OldImage:       map[string]types.AttributeValue{"s": &types.AttributeValueMemberS{Value: "w"}},
			SequenceNumber: aws.String("13021600000000001596893679"), SizeBytes: aws.Int64(112), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
		UserIdentity: &types.Identity{Type: aws.String("Service"), PrincipalId: aws.String("dynamodb.amazonaws.com")},
	}
}

// The JSON has the members of Lambda's events, with their names and types.
func TestRecordJSON(t *testing.T) {
	const want = `{"eventID":"c4ca4238a0b923820dcc509a6f75849b","eventName":"MODIFY","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"eu-west-1",` +
		`"dynamodb":{"ApproximateCreationDateTime":1479499740,"Keys":{"id":{"S":"a\"\\ü\n"}},` +
		`"NewImage":{"b":{"B":"AP8="},"bs":{"BS":["AQ==","Ag=="]},"e":{"L":[]},"l":{"L":[{"N":"2"},{"BOOL":false}]},"m":{"M":{"in":{"S":""}}},"n":{"N":"1.5"},` +
		`"ns":{"NS":["1","2"]},"s":{"S":"x"},"ss":{"SS":["p","q"]},"t":{"BOOL":true},"z":{"NULL":true}},"OldImage":{"s":{"S":"w"}},` +
		`"SequenceNumber":"13021600000000001596893679","SizeBytes":112,"StreamViewType":"NEW_AND_OLD_IMAGES"},` +
		`"eventSourceARN":"` + arnStream + `","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"}}`
	got := string(appendRecord(nil, everything(), arnStream))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !json.Valid([]byte(got)) {
		t.Error("not JSON")
	}
}

// AWS's own event structures decode it without loss.
func TestRecordAsLambdaReadsIt(t *testing.T) {
	entries := []entry{{json: appendRecord(nil, everything(), arnStream)}, {json: appendRecord(nil, &types.Record{EventName: types.OperationTypeRemove}, arnStream)}}
	var e events.DynamoDBEvent
	if err := json.Unmarshal(payload(entries), &e); err != nil {
		t.Fatal(err)
	}
	r := e.Records[0]
	if len(e.Records) != 2 || e.Records[1].EventName != "REMOVE" || e.Records[1].UserIdentity != nil {
		t.Fatalf("%+v", e)
	}
	if r.EventName != "MODIFY" || r.EventSourceArn != arnStream || r.AWSRegion != "eu-west-1" || r.EventSource != "aws:dynamodb" || r.EventVersion != "1.1" ||
		*r.UserIdentity != (events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}) {
		t.Errorf("%+v", r)
	}
	c := r.Change
	if c.ApproximateCreationDateTime.Unix() != 1479499740 || c.SizeBytes != 112 || c.StreamViewType != "NEW_AND_OLD_IMAGES" || c.SequenceNumber != "13021600000000001596893679" {
		t.Errorf("%+v", c)
	}
	if c.Keys["id"].String() != "a\"\\ü\n" || c.NewImage["b"].Binary()[1] != 255 || c.NewImage["n"].Number() != "1.5" || !c.NewImage["t"].Boolean() || !c.NewImage["z"].IsNull() ||
		c.NewImage["m"].Map()["in"].String() != "" || c.NewImage["l"].List()[0].Number() != "2" || c.NewImage["ss"].StringSet()[1] != "q" ||
		c.NewImage["ns"].NumberSet()[1] != "2" || c.NewImage["bs"].BinarySet()[1][0] != 2 || len(c.NewImage["e"].List()) != 0 || c.OldImage["s"].String() != "w" {
		t.Errorf("%+v", c)
	}
}

// Answers of a function, and the records that fail by them.
func TestFailures(t *testing.T) {
	entries := []entry{{sequence: "100"}, {sequence: "200"}, {sequence: "300"}}
	for answer, want := range map[string]string{
		``: "null", ` `: "null", `null`: "null", `""`: "null", `{}`: "null", `{"batchItemFailures":[]}`: "null", `{"batchItemFailures":null}`: "null", `{"statusCode":500}`: "null",
		`{"batchItemFailures":[{"itemIdentifier":"200"}]}`:                                                   "[1]",
		`{"batchItemFailures":[{"itemIdentifier":"300"},{"itemIdentifier":"200"},{"itemIdentifier":"300"}]}`: "[1,2]",
		`{"batchItemFailures":[{"itemIdentifier":"100"}]}`:                                                   "[0]",
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                                                      "[0,1,2]",
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                                                    "[0,1,2]",
		`{"batchItemFailures":[{"foo":"200"}]}`:                                                              "[0,1,2]",
		`{"batchItemFailures":[{"foo":null}]}`:                                                               "[0,1,2]",
		`{"batchItemFailures":[{"itemIdentifier":"400"}]}`:                                                   "[0,1,2]",
		`{"batchItemFailures":[{"itemIdentifier":"200"},{"itemIdentifier":"400"}]}`:                          "[0,1,2]",
		`{"batchItemFailures":"200"}`:                                                                        "[0,1,2]",
		`{"batchItemFailures":[{"itemIdentifier":200}]}`:                                                     "[0,1,2]",
		`"all is well"`: "[0,1,2]", `[1]`: "[0,1,2]", `{`: "[0,1,2]",
	} {
		if got, _ := json.Marshal(failures([]byte(answer), entries)); string(got) != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}

// For any answer, the places are of records, in ascending order.
func FuzzFailures(f *testing.F) {
	f.Add(`{"batchItemFailures":[{"itemIdentifier":"300"},{"itemIdentifier":"200"}]}`)
	f.Add(`{"batchItemFailures":[{"itemIdentifier":null}]}`)
	entries := []entry{{sequence: "100"}, {sequence: "200"}, {sequence: "300"}}
	f.Fuzz(func(t *testing.T, answer string) {
		last := -1
		for _, i := range failures([]byte(answer), entries) {
			if i <= last || i >= len(entries) {
				t.Errorf("%q: %d after %d", answer, i, last)
			}
			last = i
		}
	})
}

// The cost of writing a record.
func BenchmarkRecord(b *testing.B) {
	r := everything()
	dst := appendRecord(nil, r, arnStream)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	for b.Loop() {
		dst = appendRecord(dst[:0], r, arnStream)
	}
}
