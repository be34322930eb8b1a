package strict

import "encoding/json"

// consumed adds up the member ConsumedCapacity of several answers to batches, table by table.
type consumed struct {
	first  json.RawMessage // of a single answer
	tables []map[string]any
}

const memberConsumed = "ConsumedCapacity"

// add adds the capacity of an answer, if it has any.
func (c *consumed) add(out object) error {
	raw := out[memberConsumed]
	if !out.has(memberConsumed) {
		return nil
	}
	var list []map[string]any
	if json.Unmarshal(raw, &list) != nil {
		return errUnreadable
	}
	if c.tables == nil {
		c.first = raw
	} else {
		c.first = nil
	}
	for _, one := range list {
		c.addTable(one)
	}
	return nil
}

func (c *consumed) addTable(one map[string]any) {
	for _, have := range c.tables {
		if have["TableName"] == one["TableName"] {
			addUnits(have, one)
			return
		}
	}
	c.tables = append(c.tables, one)
}

// addUnits adds all numbers in an object to those in another.
func addUnits(to, more map[string]any) {
	for name, v := range more {
		switch v := v.(type) {
		case float64:
			have, _ := to[name].(float64)
			to[name] = have + v
		case map[string]any:
			if have, ok := to[name].(map[string]any); ok {
				addUnits(have, v)
			} else {
				to[name] = v
			}
		}
	}
}

// put writes the sum into an answer. The capacity of a single answer stays as it is.
func (c *consumed) put(out object) {
	switch {
	case c.first != nil:
		out[memberConsumed] = c.first
	case c.tables != nil:
		out[memberConsumed], _ = json.Marshal(c.tables) // it was JSON, with finite sums
	}
}
