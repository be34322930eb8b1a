package partiql

import (
	"strings"
	"sync"
)

// keywords are the words that cannot be identifiers without quotes: SQL-92's and PartiQL's.
var keywords = words(`
absolute action add all allocate alter and any are as asc assertion at authorization avg begin between bit bit_length by
cascade cascaded case cast catalog char character character_length char_length check close coalesce collate collation
column commit connect connection constraint constraints continue convert corresponding count create cross current
current_date current_time current_timestamp current_user cursor date deallocate dec decimal declare default deferrable
deferred delete desc describe descriptor diagnostics disconnect distinct domain double drop else end end-exec escape
except exception exec execute exists external extract false fetch first float for foreign found from full get global go
goto grant group having identity immediate in indicator initially inner input insensitive insert int integer intersect
interval into is isolation join key language last left level like local lower match max min module names national
natural nchar next no not null nullif numeric octet_length of on only open option or order outer output overlaps pad
partial position precision prepare preserve primary prior privileges procedure public read real references relative
restrict revoke right rollback rows schema scroll section select session session_user set size smallint some space sql
sqlcode sqlerror sqlstate substring sum system_user table temporary then time timestamp to transaction translate
translation trim true union unique unknown update upper usage user using value values varchar varying view when whenever
where with work write zone
missing pivot unpivot limit tuple remove index conflict do nothing returning modified new old let`)

// words returns the set of the words in a list, which is made at its first use.
func words(list string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for word := range strings.FieldsSeq(list) {
			set[word] = true
		}
		return set
	})
}

// operatorWords are the keywords that are operators between operands.
var operatorWords = words("and or in is like between union intersect except")

// types maps the type names after IS to the kinds of values that they mean; "" is a type that
// DynamoDB does not have.
var types = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"BOOL": "BOOL", "BOOLEAN": "BOOL", "BLOB": "B", "STRING": "S", "NUMERIC": "N", "STRUCT": "M", "TUPLE": "M", "LIST": "L",
		"NULL": "NULL", "MISSING": "MISSING",
		"SMALLINT": "", "INTEGER2": "", "INT2": "", "INTEGER4": "", "INT4": "", "INTEGER8": "", "INT8": "", "INT": "", "INTEGER": "",
		"FLOAT": "", "REAL": "", "DOUBLE PRECISION": "", "DECIMAL": "", "TIMESTAMP": "", "DATE": "", "TIME": "",
		"CHARACTER": "", "CHARACTER VARYING": "", "CHAR": "", "VARCHAR": "", "SYMBOL": "", "CLOB": "", "SEXP": "", "BAG": "", "ANY": "",
	}
})
