package service

import (
	"fmt"
	"slices"
	"testing"
)

// Every item is in one segment, for any number of segments, and pages of any size lose none.
func TestScanSegmentsCoverAll(t *testing.T) {
	d := open(t)
	table := d.counters()
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf(`{"id":{"S":"k%02d"}}`, i))
		d.put(table, want[i])
	}
	for _, segments := range []int64{1, 2, 7} {
		var got []string
		for segment := range segments {
			in := ScanInput{TableName: Some(table), Segment: Some(segment), TotalSegments: Some(segments), Limit: Some[int64](4)}
			for {
				out, err := d.Scan(ctx, &in)
				if err != nil {
					t.Fatal(err)
				}
				for _, it := range out.Items {
					got = append(got, it.String())
				}
				if out.LastEvaluatedKey == nil {
					break
				}
				in.ExclusiveStartKey = ItemArg{Item: out.LastEvaluatedKey}
			}
		}
		slices.Sort(got)
		equal(t, fmt.Sprint(segments, " segments"), fmt.Sprint(got), fmt.Sprint(want))
	}
}

func TestScanIndex(t *testing.T) {
	d := open(t)
	table := d.songs()
	out, err := d.Scan(ctx, &ScanInput{TableName: Some(table), IndexName: Some("byGenre"), Select: Some("COUNT")})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "items without the index's key are not in it", out.Count, 10)
}

func TestScanIndexFilterOnUnprojected(t *testing.T) {
	d := open(t)
	out, err := d.Scan(ctx, &ScanInput{TableName: Some(d.songs()), IndexName: Some("byYear"), Filter: Some("attribute_exists(notes)")})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "count and scanned", fmt.Sprint(out.Count, out.ScannedCount), "0 10")
}

func TestScanFiltersKeys(t *testing.T) {
	d := open(t)
	out, err := d.Scan(ctx, &ScanInput{TableName: Some(d.songs()), Filter: Some("song = :s"), Values: vals(`{":s":{"S":"s5"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "count and scanned", fmt.Sprint(out.Count, out.ScannedCount), "1 11")
}

func TestScanValidation(t *testing.T) {
	d := open(t)
	table := d.counters()
	tests := []struct {
		about string
		in    ScanInput
		want  string
	}{
		{"limit", ScanInput{Limit: Some[int64](0)},
			"1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"segments out of range", ScanInput{Segment: Some[int64](-1), TotalSegments: Some[int64](1_000_001)},
			"2 validation errors detected: Value '-1' at 'segment' failed to satisfy constraint: Member must have value greater than or equal to 0; " +
				"Value '1000001' at 'totalSegments' failed to satisfy constraint: Member must have value less than or equal to 1000000"},
		{"segment alone", ScanInput{Segment: Some[int64](0)},
			"The TotalSegments parameter is required but was not present in the request when Segment parameter is present"},
		{"segments alone", ScanInput{TotalSegments: Some[int64](1)},
			"The Segment parameter is required but was not present in the request when parameter TotalSegments is present"},
		{"segment too large", ScanInput{Segment: Some[int64](2), TotalSegments: Some[int64](2)},
			"The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: 2 is not less than TotalSegments: 2"},
		{"specific without list", ScanInput{Select: Some("SPECIFIC_ATTRIBUTES")},
			"Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
		{"values without filter", ScanInput{Projection: Some("a"), Values: vals(`{":a":{"S":"a"}}`)},
			"ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null"},
		{"start key of another type", ScanInput{ExclusiveStartKey: arg(`{"id":{"N":"1"}}`)},
			"The provided starting key is invalid: The provided key element does not match the schema"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			tt.in.TableName = Some(table)
			_, err := d.Scan(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
}

// A start key is accepted in the one segment that holds it.
func TestScanStartKeyOfAnotherSegment(t *testing.T) {
	d := open(t)
	table := d.counters()
	accepted := 0
	for segment := range int64(4) {
		_, err := d.Scan(ctx, &ScanInput{
			TableName: Some(table), Segment: Some(segment), TotalSegments: Some[int64](4), ExclusiveStartKey: arg(`{"id":{"S":"a"}}`),
		})
		if err == nil {
			accepted++
			continue
		}
		invalidRequest(t, err, fmt.Sprintf("The provided starting key is invalid: Invalid ExclusiveStartKey. "+
			"Please use ExclusiveStartKey with correct Segment. TotalSegments: 4 Segment: %d", segment))
	}
	equal(t, "segments that accept it", accepted, 1)
}
