package service

import "strconv"

const (
	globalKeyPartMax       = 4 // attributes of a global index's partition key, and of its sort key
	globalKeyAttributesMax = 2 * globalKeyPartMax

	msgKeyTwice  = "Both the Hash Key and the Range Key element in the KeySchema have the same name"
	msgHashFirst = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
)

// checkGlobalKey checks the key schema of a global index: every attribute is defined, no name occurs
// twice, one to four HASH elements come first, and up to four RANGE elements follow.
//
// Amazon documents these rules without the messages. Those about duplicates of one key type, about
// a HASH element behind a RANGE element and about more than four elements are ours.
func checkGlobalKey(ix *IndexSpec, defined []string) error {
	schema := ix.KeySchema
	if err := keysDefined(schema, defined); err != nil {
		return err
	}
	if err := keyElementTwice(ix); err != nil {
		return err
	}
	if schema[0].Type.V != keyTypeHash {
		return invalid(msgHashFirst)
	}
	counts := map[string]int{}
	for i, e := range schema {
		if e.Type.V == keyTypeHash && counts[keyTypeRange] > 0 {
			return invalid("Invalid KeySchema: The KeySchemaElement " + strconv.Itoa(i+1) + " is a HASH key type behind a RANGE key type")
		}
		counts[e.Type.V]++
	}
	for _, of := range []string{keyTypeHash, keyTypeRange} {
		if counts[of] > globalKeyPartMax {
			return invalid(invalidValues + "Number of " + of + " KeySchemaElements exceeds the limit of " + strconv.Itoa(globalKeyPartMax) +
				" for index: " + ix.IndexName.V)
		}
	}
	return nil
}

// keyElementTwice refuses a key schema that names an attribute twice.
func keyElementTwice(ix *IndexSpec) error {
	for i, e := range ix.KeySchema {
		for _, other := range ix.KeySchema[:i] {
			switch {
			case other.Name.V != e.Name.V:
			case other.Type.V != e.Type.V || len(ix.KeySchema) == keyAttributesMax:
				return invalid(msgKeyTwice)
			default:
				return invalid(invalidValues + "Attribute " + e.Name.V + " occurs twice in the KeySchema of index: " + ix.IndexName.V)
			}
		}
	}
	return nil
}
