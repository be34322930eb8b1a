package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Large pieces wait for room in order, and are refused after a while. Small ones have their own.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(LeastBudget)
		first, err := b.Take(t.Context(), 16<<20)
		if err != nil || b.Used() != 16<<20 {
			t.Fatalf("%v, %d bytes used", err, b.Used())
		}
		start := time.Now()
		if _, err := b.Take(t.Context(), 16<<20); !errors.Is(err, ErrNoRoom) || time.Since(start) != Patience {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		small := 0
		for b.Try(SmallMax) != nil {
			small++
		}
		if small != LeastBudget/4/SmallMax {
			t.Errorf("room for %d small pieces", small)
		}
		if hold := b.Try(9 << 20); hold != nil {
			t.Error("a large piece took the small ones' part")
		}
		time.AfterFunc(Patience/2, first.Release)
		start = time.Now()
		second, err := b.Take(t.Context(), 16<<20)
		if err != nil || time.Since(start) != Patience/2 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		second.Release()
		second.Release()
		if want := int64(small * SmallMax); b.Used() != want || b.Refused() != 1 {
			t.Errorf("%d bytes used, not %d; %d refused", b.Used(), want, b.Refused())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Take(ended, SmallMax); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := b.Take(t.Context(), 25<<20); !errors.Is(err, ErrNoRoom) {
			t.Errorf("more than fits: %v", err)
		}
	})
}

// endless is a body that counts the bytes read from it.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func (*endless) Close() error { return nil }

// A body is read only after its admission, and never far beyond its limit.
func TestReadBody(t *testing.T) {
	const limit = 1 << 20
	refused := errors.New("refused")
	for _, c := range []struct {
		name     string
		length   int64 // announced; -1: unknown
		body     int64 // sent; -1: without end
		most     int64 // admitted
		admitted []int64
		err      error
	}{
		{"none", 0, 0, limit, nil, nil},
		{"tiny", 100, 100, limit, nil, nil},
		{"small", FreeMax + 1, FreeMax + 1, limit, []int64{FreeMax + 1}, nil},
		{"largest", limit, limit, limit, []int64{limit}, nil},
		{"too large", limit + 1, -1, limit, nil, ErrTooLarge},
		{"refused", limit, -1, SmallMax, []int64{limit}, refused},
		{"cut off", limit, 10, limit, []int64{limit}, nil},
		{"unknown and small", -1, SmallMax, limit, []int64{SmallMax}, nil},
		{"unknown and large", -1, SmallMax + 1, limit, []int64{SmallMax, limit}, nil},
		{"unknown and largest", -1, limit, limit, []int64{SmallMax, limit}, nil},
		{"unknown and too large", -1, limit + 1, limit, []int64{SmallMax, limit}, ErrTooLarge},
		{"unknown and endless", -1, -1, limit, []int64{SmallMax, limit}, ErrTooLarge},
		{"unknown and refused", -1, -1, SmallMax, []int64{SmallMax, limit}, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			budget, source := NewBudget(LeastBudget), new(endless)
			r := &http.Request{ContentLength: c.length, Body: source}
			if c.body >= 0 {
				r.Body = io.NopCloser(io.LimitReader(source, c.body))
			}
			var admitted []int64
			var b bytes.Buffer
			hold, err := ReadBody(&b, r, limit, func(bytes int64) (*Hold, error) {
				admitted = append(admitted, bytes)
				if bytes > c.most {
					return nil, refused
				}
				return budget.Take(t.Context(), bytes)
			})
			if !errors.Is(err, c.err) {
				t.Errorf("error %v", err)
			}
			if !slices.Equal(admitted, c.admitted) {
				t.Errorf("admitted %v, not %v", admitted, c.admitted)
			}
			if c.err == nil && int64(b.Len()) != c.body {
				t.Errorf("%d bytes, not %d", b.Len(), c.body)
			}
			if read := source.read; c.err == refused && read > SmallMax+bytes.MinRead || read > limit+64<<10 {
				t.Errorf("%d bytes were read", read)
			}
			hold.Release()
			if budget.Used() != 0 {
				t.Errorf("%d bytes are still taken", budget.Used())
			}
		})
	}
}

// As many answers wait as are sent; further ones are refused at once.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, start := NewOutbox(LeastBudget), time.Now()
		if hold, ok := o.Take(t.Context(), SmallMax); hold != nil || !ok {
			t.Error("a small answer needs no room")
		}
		first, ok := o.Take(t.Context(), 20<<20)
		if !ok || o.Used() != 20<<20 {
			t.Fatal("no room for the first")
		}
		answered := make(chan *Hold)
		go func() {
			hold, _ := o.Take(t.Context(), 20<<20)
			answered <- hold
		}()
		synctest.Wait()
		if _, ok := o.Take(t.Context(), 20<<20); ok || time.Since(start) > 0 {
			t.Errorf("a third: %v, after %v", ok, time.Since(start))
		}
		time.Sleep(time.Second)
		first.Release()
		if second := <-answered; second == nil || o.Used() != 20<<20 {
			t.Errorf("the second was refused, or its place is wrong: %d bytes", o.Used())
		}
		if _, ok := o.Take(t.Context(), 20<<20); ok || time.Since(start) != time.Second+Patience {
			t.Errorf("a wait without success: %v, after %v", ok, time.Since(start))
		}
		if hold, ok := NewOutbox(LeastBudget).Take(t.Context(), 100<<20); !ok || hold.bytes != LeastBudget/4*3 {
			t.Errorf("a larger one: %v, %+v", ok, hold)
		}
		if o.Refused() != 2 {
			t.Errorf("%d refused", o.Refused())
		}
	})
}

func TestReadsOnly(t *testing.T) {
	for operation, want := range map[string]bool{
		"GetItem": true, "BatchGetItem": true, "Query": true, "Scan": true, "TransactGetItems": true, "GetRecords": true, "scheduler:ListSchedules": true,
		"PutItem": false, "UpdateItem": false, "BatchWriteItem": false, "ExecuteStatement": false, "scheduler:CreateSchedule": false, "": false,
	} {
		if ReadsOnly(operation) != want {
			t.Errorf("%s: %t", operation, !want)
		}
	}
}
