package service

import (
	"slices"
	"strconv"
)

const (
	keyTypeHash  = "HASH"
	keyTypeRange = "RANGE"

	billingProvisioned = "PROVISIONED"
	billingOnDemand    = "PAY_PER_REQUEST"

	projectionAll     = "ALL"
	projectionInclude = "INCLUDE"

	throughputMax        = 1_000_000_000_000
	keyAttributesMax     = 2 // of a table or a local index
	nonKeyAttributesMax  = 20
	attributeNameKeysMax = 255
)

// checkCreateTable checks the request in AWS's order, except TableName.
func checkCreateTable(in *CreateTableInput) error {
	var s shape
	s.createTable("", in)
	if err := s.err(); err != nil {
		return err
	}
	return checkNewTable(in)
}

// checkNewTable checks the rules of a new table, in AWS's order.
func checkNewTable(in *CreateTableInput) error {
	checks := []func(*CreateTableInput) error{
		checkCreateServed, checkTableClass, checkBilling, checkTableKey, checkLocalIndexes, checkGlobalIndexes,
		checkDefinitionsUsed, checkCreateStream, checkCreateTags, checkCreatePolicy,
	}
	for _, check := range checks {
		if err := check(in); err != nil {
			return err
		}
	}
	return nil
}

// checkCreateServed refuses members that would be taken and lost.
func checkCreateServed(in *CreateTableInput) error {
	if len(in.OtherMembers) > 0 {
		return notServed("CreateTable with " + in.OtherMembers[0])
	}
	return nil
}

// createTable checks the shape of a new table, except its name. at is the path of the structure
// around its members: empty, or with a dot at its end.
func (s *shape) createTable(at string, in *CreateTableInput) {
	s.Required(at+"attributeDefinitions", in.Attributes != nil)
	s.definitions(at+"attributeDefinitions", in.Attributes)
	s.enum(at+"billingMode", in.BillingMode, enumBilling)
	s.throughput(at+"provisionedThroughput", in.Throughput)
	s.keySchema(at+"keySchema", in.KeySchema, keyAttributesMax)
	for i := range in.Local {
		s.index(member(at+"localSecondaryIndexes", i), &in.Local[i], keyAttributesMax)
	}
	for i := range in.Global {
		s.index(member(at+"globalSecondaryIndexes", i), &in.Global[i], globalKeyAttributesMax)
	}
	s.enum(at+"sSESpecification.sSEType", in.SSEType, enumAlgorithm)
	s.stream(in.Stream)
	s.tags(in.Tags)
}

// member returns the path of the i-th element of a list.
func member(list string, i int) string { return list + "." + strconv.Itoa(i+1) + ".member" }

func (s *shape) definitions(list string, defs []AttributeDefinition) {
	for i, def := range defs {
		path := member(list, i)
		s.Required(path+".attributeName", def.Name.Set)
		s.length(path+".attributeName", def.Name, 1, attributeNameKeysMax)
		s.Required(path+".attributeType", def.Type.Set)
		s.enum(path+".attributeType", def.Type, enumAttributeType)
	}
}

func (s *shape) throughput(path string, t *Throughput) {
	if t == nil {
		return
	}
	s.Required(path+".writeCapacityUnits", t.Write.Set)
	s.least(path+".writeCapacityUnits", t.Write, 1)
	s.Required(path+".readCapacityUnits", t.Read.Set)
	s.least(path+".readCapacityUnits", t.Read, 1)
}

func (s *shape) keySchema(path string, schema []KeySchemaElement, most int) {
	if schema == nil {
		s.Null(path)
		return
	}
	s.Count(path, len(schema), 1, most, func() string { return printedKeySchema(schema) })
	for i, e := range schema {
		at := member(path, i)
		s.Required(at+".attributeName", e.Name.Set)
		s.length(at+".attributeName", e.Name, 1, attributeNameKeysMax)
		s.Required(at+".keyType", e.Type.Set)
		s.enum(at+".keyType", e.Type, enumKeyType)
	}
}

func printedKeySchema(schema []KeySchemaElement) string {
	elems := make([]string, len(schema))
	for i, e := range schema {
		elems[i] = "KeySchemaElement(attributeName=" + e.Name.Or("null") + ", keyType=" + e.Type.Or("null") + ")"
	}
	return printedList(elems)
}

