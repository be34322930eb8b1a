package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// While schedules fire many times a second, they are updated, disabled, deleted and created again.
// Nothing fires after its deletion or its end. In the end each schedule has the right firing, and
// only that.
func TestRaces(t *testing.T) {
	w := newWorld(t, "", nil)
	w.create("warm", "at(2031-01-01T00:00:00)")
	if err := w.engine.Clock().SetRate(1); err != nil {
		t.Fatal(err)
	}
	w.engine.Clock().Run()
	const schedules = 12
	// time of the last deletion or disabling; zero: it fires
	stopped := make([]time.Time, schedules)
	var work sync.WaitGroup
	until := time.Now().Add(1500 * time.Millisecond)
	for i := range schedules {
		work.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			path := fmt.Sprintf("/schedules/s%d", i)
			exists := false
			do := func(method, body string) {
				_, err := w.call(method, path, body)
				var e *Error
				if errors.As(err, &e) && e.Code == CodeConflict && method == "PUT" {
					return // a conflict: it fires all the time
				}
				if err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				}
			}
			for time.Now().Before(until) {
				switch n := random.IntN(10); {
				case !exists:
					do("POST", body("every(10 milliseconds)"))
					exists, stopped[i] = true, time.Time{}
				case n < 2:
					do("DELETE", "")
					exists, stopped[i] = false, w.Scheduler.now()
				case n < 4:
					_, err := w.call("PUT", path, body("every(10 milliseconds)", `"State":"DISABLED"`))
					if err == nil {
						stopped[i] = w.Scheduler.now()
					}
				default:
					do("PUT", body(fmt.Sprintf("every(%d milliseconds)", 10+random.IntN(10))))
					stopped[i] = time.Time{}
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				if !stopped[i].IsZero() {
					w.got.Lock()
					for _, d := range w.got.all {
						if d.Subject == fmt.Sprintf("s%d", i) && d.Time.After(stopped[i]) {
							t.Errorf("%s fired at %v, and was stopped at %v", d.Subject, d.Time, stopped[i])
						}
					}
					w.got.Unlock()
				}
			}
		})
	}
	work.Wait()
	w.engine.Clock().Freeze()
	w.advance(0)
	seen := map[string]bool{}
	for _, d := range w.taken() {
		if seen[d.ID] {
			t.Errorf("%s at %v came twice", d.Subject, d.Time)
		}
		seen[d.ID] = true
	}
	if len(seen) < 50 {
		t.Errorf("only %d firings", len(seen))
	}
	table := defaultTable
	out, err := w.db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	definitions, firings := map[string]*entry{}, map[string]*firing{}
	for _, it := range out.Items {
		if r := (&reader{from: it}); r.text(attrPart) == partDefinition {
			e, err := readEntry(it)
			if err != nil {
				t.Fatal(err)
			}
			definitions[e.name] = e
			continue
		}
		f, err := readFiring(it)
		if err != nil {
			t.Fatal(err)
		}
		firings[f.name] = f
	}
	for name, e := range definitions {
		f := firings[name]
		delete(firings, name)
		switch {
		case e.state == stateDisabled && f != nil:
			t.Errorf("%s is disabled and has a firing", name)
		case e.state == stateEnabled && (f == nil || f.incarnation != e.incarnation || f.version != e.version || f.number != e.armed || !f.deadline.Equal(e.next)):
			t.Errorf("%s is %+v and has the firing %+v", name, e, f)
		}
	}
	if len(firings) > 0 {
		t.Errorf("firings of nothing: %v", firings)
	}
}
