package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

// completion describes a schedule to be deleted after its last firing. It travels with the
// delivery, as JSON.
type completion struct {
	Table       string `json:"t"`
	Name        string `json:"n"`
	Incarnation string `json:"i"`
	Version     int64  `json:"v"`
	End         int64  `json:"e,omitempty"` // EndDate, ms since 1970: the schedule is deleted then
	Token       string `json:"k,omitempty"` // of the creation, stored for repetitions
	Digest      []byte `json:"d,omitempty"`
}

func (c *completion) marshal() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		// it consists of strings and numbers
		panic("scheduler: a completion does not marshal: " + err.Error())
	}
	return text
}

// deliveriesEnded deletes the schedules whose last delivery has succeeded, or failed for good.
func (s *Scheduler) deliveriesEnded(ctx context.Context, ends []deliver.Ended) error {
	all := make([]*completion, 0, len(ends))
	for _, e := range ends {
		c := &completion{}
		err := json.Unmarshal(e.Origin.Data, c)
		if err == nil && (c.Name == "" || !strings.HasPrefix(c.Table, schedulesTables)) {
			err = errors.New("that is no schedule")
		}
		if err != nil {
			s.o.Logger.Error("a delivery has no valid schedule to complete", "delivery", e.Delivery.ID, "error", err)
			continue
		}
		all = append(all, c)
	}
	return s.complete(ctx, all)
}

// complete deletes completed schedules, unless they were updated since, in transactions of up to 50
// of one group.
func (s *Scheduler) complete(ctx context.Context, all []*completion) error {
	byTable := map[string][]*completion{}
	for _, c := range all {
		byTable[c.Table] = append(byTable[c.Table], c)
	}
	for table, all := range byTable {
		for len(all) > 0 {
			n := min(len(all), batchFirings)
			if err := s.completeBatch(ctx, table, all[:n]); err != nil {
				return err
			}
			all = all[n:]
		}
	}
	return nil
}

func (s *Scheduler) completeBatch(ctx context.Context, table string, all []*completion) error {
	seen := map[string]bool{}
	var left []*completion
	for _, c := range all {
		if !seen[c.Name] { // a repetition, since it was delivered twice
			seen[c.Name] = true
			left = append(left, c)
		}
	}
	for len(left) > 0 {
		c, err := s.deleteComplete(ctx, table, left)
		switch {
		case noTable(err): // its group was deleted
			return nil
		// a forged parcel among the parked ones, or a table with other keys
		case dynamoCode(err) == codeDynamoInvalid:
			return s.completeApart(ctx, table, left, err)
		case err != nil:
			return fmt.Errorf("delete completed schedules: %w", err)
		case c == nil:
			for range left {
				s.o.Observe(Event{What: Completed, Group: strings.TrimPrefix(table, schedulesTables)})
			}
			return nil
		}
		var remaining []*completion
		for i, l := range left {
			if !c.failed(i) {
				remaining = append(remaining, l)
			}
		}
		if len(remaining) == len(left) {
			return fmt.Errorf("delete completed schedules: the transaction was cancelled without a reason")
		}
		left = remaining
	}
	return nil
}

// completeApart deletes schedules one by one after the endpoint has refused to delete them
// together. It skips those that the endpoint still refuses.
func (s *Scheduler) completeApart(ctx context.Context, table string, all []*completion, refusal error) error {
	if len(all) == 1 {
		s.o.Logger.Error("a schedule that is complete cannot be deleted", "table", table, "name", all[0].Name, "error", refusal)
		return nil
	}
	for i := range all {
		if err := s.completeBatch(ctx, table, all[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// deleteComplete deletes the definitions, with the first actions, and stores their tokens. A
// definition with an EndDate in the future gets that as its deadline.
func (s *Scheduler) deleteComplete(ctx context.Context, table string, all []*completion) (*cancelled, error) {
	actions := make([]action, 0, 2*len(all))
	now := s.now()
	for _, c := range all {
		same := fenced(current(c.Incarnation, c.Version))
		if c.end().After(now) {
			actions = append(actions, expire(table, key(c.Name, partDefinition), same, c.end()))
		} else {
			actions = append(actions, remove(table, key(c.Name, partDefinition), same))
		}
	}
	for _, c := range all {
		if c.Token != "" {
			gone := now
			if c.end().After(now) {
				gone = c.end()
			}
			actions = append(actions, put(table, tokenItem(c.Name, tokenCreate, c.Token, c.Digest, gone), nil))
		}
	}
	return s.transact(ctx, actions)
}

func (c *completion) end() time.Time { return time.UnixMilli(c.End).UTC() }
