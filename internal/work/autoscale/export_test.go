package autoscale

import (
	"context"
	"time"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// Evaluate acts on the minute of a use that ends at an instant.
func (s *Scaler) Evaluate(ctx context.Context, u Use, end time.Time) error {
	return s.evaluate(ctx, attr.Item{attrID: attr.S(u.place().id(kindMinute, "")), attrDue: attr.Seconds(end)})
}

// Armed returns the end of the minute for which the timer of a use is armed, as epoch seconds.
func (s *Scaler) Armed(ctx context.Context, u Use) string {
	it, err := s.item(ctx, u.place().id(kindMinute, ""))
	if err != nil {
		return err.Error()
	}
	text, _ := attr.AsNumber(it[attrDue])
	return text
}