// index checks the shape of an index whose key has at most the given number of attributes.
func (s *shape) index(path string, ix *IndexSpec, attributes int) {
	s.Required(path+".indexName", ix.IndexName.Set)
	s.name(path+".indexName", ix.IndexName)
	s.keySchema(path+".keySchema", ix.KeySchema, attributes)
	s.projection(path+".projection", &ix.Projection)
	s.throughput(path+".provisionedThroughput", ix.Throughput)
}

func (s *shape) projection(path string, p *ProjectionSpec) {
	s.Required(path, p.Present)
	s.enum(path+".projectionType", p.Type, enumProjection)
	if p.NonKey == nil {
		return
	}
	s.Count(path+".nonKeyAttributes", len(p.NonKey), 1, nonKeyAttributesMax, func() string { return printedList(p.NonKey) })
	for i, name := range p.NonKey {
		s.length(member(path+".nonKeyAttributes", i), Some(name), 1, attributeNameKeysMax)
	}
}

func (s *shape) stream(spec *StreamSpec) {
	if spec == nil {
		return
	}
	s.Required("streamSpecification.streamEnabled", spec.Enabled.Set)
	s.enum("streamSpecification.streamViewType", spec.ViewType, enumStreamViewType)
}

func checkTableClass(in *CreateTableInput) error { return tableClass(in.TableClass) }

func tableClass(class Opt[string]) error {
	if class.Set && !slices.Contains(enumTableClass, class.V) {
		return invalid("Invalid table-class parameter provided. Please try again with a valid table-class value: " +
			printedList(enumTableClass) + ".")
	}
	return nil
}

