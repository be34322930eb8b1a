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

// A panic of an operation counts once as a system error of its table.
func TestPanicIsMeasured(t *testing.T) {
	e, err := engine.Open(engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := New(Options{Service: service.New(service.Options{Engine: e})})
	want(t, call(s, "CreateTable", createT).status, 200)
	panics := bind(decodeGetItem, func(*service.Service, context.Context, *service.GetItemInput) (*service.GetItemOutput, error) {
		panic("of a test")
	}, encodeGetItem)
	out := new(Response)
	for range 2 {
		d := newDecoder(&Request{Header: http.Header{}}, out, []byte(`{"TableName":"Tab","Key":{"k":{"S":"a"}}}`))
		d.name = "GetItem"
		if err := s.run(t.Context(), target{"GetItem", panics}, d, out); err == nil || !strings.Contains(err.Error(), "of a test") {
			t.Errorf("error %v", err)
		}
	}
	want(t, call(s, "GetItem", `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`).status, 200)
	got := e.Points().Points(points.Key{Namespace: points.DynamoDB, Metric: points.SystemErrors, Table: "Tab", Operation: "GetItem"}, points.Oldest, 1<<40)
	if len(got) != 1 || got[0].Sum != 2 {
		t.Errorf("system errors: %+v", got)
	}
}
