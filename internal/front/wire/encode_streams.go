package wire

import "github.com/mayflydb/mayfly/internal/store/service"

func encodeListStreams(w *writer, out *service.ListStreamsOutput) {
	w.beginObject()
	w.name("Streams").beginArray()
	for _, s := range out.Streams {
		w.beginObject()
		encodeStreamRef(w, s)
		w.endObject()
	}
	w.endArray()
	if out.LastARN != "" {
		w.name("LastEvaluatedStreamArn").text(out.LastARN)
	}
	w.endObject()
}

func encodeStreamRef(w *writer, s service.StreamRef) {
	w.name("StreamArn").text(s.ARN)
	w.name("TableName").text(s.Table)
	w.name("StreamLabel").text(s.Label)
}

func encodeDescribeStream(w *writer, out *service.StreamDescription) {
	w.beginObject()
	w.name("StreamDescription").beginObject()
	encodeStreamRef(w, out.StreamRef)
	w.name("StreamStatus").text(out.Status)
	w.name("StreamViewType").text(out.ViewType)
	w.name("CreationRequestDateTime").instant(out.Created)
	w.name("KeySchema")
	encodeKeySchema(w, out.KeySchema)
	w.name("Shards").beginArray()
	for i := range out.Shards {
		encodeShard(w, &out.Shards[i])
	}
	w.endArray()
	if out.LastShardID != "" {
		w.name("LastEvaluatedShardId").text(out.LastShardID)
	}
	w.endObject()
	w.endObject()
}

func encodeShard(w *writer, s *service.ShardDescription) {
	w.beginObject()
	w.name("ShardId").text(s.ID)
	w.name("SequenceNumberRange").beginObject()
	w.name("StartingSequenceNumber").text(s.Start)
	if s.End != "" {
		w.name("EndingSequenceNumber").text(s.End)
	}
	w.endObject()
	if s.Parent != "" {
		w.name("ParentShardId").text(s.Parent)
	}
	w.endObject()
}

func encodeGetShardIterator(w *writer, out *service.GetShardIteratorOutput) {
	w.beginObject()
	w.name("ShardIterator").text(out.Iterator)
	w.endObject()
}

func encodeGetRecords(w *writer, out *service.GetRecordsOutput) {
	w.beginObject()
	w.name("Records").beginArray()
	for i := range out.Records {
		encodeRecord(w, &out.Records[i])
	}
	w.endArray()
	if out.Next != "" {
		w.name("NextShardIterator").text(out.Next)
	}
	w.endObject()
}

func encodeRecord(w *writer, r *service.StreamRecord) {
	w.beginObject()
	w.name("eventID").text(r.EventID)
	w.name("eventName").text(r.EventName)
	w.name("eventVersion").text("1.1")
	w.name("eventSource").text("aws:dynamodb")
	w.name("awsRegion").text(r.Region)
	w.name("dynamodb").beginObject()
	// rounds down to whole seconds, as AWS does
	w.name("ApproximateCreationDateTime").integer(r.Created.Unix())
	w.name("Keys").item(r.Keys)
	if r.New != nil {
		w.name("NewImage").item(r.New)
	}
	if r.Old != nil {
		w.name("OldImage").item(r.Old)
	}
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
	w.endObject()
}
