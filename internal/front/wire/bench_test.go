package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

// benchmarkPut is a PutItem of eight attributes, 405 bytes.
const benchmarkPut = `{"TableName":"Readings","Item":{"device":{"S":"sensor-000123"},"at":{"N":"1479499740123"},"temperature":{"N":"21.375"},` +
	`"humidity":{"N":"48.2"},"status":{"S":"OK"},"location":{"M":{"lat":{"N":"47.6062"},"lon":{"N":"-122.3321"}}},` +
	`"tags":{"SS":["indoor","north","calibrated"]},"expiresAt":{"N":"1479586140"}},"ReturnConsumedCapacity":"NONE",` +
	`"ConditionExpression":"attribute_not_exists(device)"}`

func BenchmarkDecodePutItem(b *testing.B) {
	in := post("PutItem", benchmarkPut)
	out := newResponse()
	b.SetBytes(int64(len(benchmarkPut)))
	b.ReportAllocs()
	for b.Loop() {
		d := newDecoder(in, out, in.Body)
		input := new(service.WriteInput)
		d.Struct("")
		decodePutItem(d, input)
		if err := d.End(); err != nil || input.Item.Err != nil {
			b.Fatal(err, input.Item.Err)
		}
		d.release()
	}
}

// BenchmarkDecode reads the requests of the hot path, apart from PutItem.
func BenchmarkDecode(b *testing.B) {
	const key = `"TableName":"Readings","Key":{"device":{"S":"sensor-000123"},"at":{"N":"1479499740123"}}`
	benchmarkDecode(b, "GetItem", decodeGetItem, `{`+key+`,"ConsistentRead":true,"ReturnConsumedCapacity":"NONE"}`)
	benchmarkDecode(b, "UpdateItem", decodeUpdateItem, `{`+key+`,"UpdateExpression":"SET #s = :s","ExpressionAttributeNames":{"#s":"status"},`+
		`"ExpressionAttributeValues":{":s":{"S":"OK"}}}`)
	benchmarkDecode(b, "Query", decodeQuery, `{"TableName":"Readings","IndexName":"ByStatus","KeyConditionExpression":"#s = :s",`+
		`"ExpressionAttributeNames":{"#s":"status"},"ExpressionAttributeValues":{":s":{"S":"OK"}},"Limit":20,"ScanIndexForward":false}`)
	benchmarkDecode(b, "BatchWriteItem", decodeBatchWriteItem, `{"RequestItems":{"Readings":[{"PutRequest":{"Item":{"device":{"S":"a"}}}},`+
		`{"DeleteRequest":{"Key":{"device":{"S":"b"}}}}]}}`)
	benchmarkDecode(b, "TransactWriteItems", decodeTransactWriteItems, `{"TransactItems":[{"Put":{"TableName":"Readings","Item":{"device":{"S":"a"}}}},`+
		`{"Delete":{`+key+`}},{"ConditionCheck":{`+key+`,"ConditionExpression":"attribute_exists(device)"}}]}`)
}

func benchmarkDecode[In any](b *testing.B, operation string, decode func(*decoder, *In), body string) {
	b.Run(operation, func(b *testing.B) {
		in := post(operation, body)
		out := newResponse()
		b.ReportAllocs()
		for b.Loop() {
			d := newDecoder(in, out, in.Body)
			input := new(In)
			d.Struct("")
			decode(d, input)
			if err := d.End(); err != nil {
				b.Fatal(err)
			}
			d.release()
		}
	})
}

func BenchmarkEncodeGetItem(b *testing.B) {
	out := newResponse()
	in := post("PutItem", benchmarkPut)
	d := newDecoder(in, out, in.Body)
	var input service.WriteInput
	d.Struct("")
	decodePutItem(d, &input)
	got := service.GetItemOutput{Item: input.Item.Item}
	b.ReportAllocs()
	for b.Loop() {
		out.w.buf = out.w.buf[:0]
		object(&out.w, &got, encodeGetItem)
	}
	b.SetBytes(int64(len(out.w.buf)))
	if !dynamo.ValidJSON(out.w.buf) {
		b.Fatal(string(out.w.buf))
	}
}

// BenchmarkGetItem compares three ways in: the core alone, the in-process transport, and net/http
// without a socket.
func BenchmarkGetItem(b *testing.B) {
	s := newTestServer(b, Options{})
	call(s, "CreateTable", createT)
	call(s, "PutItem", `{"TableName":"Tab","Item":{"k":{"S":"a"},"n":{"N":"12345"},"x":{"S":"some text"}}}`)
	const body = `{"TableName":"Tab","Key":{"k":{"S":"a"}}}`
	b.Run("core", func(b *testing.B) {
		in := post("GetItem", body)
		in.InProcess = true
		b.ReportAllocs()
		for b.Loop() {
			s.Do(context.Background(), in).Release()
		}
	})
	b.Run("transport", func(b *testing.B) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header = post("GetItem", body).Header.(http.Header)
		b.ReportAllocs()
		for b.Loop() {
			r.Body = io.NopCloser(bytes.NewReader([]byte(body)))
			resp, err := Transport{Server: s}.RoundTrip(r)
			if err != nil || resp.StatusCode != 200 {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
	})
	b.Run("handler", func(b *testing.B) {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header = post("GetItem", body).Header.(http.Header)
		b.ReportAllocs()
		for b.Loop() {
			r.Body = io.NopCloser(bytes.NewReader([]byte(body)))
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}
