package deliver

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// parked is a parked parcel as read from the table.
type parked struct {
	parcel   Parcel
	body     []byte
	encoding string
	kept     kept
}

// errNoParcel is the error for an item that is not a parked parcel.
var errNoParcel = fmt.Errorf("attribute %q is missing", attrParcel)

// readParked returns a parked parcel without its parts. With an error it returns the readable
// fields.
func readParked(r *types.StreamRecord) (p parked, err error) {
	item := r.OldImage
	text := attr.String(item[attrParcel])
	if text == "" {
		err = errNoParcel
	} else {
		p.parcel, err = decodeParcel(text)
	}
	p.body = attr.Bytes(item[attrBody])
	if err != nil {
		p.parcel.Delivery.ID, p.parcel.Delivery.Body = attr.String(r.Keys[attrID]), p.body
		return p, err
	}
	p.encoding = attr.String(item[attrEncoding])
	p.kept.parts, err = partsIn(item)
	p.kept.generation = attr.String(item[attrOfParts])
	return p, err
}

// partsIn returns the number of parts of an item.
func partsIn(item map[string]types.AttributeValue) (int, error) {
	n, ok := attr.AsNumber(item[attrParts])
	if !ok {
		return 0, nil
	}
	parts, err := strconv.Atoi(n)
	if err != nil || parts < 0 || parts > partsMax {
		return 0, fmt.Errorf("attribute %q is out of range", attrParts)
	}
	return parts, nil
}
