package wire

import "github.com/mayflydb/mayfly/internal/store/service"

// encodeUpdatedInsights writes the answer to UpdateContributorInsights, and an entry of
// ListContributorInsights.
func encodeUpdatedInsights(w *writer, out *service.Insights) {
	w.name("TableName").text(out.TableName)
	w.optionalText("IndexName", out.IndexName)
	w.name("ContributorInsightsStatus").text(out.Status)
	w.optionalText("ContributorInsightsMode", out.Mode)
}

func encodeInsights(w *writer, out *service.Insights) {
	encodeUpdatedInsights(w, out)
	if len(out.Rules) > 0 {
		w.name("ContributorInsightsRuleList").texts(out.Rules)
	}
	w.optionalInstant("LastUpdateDateTime", out.Changed)
}

func encodeListInsights(w *writer, out *service.ListInsightsOutput) {
	objects(w.name("ContributorInsightsSummaries"), out.Summaries, encodeUpdatedInsights)
	w.optionalText("NextToken", out.Token)
}

func encodeKinesis(w *writer, out *service.KinesisOutput) {
	w.name("TableName").text(out.TableName)
	w.name("StreamArn").text(out.StreamARN)
	w.name("DestinationStatus").text(out.Status)
}

// encodeKinesisConfig returns the encoding of an answer that repeats the request's configuration.
func encodeKinesisConfig(config string) func(*writer, *service.KinesisOutput) {
	return func(w *writer, out *service.KinesisOutput) {
		encodeKinesis(w, out)
		w.name(config).beginObject()
		w.optionalText("ApproximateCreationDateTimePrecision", out.Precision)
		w.endObject()
	}
}

func encodeDescribeKinesis(w *writer, out *service.DescribeKinesisOutput) {
	w.name("TableName").text(out.TableName)
	objects(w.name("KinesisDataStreamDestinations"), out.Destinations, func(w *writer, k *service.KinesisDestination) {
		w.name("StreamArn").text(k.StreamARN)
		w.name("DestinationStatus").text(k.Status)
		w.optionalText("ApproximateCreationDateTimePrecision", k.Precision)
	})
}

// encodeNone returns the encoding of an answer whose only member is an empty list.
func encodeNone(list string) func(*writer, *service.Empty) {
	return func(w *writer, _ *service.Empty) { w.name(list).texts(nil) }
}
