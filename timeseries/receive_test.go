package timeseries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// receiver returns a receiver of the world's series, and its rejected lines.
func (x *world) receiver(f Format, m Mapping) (r *Receiver, aside *[]Rejected) {
	x.t.Helper()
	aside = &[]Rejected{}
	r, err := NewReceiver(x.w, f, m, func(all []Rejected) error {
		*aside = append(*aside, all...)
		return nil
	})
	must(x.t, err)
	return r, aside
}

// Messages of one line or several become samples. Unusable lines are rejected with message, line
// and reason, and all others are written.
func TestReceive(t *testing.T) {
	x := newWorld(t, Spec{Retention: 30 * Day})
	r, aside := x.receiver(NDJSON, Mapping{})
	reading := func(device string, after time.Duration) string {
		return fmt.Sprintf(`{"device":%q,"time":%q,"temperature":1,"colour":"blue"}`, device, start.Add(after).Format(time.RFC3339Nano))
	}
	written, err := r.Receive(t.Context(),
		Message{Text: []byte(reading("roof", -time.Second) + "\n" + reading("roof", -2*time.Second) + "\r\n"), From: "READINGS 1"},
		Message{Text: nil, From: "READINGS 2"},
		Message{Text: []byte("\n{broken\n" + reading("cellar", 0)), From: "READINGS 3"},
		Message{Text: []byte(reading("roof", -31*Day) + "\n" + reading("roof", 300*Day)), From: "READINGS 4"},
		Message{Text: []byte("\xff\xfe"), From: "READINGS 5"},
		Message{Text: []byte("\xf3\x89" + strings.Repeat("x", 5000)), From: "READINGS 6", Unfit: "it is several in one"},
		Message{Text: []byte(`{"device":"` + strings.Repeat("x", lineMax) + `"}`), From: "READINGS 7"},
		Message{Text: []byte(reading("roof", -time.Second)), From: "READINGS 8"}, // again
	)
	must(t, err)
	if written != 4 {
		t.Errorf("%d samples were written", written)
	}
	var got []string
	for _, a := range *aside {
		if _, err := json.Marshal(a); err != nil || len(a.Text) > 2000 {
			t.Errorf("%d bytes of text, %v", len(a.Text), err)
		}
		got = append(got, fmt.Sprintf("%s:%d %s", a.From, a.Line, a.Reason))
	}
	want := "READINGS 3:2 not understood|READINGS 4:1 beyond retention|READINGS 4:2 in the future|READINGS 5:1 not understood|READINGS 6:0 not understood|READINGS 7:1 line too long"
	if strings.Join(got, "|") != want {
		t.Errorf("put aside are\n%s, want\n%s", strings.Join(got, "|"), want)
	}
	report := r.Report()
	if report.Messages != 8 || report.Written != 4 || report.Rejected != 6 || report.OutOfOrder != 1 || report.Reasons[ReasonSyntax] != 3 || len(report.First) != 6 || report.Lines != 10 {
		t.Errorf("the report is %+v", report)
	}
	if roof, cellar := all(t, x.r.Range(t.Context(), Query{Device: "roof"})), all(t, x.r.Range(t.Context(), Query{Device: "cellar"})); len(roof) != 2 || len(cellar) != 1 {
		t.Errorf("there are %v and %v", roof, cellar)
	}
}

// No message is acknowledged if its rejects cannot be stored or the endpoint fails, and no line is
// rejected twice because of that.
func TestReceiveFails(t *testing.T) {
	x, n := newNarrowWorld(t, Spec{})
	full := true
	told := 0
	r, err := NewReceiver(x.writer(WriterOptions{RetryFor: 10 * time.Millisecond}), NDJSON, Mapping{}, func(all []Rejected) error {
		if full {
			return errors.New("the disk is full")
		}
		told += len(all)
		return nil
	})
	must(t, err)
	messages := []Message{{Text: fmt.Appendf(nil, `{"device":"roof","time":%q,"t":1}`, start.Format(time.RFC3339))}, {Text: []byte("broken")}}
	if _, err := r.Receive(t.Context(), messages...); err == nil || err.Error() != "the disk is full" {
		t.Errorf("got %v", err)
	}
	full = false
	n.set(nil, func(operation, _ string) string {
		if operation == "BatchWriteItem" {
			return "InternalServerError"
		}
		return ""
	})
	if _, err := r.Receive(t.Context(), messages...); err == nil || told > 0 {
		t.Errorf("got %v, and %d were told", err, told)
	}
	n.set(nil, nil)
	if written, err := r.Receive(t.Context(), messages...); err != nil || written != 1 || told != 1 {
		t.Errorf("got %d, %v, and %d were told", written, err, told)
	}
}

