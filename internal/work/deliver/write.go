package deliver

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// write is one write of a batch.
type write struct {
	at      place
	request types.WriteRequest
	done    func() // called when the write is durable; may be nil
	of      *base  // base that this write belongs to; nil: none
	behind  *base  // base that must be durable first; nil: none
}

// base is a set of writes that must be durable before others are made.
type base struct {
	places  []place
	refused bool // one of the writes is impossible; guarded by the writer's lock
}

// place is a table and the key of an item in it.
type place struct{ table, id, part string }

func put(table string, item map[string]types.AttributeValue, done func()) write {
	return write{at: placeOf(table, item), request: types.WriteRequest{PutRequest: &types.PutRequest{Item: item}}, done: done}
}

func remove(table string, key map[string]types.AttributeValue) write {
	return write{at: placeOf(table, key), request: types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}}
}

func placeOf(table string, item map[string]types.AttributeValue) place {
	return place{table: table, id: attr.String(item[attrID]), part: attr.String(item[attrPart])}
}

// abandoned reports whether a write will never be made, because its base was refused.
func (w *write) abandoned() bool { return w.behind != nil && w.behind.refused }

// bytes returns the approximate size of the write: its body, and an estimate of the other
// attributes.
func (w *write) bytes() int {
	if w.request.PutRequest == nil {
		return 0
	}
	const rest = 4 << 10
	switch body := w.request.PutRequest.Item[attrBody].(type) {
	case *types.AttributeValueMemberS:
		return rest + len(body.Value)
	case *types.AttributeValueMemberB:
		return rest + len(body.Value)*4/3 // base64, as in JSON
	}
	return rest
}
