package service

import (
	"strconv"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// Contributor Insights writes reports to CloudWatch, which does not exist here: the settings are
// stored and shown.
const (
	insightsEnable  = "ENABLE"
	insightsDisable = "DISABLE"

	insightsAll       = "ACCESSED_AND_THROTTLED_KEYS"
	insightsThrottled = "THROTTLED_KEYS"

	stateEnabled   = "ENABLED"
	stateEnabling  = "ENABLING"
	stateDisabled  = "DISABLED"
	stateDisabling = "DISABLING"

	insightsPageMax = 100

	msgInsightsState = "Table or Index is not in a valid state to update Key Access Insights: "
)

// insightsIndex checks the IndexName of a request: its faults have the same form as a table name's.
func insightsIndex(v Opt[string]) error {
	switch {
	case !v.Set:
		return nil
	case len(v.V) < nameLengthMin || len(v.V) > nameLengthMax:
		return invalid("IndexName must be at least 3 characters long and at most 255 characters long")
	case !constraint.NameLetters(v.V):
		var s shape
		s.pattern("indexName", v.V)
		return s.err()
	}
	return nil
}

// insightsOf returns the setting of a table, or of one of its global indexes.
func insightsOf(d *engine.TableDesc, index Opt[string]) (*engine.Insights, error) {
	if !index.Set {
		return &d.API.Insights, nil
	}
	ix := d.Index(index.V)
	if ix == nil || !ix.Global {
		return nil, notFound(": Index: " + index.V + " not found for table: " + d.Name)
	}
	return &ix.Insights, nil
}

// describeInsights returns a setting in the API's form.
func describeInsights(d *engine.TableDesc, index string, in *engine.Insights) Insights {
	out := Insights{TableName: d.Name, IndexName: index, Status: stateDisabled, Mode: in.Mode, Changed: timeOrZero(in.Changed)}
	if in.Since != 0 {
		out.Status, out.Rules = stateEnabled, insightsRules(d, index, in)
	}
	return out
}

// insightsRules returns the names of the CloudWatch rules that an enabled setting has: of partition
// keys, and of whole keys if there is a sort key; of accessed and of throttled keys.
func insightsRules(d *engine.TableDesc, index string, in *engine.Insights) []string {
	owner, key := d.Name, d.Key
	if index != "" {
		owner, key = d.Name+"-"+index, d.Index(index).Key
	}
	var kinds []string
	for _, subject := range []string{"C", "T"} {
		if subject == "C" && in.Mode == insightsThrottled {
			continue
		}
		kinds = append(kinds, "PK"+subject)
		if len(key.Sort) > 0 {
			kinds = append(kinds, "SK"+subject)
		}
	}
	for i, kind := range kinds {
		kinds[i] = "DynamoDBContributorInsights-" + kind + "-" + owner + "-" + strconv.FormatInt(int64(in.Since), 10)
	}
	return kinds
}
