package bulk

import (
	"encoding/json"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// The contents of an export's table.json, which mayfly import reads: the members of CreateTable's
// input, besides TimeToLiveAttribute.
type table struct {
	TableName              string
	AttributeDefinitions   []attribute
	KeySchema              []keyElement
	BillingMode            string
	ProvisionedThroughput  *throughput `json:",omitempty"`
	GlobalSecondaryIndexes []index     `json:",omitempty"`
	LocalSecondaryIndexes  []index     `json:",omitempty"`
	TimeToLiveAttribute    string      `json:",omitempty"`
}

type (
	attribute  struct{ AttributeName, AttributeType string }
	keyElement struct{ AttributeName, KeyType string }
	throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }
	index      struct {
		IndexName             string
		KeySchema             []keyElement
		Projection            projection
		ProvisionedThroughput *throughput `json:",omitempty"`
	}
	projection struct {
		ProjectionType   string
		NonKeyAttributes []string `json:",omitempty"`
	}
)

// definition returns table.json for a table.
func definition(d *engine.TableDesc) []byte {
	t := table{TableName: d.Name, KeySchema: keyOf(d.Key), BillingMode: "PAY_PER_REQUEST", TimeToLiveAttribute: d.TTL.Attribute}
	for _, a := range d.API.Definitions {
		t.AttributeDefinitions = append(t.AttributeDefinitions, attribute{a.Name, a.Kind.String()})
	}
	units := func(read, write int64) *throughput {
		if d.API.OnDemand {
			return nil
		}
		return &throughput{read, write}
	}
	if !d.API.OnDemand {
		t.BillingMode, t.ProvisionedThroughput = "PROVISIONED", units(d.API.Read, d.API.Write)
	}
	for _, ix := range d.Indexes {
		out := index{IndexName: ix.Name, KeySchema: keyOf(ix.Key), Projection: projection{ix.Projection.Type, ix.Projection.NonKey}}
		if ix.Global {
			out.ProvisionedThroughput = units(ix.Read, ix.Write)
			t.GlobalSecondaryIndexes = append(t.GlobalSecondaryIndexes, out)
		} else {
			t.LocalSecondaryIndexes = append(t.LocalSecondaryIndexes, out)
		}
	}
	text, _ := json.MarshalIndent(t, "", "  ") // it always marshals
	return append(text, '\n')
}

func keyOf(s engine.KeySchema) (out []keyElement) {
	for _, a := range s.Partition {
		out = append(out, keyElement{a.Name, "HASH"})
	}
	for _, a := range s.Sort {
		out = append(out, keyElement{a.Name, "RANGE"})
	}
	return out
}

// kinds returns the types of a table's key attributes and of its indexes', as the API names them, and
// the names of its own key attributes.
func kinds(d *engine.TableDesc) (types map[string]string, keys []string) {
	types = map[string]string{}
	for _, a := range d.API.Definitions {
		types[a.Name] = a.Kind.String()
	}
	for a := range d.Key.Attrs {
		keys = append(keys, a.Name)
	}
	return types, keys
}
