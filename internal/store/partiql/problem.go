package partiql

import (
	"strconv"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

const (
	// MaxLength is the length of the longest statement, in characters.
	MaxLength = 8192
	// maxNesting bounds the levels of groups and of literals. A value has at most dynamo.MaxDepth.
	maxNesting = 128
)

// notWellFormed begins the messages about syntax.
const notWellFormed = "Statement wasn't well formed, can't be processed: "

// Faults of the syntax: the parts of messages after notWellFormed.
const (
	badToken      = "" // a literal or a character that no token begins with
	badTerm       = "Unexpected term"
	badKeyword    = "Unexpected keyword"
	badOperator   = "Unexpected operator"
	badOperand    = "Missing right-hand side expression of infix operator"
	badTable      = "Expected identifier for simple path"
	badDot        = "Invalid path dot component"
	badType       = "Expected type name"
	badStatement  = "Expected data manipulation"
	badLeftover   = "Unexpected token after expression"
	badNesting    = "The statement is nested too deeply"
	badLength     = "The statement is longer than 8192 characters"
	badAssignment = "Expected '=' for assignment"
	badOrder      = "Expected BY after ORDER"
)

// Messages about well-formed statements that the service does not support.
const (
	msgAlias        = "Aliasing is not supported"
	msgFromMany     = "Only select from a single table or index is supported."
	msgFromLong     = "A path may contain at most 2 components in the FROM clause"
	msgFromIndex    = "FROM clause may only contain a single table name in data manipulation statements"
	msgWriteIndex   = "This operation is not supported on an index"
	msgStar         = "Other attributes should not be present in the projection when '*' is used."
	msgValueOrPivot = "Select projection doesn't support value or pivot keywords"
	msgItemForm     = "Unsupported format in item expression. Please use struct format {...} to express item values for insert statement."
	msgManyItems    = `Unsupported operation: Inserting multiple items in a single statement is not supported, use "INSERT INTO tableName VALUE item" instead`
	msgNotBoolean   = "WHERE clause must contain an expression that resolves to a boolean"
	msgAndOr        = "The arguments to AND/OR must be Expressions"
	msgNot          = "The argument to NOT must be a Type or Expression"
	msgIn           = "IN operator must have a left hand argument of type Variable Reference and right hand argument of type Seq with at least one member"
	msgIs           = "The left hand side argument to IS must be a Variable Reference, Literal, or Path"
	msgMissing      = "MISSING must be compared using IS operator"
	msgEmptySet     = "Empty bags are not supported"
	msgSetKinds     = "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"
	msgReturning    = "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"
	msgInsertValues = "RETURNING is not supported in INSERT"
	msgWildcard     = "Wildcard path component like a[*].b are not supported"
	msgUnpivot      = "Unpivot path component like a.*.b are not supported"
	msgEmptyStep    = "Path component cannot be an empty string"
	msgIon          = "Ion Literals are not supported"
	msgOrderKey     = "Argument to ORDER BY must be of type VariableReference."
	msgDeepValue    = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"
	msgInvalid      = "One or more parameter values were invalid: "
)

func malformed(fault string) *dynamo.Error { return dynamo.Invalid(notWellFormed + fault) }

// place returns the place of a part of the text in messages: line, column and length, in characters.
func place(text string, from, to int) string {
	line, column := 1, 1
	for _, r := range text[:from] {
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return strconv.Itoa(line) + ":" + strconv.Itoa(column) + ":" + strconv.Itoa(utf8.RuneCountInString(text[from:to]))
}
