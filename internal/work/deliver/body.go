package deliver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
)

// A body that fits is an attribute of its item: text as it is, so that one can read it there, and anything else as bytes. One that does not fit is compressed,
// and when that is not enough it is cut into parts, items of their own.
const (
	attrBody     = "body"     // the body, or nothing where it is in parts
	attrEncoding = "encoding" // "gzip", or nothing
	attrParts    = "parts"    // how many there are, or nothing
	attrOfParts  = "partsOf"  // the generation of the parts: those of another are none of this item's

	bodyMax   = 16 << 20  // of a parcel
	inlineMax = 256 << 10 // of an item
	partMax   = 384 << 10 // of a part
	partsMax  = bodyMax/partMax + 2
	gzipped   = "gzip"
)

// packBody puts a body into an item, or gives the parts that it must have.
func packBody(item map[string]types.AttributeValue, body []byte) (parts [][]byte) {
	if len(body) <= inlineMax {
		if utf8.Valid(body) {
			item[attrBody] = attr.S(string(body))
		} else {
			item[attrBody] = attr.B(body)
		}
		return nil
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed) // a level that there is
	_, _ = w.Write(body)                                 // a buffer takes all
	_ = w.Close()
	item[attrEncoding] = attr.S(gzipped)
	if packed.Len() <= inlineMax {
		item[attrBody] = attr.B(packed.Bytes())
		return nil
	}
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), partMax)
		parts = append(parts, rest[:n:n])
		rest = rest[n:]
	}
	item[attrParts] = attr.Int(len(parts))
	return parts
}

// unpackBody is the reverse, for what was stored with or without encoding.
func unpackBody(stored []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "":
		return stored, nil
	case gzipped:
		r, err := gzip.NewReader(bytes.NewReader(stored))
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(r, bodyMax+1))
		if err == nil && len(body) > bodyMax {
			err = fmt.Errorf("larger than %d bytes", bodyMax)
		}
		return body, err
	}
	return nil, fmt.Errorf("its encoding is %q", encoding)
}

// Parts of bodies have keys of their own.
type partKey func(id string, n int) map[string]types.AttributeValue

// kept is a body that lies in parts in the table of parked parcels.
type kept struct {
	parts      int // 0: it is not there
	generation string
}

// generationOf follows from the parts themselves: whoever writes the same ones again, writes over them.
func generationOf(parts [][]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// mark has an item name the body's parts.
func (k kept) mark(item map[string]types.AttributeValue) {
	item[attrParts], item[attrEncoding] = attr.Int(k.parts), attr.S(gzipped)
	item[attrOfParts] = attr.S(k.generation)
}

// key is that of a part.
func (k kept) key(id string, n int) map[string]types.AttributeValue {
	if k.generation == "" { // an earlier program has written it
		return retryKey(id, fmt.Sprintf("body#%04d", n))
	}
	return retryKey(id, fmt.Sprintf("body#%s#%04d", k.generation, n))
}

// endedKey is that of the item that says, for a while, that the parcel has ended and the parts are deleted for that.
func (k kept) endedKey(id string) map[string]types.AttributeValue {
	return retryKey(id, partEnded+k.generation)
}

// removals delete the parts.
func (k kept) removals(table, id string) []write {
	all := make([]write, k.parts)
	for i := range all {
		all[i] = remove(table, k.key(id, i))
	}
	return all
}

// retryKey is a key in the table of parked parcels.
func retryKey(id, part string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrID: attr.S(id), attrPart: attr.S(part)}
}

// letterParts are the keys of the parts of one letter of a delivery: ids that no delivery has, since a slash is not allowed in one.
func letterParts(letter string) partKey {
	if letter != "" { // else an earlier program has written it
		letter += "/"
	}
	return func(id string, n int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{attrID: attr.S(fmt.Sprintf("%s/body/%s%04d", id, letter, n))}
	}
}

// readParts reads n parts of a body, up to the first that is missing. found is how many there are before that.
func readParts(ctx context.Context, db *dynamodb.Client, table string, key partKey, id string, n int) (body []byte, found int, err error) {
	for found < n {
		out, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(id, found), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return nil, found, err
		}
		part, ok := attr.AsBinary(out.Item[attrBody])
		if !ok {
			break
		}
		body = append(body, part...)
		found++
	}
	return body, found, nil
}
