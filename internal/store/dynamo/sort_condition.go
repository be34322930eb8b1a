package dynamo

import "bytes"

// SortOp is the comparison in a condition on a sort key attribute.
type SortOp int

// The comparisons. SortAny means no condition.
const (
	SortAny SortOp = iota
	SortEQ
	SortLT
	SortLE
	SortGT
	SortGE
	SortBetween
	SortBegins
)

// SortCondition is a condition on one sort key attribute.
type SortCondition struct {
	Op   SortOp
	Low  Value // the operand; the lower one of SortBetween
	High Value // SortBetween only
}

// Holds reports whether a value of the operand's type satisfies the condition.
func (c SortCondition) Holds(v Value) bool {
	switch c.Op {
	case SortEQ:
		return Equal(v, c.Low)
	case SortLT:
		return Compare(v, c.Low) < 0
	case SortLE:
		return Compare(v, c.Low) <= 0
	case SortGT:
		return Compare(v, c.Low) > 0
	case SortGE:
		return Compare(v, c.Low) >= 0
	case SortBetween:
		return Compare(v, c.Low) >= 0 && Compare(v, c.High) <= 0
	case SortBegins:
		return bytes.HasPrefix(v.Bytes(), c.Low.Bytes())
	}
	return true
}
