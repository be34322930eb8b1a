package consume

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/invariant"
)

// TestLowWaterMark: after each record that is done, in any order, the low-water mark is the last
// record without an undone record before it.
func TestLowWaterMark(t *testing.T) {
	check := func() (broken string) {
		random := rand.New(rand.NewPCG(3, 3))
		for round := range 20 {
			w, next := newWindow(), 0
			var done []bool // by place
			var open []int64
			for step := range 200 {
				if len(open) == 0 || random.IntN(4) == 0 {
					records := make([]Record, 1+random.IntN(8))
					for i := range records {
						records[i].Dynamodb = &types.StreamRecord{SequenceNumber: aws.String(strconv.Itoa(next)), SizeBytes: aws.Int64(10)}
						next++
					}
					first := w.add(records)
					for i := range records {
						open = append(open, first+int64(i))
						done = append(done, false)
					}
				} else {
					i := random.IntN(len(open))
					done[open[i]] = true
					w.done(open[i])
					open = append(open[:i], open[i+1:]...)
				}
				low, held := "", len(done)
				for place := 0; place < len(done) && done[place]; place++ {
					low, held = strconv.Itoa(place), held-1
				}
				if p := w.position(); p.low != low || p.held != held || p.bytes != int64(10*held) {
					return fmt.Sprintf("round %d, step %d: %+v; want low %q with %d records behind it", round, step, p, low, held)
				}
			}
		}
		return ""
	}
	t.Run("holds", func(t *testing.T) {
		if broken := check(); broken != "" {
			t.Error(broken)
		}
	})
	if !invariant.Enabled {
		return
	}
	t.Run(invariant.JumpMark.String(), func(t *testing.T) {
		defer inject(invariant.JumpMark)()
		if check() == "" {
			t.Errorf("the law did not notice %v", invariant.JumpMark)
		}
		if !noticed(invariant.JumpMark) {
			t.Errorf("no check noticed %v", invariant.JumpMark)
		}
	})
}
