package wire

import (
	"time"

	"github.com/mayflydb/mayfly/internal/store/service"
)

func encodeListStreams(w *writer, out *service.ListStreamsOutput) {
	objects(w.name("Streams"), out.Streams, encodeStreamRef)
	w.optionalText("LastEvaluatedStreamArn", out.LastARN)
}

func encodeStreamRef(w *writer, s *service.StreamRef) {
	w.name("StreamArn").text(s.ARN)
	w.name("TableName").text(s.Table)
	w.name("StreamLabel").text(s.Label)
}

func encodeDescribeStream(w *writer, out *service.StreamDescription) {
	w.name("StreamDescription").beginObject()
	encodeStreamRef(w, &out.StreamRef)
	w.name("StreamStatus").text(out.Status)
	w.name("StreamViewType").text(out.ViewType)
	w.name("CreationRequestDateTime").instant(out.Created)
	encodePairs(w, "KeySchema", out.KeySchema, "AttributeName", "KeyType")
	objects(w.name("Shards"), out.Shards, encodeShard)
	w.optionalText("LastEvaluatedShardId", out.LastShardID)
	w.endObject()
}

func encodeShard(w *writer, s *service.ShardDescription) {
	w.name("ShardId").text(s.ID)
	w.name("SequenceNumberRange").beginObject()
	w.name("StartingSequenceNumber").text(s.Start)
	w.optionalText("EndingSequenceNumber", s.End)
	w.endObject()
	w.optionalText("ParentShardId", s.Parent)
}

func encodeGetShardIterator(w *writer, out *service.GetShardIteratorOutput) {
	w.name("ShardIterator").text(out.Iterator)
}

func encodeGetRecords(w *writer, out *service.GetRecordsOutput) {
	objects(w.name("Records"), out.Records, encodeRecord)
	w.optionalText("NextShardIterator", out.Next)
}

func encodeRecord(w *writer, r *service.StreamRecord) {
	w.name("eventID").text(r.EventID)
	w.name("eventName").text(r.EventName)
	w.name("eventVersion").text("1.1")
	w.name("eventSource").text("aws:dynamodb")
	w.name("awsRegion").text(r.Region)
	w.name("dynamodb").beginObject()
	w.name("ApproximateCreationDateTime").creation(r.Created)
	w.name("Keys").item(r.Keys)
	w.optionalItem("NewImage", r.New)
	w.optionalItem("OldImage", r.Old)
	w.name("SequenceNumber").text(r.Sequence)
	w.name("SizeBytes").integer(r.SizeBytes)
	w.name("StreamViewType").text(r.ViewType)
	w.endObject()
	if r.Service {
		w.name("userIdentity").beginObject()
		w.name("PrincipalId").text("dynamodb.amazonaws.com")
		w.name("Type").text("Service")
		w.endObject()
	}
}

// creation writes the time of a record: whole seconds, as at AWS. A record for the database's own
// readers has milliseconds, and then half of one. Without it, an SDK that rounds down would be a
// millisecond early for some instants, since most fractions have no exact binary form.
func (w *writer) creation(t time.Time) {
	if t.Nanosecond() == 0 {
		w.integer(t.Unix())
		return
	}
	w.instant(t)
	w.buf = append(w.buf, '5')
}