// Receive rejects a sample that the endpoint refuses for good. It rejects none that the endpoint
// refuses temporarily, or whose device's latest sample is unknown: those are delivered again.
func TestReceiveFailsAndRefuses(t *testing.T) {
	for _, fails := range []string{"BatchWriteItem", "PutItem"} {
		x, n := newNarrowWorld(t, Spec{})
		var aside []Rejected
		r, err := NewReceiver(x.writer(WriterOptions{RetryFor: 10 * time.Millisecond}), NDJSON, Mapping{}, func(all []Rejected) error {
			aside = append(aside, all...)
			return nil
		})
		must(t, err)
		var messages []Message
		// in either order
		for _, device := range append(slices.Repeat([]string{"bad"}, 20), "roof") {
			messages = append(messages, Message{Text: fmt.Appendf(nil, `{"device":%q,"time":%q,"t":1}`, device, start.Add(time.Duration(len(messages))*time.Second).Format(time.RFC3339))})
		}
		refuse := func(operation, body string) string {
			if strings.Contains(body, `"bad`) {
				return "ValidationException"
			}
			return ""
		}
		n.set(nil, func(operation, body string) string {
			if code := refuse(operation, body); code != "" || operation != fails {
				return code
			}
			return "InternalServerError"
		})
		if _, err := r.Receive(t.Context(), messages...); err == nil || len(aside) > 0 {
			t.Errorf("%s: got %v, and %d were put aside", fails, err, len(aside))
		}
		n.set(nil, refuse)
		if written, err := r.Receive(t.Context(), messages...); err != nil || written != 1 || len(aside) != 20 {
			t.Errorf("%s: got %d, %v, and %d were put aside", fails, written, err, len(aside))
		}
	}
}

// Receive finishes its messages when its context ends.
func TestReceiveIsGracious(t *testing.T) {
	x := newWorld(t, Spec{})
	r, _ := x.receiver(NDJSON, Mapping{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	written, err := r.Receive(ctx, Message{Text: fmt.Appendf(nil, `{"device":"roof","time":%q,"t":1}`, start.Format(time.RFC3339))})
	if written != 1 || err != nil {
		t.Errorf("got %d, %v", written, err)
	}
}

// Readers of many shards share a receiver.
func TestReceiveAtOnce(t *testing.T) {
	x := newWorld(t, Spec{})
	r, aside := x.receiver(CSV, Mapping{Header: []string{"device", "time", "a"}})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 20 {
				at := start.Add(-time.Duration(j) * time.Second).Format(time.RFC3339)
				_, err := r.Receive(t.Context(), Message{Text: fmt.Appendf(nil, "device-%d,%s,%d\nbroken", i, at, j)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if report := r.Report(); report.Written != 160 || report.Rejected != 160 || len(*aside) != 160 || report.Messages != 160 {
		t.Errorf("the report is %+v", report)
	}
}

// A message with more samples than one write has is written in parts.
func TestReceiveMuch(t *testing.T) {
	x := newWorld(t, Spec{})
	r, _ := x.receiver(LineProtocol, Mapping{Device: "host"})
	var text strings.Builder
	const lines = 2*receiveMax + 7
	for i := range lines {
		fmt.Fprintf(&text, "cpu,host=h%d idle=%d %d\n", i%10, i, start.Add(-time.Duration(i)*time.Second).UnixNano())
	}
	written, err := r.Receive(t.Context(), Message{Text: []byte(text.String())})
	must(t, err)
	if report := r.Report(); written != lines || report.Lines != lines {
		t.Errorf("%d are written, of %d lines", written, report.Lines)
	}
}

func TestReceiverRefuses(t *testing.T) {
	x := newWorld(t, Spec{})
	for _, c := range []struct {
		f Format
		m Mapping
	}{{CSV, Mapping{}}, {"xml", Mapping{}}, {NDJSON, Mapping{TimeFormat: "nonsense"}}} {
		if _, err := NewReceiver(x.w, c.f, c.m, nil); err == nil {
			t.Errorf("%s %+v is taken", c.f, c.m)
		}
	}
}