// checkBilling checks that the billing mode and the table's throughput agree.
func checkBilling(in *CreateTableInput) error {
	if in.BillingMode.V == billingOnDemand {
		if in.Throughput != nil {
			return invalid(msgThroughputOnDemand)
		}
		if err := onDemandRange("table", in.OnDemand); err != nil {
			return err
		}
		return checkTableWarm(in)
	}
	if in.Throughput == nil {
		return invalid(invalidValues + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	if member := onDemandMember(in.OnDemand); member != "" {
		return invalid(invalidValues + member + " for OnDemandThroughput cannot be specified when table BillingMode is PROVISIONED.")
	}
	if err := throughputRange(in.Throughput); err != nil {
		return err
	}
	return checkTableWarm(in)
}

func checkTableWarm(in *CreateTableInput) error {
	if err := checkWarmPresent("table", in.Warm); err != nil {
		return err
	}
	return checkNewWarm("table", in.Warm, in.Throughput)
}

func throughputRange(t *Throughput) error {
	if t.Read.V > throughputMax {
		return invalid("Given value " + strconv.FormatInt(t.Read.V, 10) + " for ReadCapacityUnits is out of bounds")
	}
	if t.Write.V > throughputMax {
		return invalid("Given value " + strconv.FormatInt(t.Write.V, 10) + " for WriteCapacityUnits is out of bounds")
	}
	return nil
}

// onDemandMember returns the name of the first member that is set, or "".
func onDemandMember(o *OnDemandThroughput) string {
	switch {
	case o == nil:
		return ""
	case o.MaxRead.Set:
		return "MaxReadRequestUnits"
	case o.MaxWrite.Set:
		return "MaxWriteRequestUnits"
	}
	return ""
}

// onDemandRange checks the maxima of an on-demand table or its index; -1 means none. owner is the
// table or index in messages.
func onDemandRange(owner string, o *OnDemandThroughput) error {
	if o == nil {
		return nil
	}
	if o.MaxRead.Set && o.MaxRead.V < 1 && o.MaxRead.V != -1 {
		return invalid(invalidValues + "Requested MaxReadRequestUnits for OnDemandThroughput for " + owner + " is outside of valid range")
	}
	if o.MaxWrite.Set && o.MaxWrite.V < 1 && o.MaxWrite.V != -1 {
		return invalid(invalidValues + "Requested MaxWriteRequestUnits for OnDemandThroughput for " + owner + " is outside of valid range")
	}
	return nil
}

// maximumOwner is an index in the messages about its OnDemandThroughput.
func maximumOwner(index string) string { return "index : " + index }

// checkIndexMaximum checks the OnDemandThroughput of an index against the billing mode of its table.
func checkIndexMaximum(index string, o *OnDemandThroughput, onDemand bool) error {
	if member := onDemandMember(o); member != "" && !onDemand {
		return invalid(invalidValues + member + " for OnDemandThroughput for " + maximumOwner(index) + " cannot be specified when table BillingMode is PROVISIONED.")
	}
	return onDemandRange(maximumOwner(index), o)
}

// checkTableKey checks the table's key schema against the attribute definitions.
func checkTableKey(in *CreateTableInput) error {
	names := definedNames(in.Attributes)
	if err := definedTwice(names); err != nil {
		return err
	}
	if len(in.KeySchema) > len(names) {
		return invalid("Invalid KeySchema: Some index key attribute have no definition")
	}
	if err := keyAgainstDefinitions(in.KeySchema, names); err != nil {
		return err
	}
	if in.Local == nil && in.Global == nil && len(in.KeySchema) != len(names) {
		return invalid(invalidValues + "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return nil
}

// definedTwice refuses two definitions of one attribute.
func definedTwice(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return invalid("Attribute Name is duplicated: " + name)
		}
	}
	return nil
}

func definedNames(defs []AttributeDefinition) []string {
	names := make([]string, len(defs))
	for i, def := range defs {
		names[i] = def.Name.V
	}
	return names
}

func keyNames(schema []KeySchemaElement) []string {
	names := make([]string, len(schema))
	for i, e := range schema {
		names[i] = e.Name.V
	}
	return names
}

// keyAgainstDefinitions checks the key schema of a table or a local index: every attribute is
// defined, no name occurs twice, HASH comes first and RANGE second.
func keyAgainstDefinitions(schema []KeySchemaElement, defined []string) error {
	if err := keysDefined(schema, defined); err != nil {
		return err
	}
	if len(schema) == 2 && schema[0].Name.V == schema[1].Name.V {
		return invalid(msgKeyTwice)
	}
	if schema[0].Type.V != keyTypeHash {
		return invalid(msgHashFirst)
	}
	if len(schema) == 2 && schema[1].Type.V != keyTypeRange {
		return invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	}
	return nil
}

// keysDefined refuses a key schema with an attribute that has no definition.
func keysDefined(schema []KeySchemaElement, defined []string) error {
	keys := keyNames(schema)
	for _, key := range keys {
		if !slices.Contains(defined, key) {
			return invalid(invalidValues + "Some index key attributes are not defined in AttributeDefinitions. Keys: " +
				printedList(keys) + ", AttributeDefinitions: " + printedList(defined))
		}
	}
	return nil
}

// checkDefinitionsUsed refuses attribute definitions that no key uses, neither the table's nor an
// index's.
func checkDefinitionsUsed(in *CreateTableInput) error {
	used := keyNames(in.KeySchema)
	for _, ix := range slices.Concat(in.Local, in.Global) {
		for _, name := range keyNames(ix.KeySchema) {
			if !slices.Contains(used, name) {
				used = append(used, name)
			}
		}
	}
	defined := definedNames(in.Attributes)
	for _, name := range defined {
		if !slices.Contains(used, name) {
			return invalid(invalidValues + "Some AttributeDefinitions are not used. AttributeDefinitions: " +
				printedList(defined) + ", keys used: " + printedList(used))
		}
	}
	return nil
}

func checkCreateStream(in *CreateTableInput) error {
	return checkStream(in.Stream, "Table is being created with a stream enabled, UpdateViewType is required",
		"Table is being created with a stream disabled, UpdateViewType should not be specified")
}

// checkStream checks that a stream has a view type exactly if it is enabled. missing and unwanted
// are the messages.
func checkStream(spec *StreamSpec, missing, unwanted string) error {
	switch {
	case spec == nil || spec.Enabled.V == spec.ViewType.Set:
		return nil
	case spec.Enabled.V:
		return invalid(invalidValues + missing)
	default:
		return invalid(invalidValues + unwanted)
	}
}

func checkCreateTags(in *CreateTableInput) error {
	if err := checkTags(in.Tags); err != nil {
		return err
	}
	if len(in.Tags) > tagsMax {
		return invalid(msgTooManyTags)
	}
	return nil
}
