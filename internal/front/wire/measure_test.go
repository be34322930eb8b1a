package wire

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// A panic of an operation counts as a system error of its table.
func TestPanicIsMeasured(t *testing.T) {
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := service.New(service.Options{Engine: e})
	in := &Request{Header: http.Header{}}
	run := func(op operation, body string) (err error) {
		d := newDecoder(in, new(Response), []byte(body))
		d.name = "GetItem"
		defer d.release()
		defer recovered(&err)
		return op(context.Background(), s, d, new(writer))
	}
	if err := run(operations()["CreateTable"], `{"TableName":"Tab","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],`+
		`"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}]}`); err != nil {
		t.Fatal(err)
	}
	panics := bind(decodeGetItem, func(*service.Service, context.Context, *service.GetItemInput) (*service.GetItemOutput, error) {
		panic("of a test")
	}, encodeGetItem)
	if err := run(panics, `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`); err == nil || !strings.Contains(err.Error(), "of a test") {
		t.Errorf("error %v", err)
	}
	got := e.Points().Points(points.Key{Namespace: points.DynamoDB, Metric: points.SystemErrors, Table: "Tab", Operation: "GetItem"}, points.Oldest, 1<<40)
	if len(got) != 1 || got[0].Sum != 1 {
		t.Errorf("system errors: %+v", got)
	}
}
