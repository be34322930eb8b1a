package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// The patrol of single runs, some pages a run, finds the items that are too old for their sweeps,
// at first and after a long outage.
func TestSweepFunctionFindsWhatIsOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withWindows)
	tap := w.tapped()
	scans := 0
	tap.do(func(_ context.Context, operation string, in any) error {
		if scan, ok := in.(*dynamodb.ScanInput); ok && !strings.HasPrefix(aws.ToString(scan.ProjectionExpression), "#p") {
			scans++
			scan.Limit = aws.Int32(2) // so that there are pages
		}
		return nil
	})
	const old = 19
	put := func(name string) {
		for i := range int64(old) {
			w.putWindowed(fmt.Sprint(name, i), w.in(-20*86_400+i*60))
		}
	}
	f := NewFunctions(w.indexOptions())
	sweep := func() {
		t.Helper()
		r, err := f.Sweep(t.Context(), time.Time{})
		must(t, err)
		if !r.Complete {
			t.Errorf("%+v", r)
		}
	}
	put("first")
	for run, left := range []int{11, 3, 0} {
		scans = 0
		if sweep(); w.count() != left || scans > 4 {
			t.Errorf("after run %d there are %d of %d items, and it has read %d pages", run, w.count(), left, scans)
		}
	}
	put("later")
	scans = 0
	if sweep(); scans != 0 {
		t.Errorf("a pass is followed by the next at once: %d pages", scans)
	}
	w.advance(20 * 24 * time.Hour) // longer than the windows that are caught up
	for range 3 {
		sweep()
	}
	if w.count() != 0 {
		t.Errorf("after an outage %d items stay", w.count())
	}
}
