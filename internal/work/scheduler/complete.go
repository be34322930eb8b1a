package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/deliver"
	"github.com/mayflydb/mayfly/internal/work/items"
	"github.com/mayflydb/mayfly/internal/work/retry"
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

// complete deletes completed schedules, unless they were updated since. It writes transactions of
// one group each, with up to batchFirings schedules.
func (s *Scheduler) complete(ctx context.Context, all []*completion) error {
	byTable := map[string][]*completion{}
	for _, c := range all {
		byTable[c.Table] = append(byTable[c.Table], c)
	}
	for table, all := range byTable {
		for batch := range slices.Chunk(all, batchFirings) {
			if err := s.completeBatch(ctx, table, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Scheduler) completeBatch(ctx context.Context, table string, all []*completion) error {
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(c *completion) bool { // a repetition, since it was delivered twice
		again := seen[c.Name]
		seen[c.Name] = true
		return again
	})
	now := s.now()
	written, err := items.TransactEach(ctx, s.o.DB, all, func(c *completion) []action { return c.actions(table, now) }, nil)
	switch {
	case noTable(err): // its group was deleted
		return nil
	// a forged parcel among the parked ones, or a table with other keys
	case retry.Code(err) == codeDynamoInvalid:
		return s.completeApart(ctx, table, all, err)
	case err != nil:
		return fmt.Errorf("delete completed schedules: %w", err)
	}
	for range written {
		s.o.Observe(Event{What: Completed, Group: strings.TrimPrefix(table, schedulesTables)})
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

// actions delete the definition, unless it was updated since, and store its token. A definition
// with an EndDate in the future gets that as its deadline.
func (c *completion) actions(table string, now time.Time) []action {
	same, gone := fenced(current(c.Incarnation, c.Version)), now
	all := []action{items.Delete(table, key(c.Name, partDefinition), same)}
	if c.end().After(now) {
		gone = c.end()
		same.Names["#due"], same.Values[":due"] = attrDue, attr.Seconds(gone)
		all[0] = items.Update(table, key(c.Name, partDefinition), "SET #due = :due", same)
	}
	if c.Token != "" {
		all = append(all, items.Put(table, tokenItem(c.Name, tokenCreate, c.Token, c.Digest, gone), nil))
	}
	return all
}

func (c *completion) end() time.Time { return time.UnixMilli(c.End).UTC() }
