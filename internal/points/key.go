package points

import (
	"cmp"
	"strings"
)

// Namespace is the service whose metric a key names, as CloudWatch spells it.
type Namespace string

// The namespaces that have metrics here.
const (
	DynamoDB  Namespace = "AWS/DynamoDB"
	Scheduler Namespace = "AWS/Scheduler"
)

// Key names a metric with its dimensions. An empty dimension is none.
type Key struct {
	Namespace Namespace
	Metric    string

	Table     string // TableName
	Index     string // GlobalSecondaryIndexName
	Operation string
	Stream    string // StreamLabel
	Group     string // ScheduleGroup
}

// Dimension is a dimension of a metric, by CloudWatch's name for it.
type Dimension struct{ Name, Value string }

// dimensionNames are the dimensions in the order of their names, each with its member of a key.
var dimensionNames = []struct {
	name   string
	member func(k *Key) *string
}{
	{"GlobalSecondaryIndexName", func(k *Key) *string { return &k.Index }},
	{"Operation", func(k *Key) *string { return &k.Operation }},
	{"ScheduleGroup", func(k *Key) *string { return &k.Group }},
	{"StreamLabel", func(k *Key) *string { return &k.Stream }},
	{"TableName", func(k *Key) *string { return &k.Table }},
}

// Dimensions returns the key's dimensions by name.
func (k Key) Dimensions() (all []Dimension) {
	for _, d := range dimensionNames {
		if v := *d.member(&k); v != "" {
			all = append(all, Dimension{d.name, v})
		}
	}
	return all
}

// KeyOf returns the key of a metric with dimensions. It reports false if no metric here has them: a
// name is unknown or repeated, or a value empty.
func KeyOf(namespace, metric string, dimensions []Dimension) (k Key, ok bool) {
	k = Key{Namespace: Namespace(namespace), Metric: metric}
	for _, given := range dimensions {
		found := false
		for _, d := range dimensionNames {
			if member := d.member(&k); d.name == given.Name && *member == "" {
				*member, found = given.Value, given.Value != ""
			}
		}
		if !found {
			return Key{}, false
		}
	}
	return k, true
}

// Compare orders keys by namespace, metric and dimensions.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		strings.Compare(string(k.Namespace), string(other.Namespace)), strings.Compare(k.Metric, other.Metric),
		strings.Compare(k.Table, other.Table), strings.Compare(k.Index, other.Index), strings.Compare(k.Operation, other.Operation),
		strings.Compare(k.Stream, other.Stream), strings.Compare(k.Group, other.Group),
	)
}
