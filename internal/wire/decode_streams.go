package wire

import (
	"strconv"
	"time"

	"github.com/mayflydb/mayfly/internal/dynamo"
	"github.com/mayflydb/mayfly/internal/service"
)

func decodeListStreams(d *decoder, in *service.ListStreamsInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "TableName":
			in.TableName = d.text()
		case "Limit":
			in.Limit = d.integer()
		case "ExclusiveStartStreamArn":
			in.StartARN = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeDescribeStream(d *decoder, in *service.DescribeStreamInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "StreamArn":
			in.ARN = d.text()
		case "Limit":
			in.Limit = d.integer()
		case "ExclusiveStartShardId":
			in.StartShardID = d.text()
		case "ShardFilter":
			if d.Struct("ShardFilter") {
				in.FilterType, in.ParentOnly = d.twoTexts("Type", "ShardId")
			}
		default:
			d.Skip()
		}
	}
}

func decodeGetShardIterator(d *decoder, in *service.GetShardIteratorInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "StreamArn":
			in.ARN = d.text()
		case "ShardId":
			in.ShardID = d.text()
		case "ShardIteratorType":
			in.Type = d.text()
		case "SequenceNumber":
			in.Sequence = d.text()
		default:
			d.Skip()
		}
	}
}

func decodeGetRecords(d *decoder, in *service.GetRecordsInput) {
	var name []byte
	for d.NextMember(&name) {
		switch string(name) {
		case "ShardIterator":
			in.Iterator = d.text()
		case "Limit":
			in.Limit = d.integer()
		default:
			d.Skip()
		}
	}
	in.Wait = d.wait()
}

// headerWait asks GetRecords to hold its answer for so many milliseconds while there is no record. The answer carries it as
// well, by which a client knows that the endpoint has understood.
const headerWait = "X-Mayfly-Wait-Ms"

// waitMax is the longest that an answer is held; who asks for more gets this.
const waitMax = 20 * time.Second

// wait reads the header, and has the answer repeat it.
func (d *decoder) wait() time.Duration {
	value := d.request.Header.Get(headerWait)
	if value == "" {
		return 0
	}
	ms, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		d.invalid = dynamo.Invalid(headerWait + " must be a number of milliseconds: " + value)
		return 0
	}
	wait := min(time.Duration(ms)*time.Millisecond, waitMax)
	d.response.set(headerWait, strconv.FormatInt(wait.Milliseconds(), 10))
	return wait
}
