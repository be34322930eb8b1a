package console

import "context"

// fate is what happens to a table's items at their deadlines.
type fate struct{ short, long string }

// fate returns what happens to a table's items at their deadlines. mayfly names the mode of a table
// in its metrics; other endpoints name nothing.
func (v *visit) fate(ctx context.Context, t *table) fate {
	record := ""
	if t.streamText() != "off" {
		record = ", and its stream gets a REMOVE record then"
	}
	if !v.clock(ctx).ours {
		if v.IsAWS() {
			return fate{"then removed within days", "After its deadline an item stays until Amazon removes it, usually within a few days" + record + "."}
		}
		return fate{"then removed later or never", "After its deadline an item stays until the endpoint removes it. This one does not say when, or whether: Amazon takes up to a few days, and some emulators never do" + record + "."}
	}
	m, err := v.metrics(ctx)
	if err != nil {
		return fate{"then removed", "At its deadline an item is removed" + record + ". How soon depends on the server's mode, which it does not show to this user."}
	}
	for _, one := range m.all("mayfly_table_expiry") {
		if label(one, "TableName") == t.name() && label(one, "mode") == "aws" {
			return fate{"then removed later", "After its deadline an item stays readable until the server removes it, as at Amazon. The delay is drawn from the distribution \"" + label(one, "delay") + "\"" + record + "."}
		}
	}
	return fate{"then removed at once", "At its deadline an item is removed at once from the table and its indexes" + record + "."}
}
