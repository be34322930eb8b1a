package reminder

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/cron"
	"github.com/mayflydb/mayfly/internal/work/template"
)

// All forms of an instant have the same value, which is never earlier than the text.
func TestInstant(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for written, want := range map[types.AttributeValue]time.Time{
		&types.AttributeValueMemberN{Value: "1893499200"}: noon, &types.AttributeValueMemberN{Value: "1893499200.0"}: noon, &types.AttributeValueMemberN{Value: "18934992E2"}: noon,
		&types.AttributeValueMemberN{Value: "1893499200.0001"}: noon.Add(time.Millisecond), &types.AttributeValueMemberN{Value: "0"}: time.UnixMilli(0).UTC(),
		attr.S("2030-01-01T12:00:00Z"): noon, attr.S("2030-01-01t12:00:00z"): noon, attr.S("2030-01-01T13:00:00+01"): noon, attr.S("2030-01-01T12:00:00.000000001Z"): noon.Add(time.Millisecond),
		attr.S(" 2030-01-01 12:00Z "): noon, attr.S("20300101T120000Z"): noon, attr.S("2030-01-01T06:30:00-0530"): noon,
	} {
		if got, ok := instant(written, nil); !ok || !got.Equal(want) {
			t.Errorf("%v: %v, %v", template.Text(written), got, ok)
		}
	}
	for _, written := range []types.AttributeValue{
		attr.S(""), attr.S("12:00"), attr.S("2030-01-01"), attr.S("2030-01-01T12:00:00"), attr.S("2030-13-01T12:00:00Z"), attr.S("1969-12-31T23:59:59Z"), attr.S(strings.Repeat("2", 100)),
		&types.AttributeValueMemberN{Value: "-1"}, &types.AttributeValueMemberN{Value: "1893499200000"}, &types.AttributeValueMemberN{Value: "1e99999999"},
		&types.AttributeValueMemberN{Value: "1/2"}, &types.AttributeValueMemberN{Value: ""}, &types.AttributeValueMemberBOOL{Value: true}, nil,
	} {
		if got, ok := instant(written, nil); ok {
			t.Errorf("%v: %v", template.Text(written), got)
		}
	}
}

// A zone is for texts without one. It has summer time: a text that its clocks show twice is the first
// of the two instants, and one that they skip is the instant without the change.
func TestInstantInZone(t *testing.T) {
	berlin, err := cron.Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for written, want := range map[types.AttributeValue]string{
		attr.S("2030-01-01T00:00:44"): "2029-12-31T23:00:44Z", attr.S("2030-07-01 12:00:00.5"): "2030-07-01T10:00:00.5Z", attr.S("2030-07-01T12:00"): "2030-07-01T10:00:00Z", attr.S("20300701T120000"): "2030-07-01T10:00:00Z",
		attr.S("2030-07-01T12:00:00.0001"): "2030-07-01T10:00:00.001Z",
		attr.S("2030-10-27T02:30:00"):      "2030-10-27T00:30:00Z", attr.S("2030-03-31T02:30:00"): "2030-03-31T01:30:00Z",
		attr.S("2030-07-01T12:00:00Z"): "2030-07-01T12:00:00Z", attr.S("2030-07-01T12:00:00+05:00"): "2030-07-01T07:00:00Z", &types.AttributeValueMemberN{Value: "1893499200"}: "2030-01-01T12:00:00Z",
	} {
		if got, ok := instant(written, berlin); !ok || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%v: %v, %v; want %s", template.Text(written), got, ok, want)
		}
	}
	for _, text := range []string{"2030-01-01", "2030-13-01T12:00:00", "2030-01-01T12:00:00 Berlin", "noon"} {
		if got, ok := instant(attr.S(text), berlin); ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func FuzzInstant(f *testing.F) {
	for _, s := range []string{"1893499200.25", "2030-01-01T12:00:00.5+02:00", "1e3", "-0", "0x10", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, v := range []types.AttributeValue{attr.S(s), &types.AttributeValueMemberN{Value: s}} {
			if got, ok := instant(v, time.UTC); ok && (got.Before(earliest) || got.Nanosecond()%int(time.Millisecond) != 0) {
				t.Errorf("%q is %v", s, got)
			}
		}
	})
}
