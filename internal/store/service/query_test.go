package service

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// songs fills the music table with songs s0 to s9 of one artist, one a year from 2000 on,
// alternately rock and jazz.
func (d *db) songs() string {
	d.t.Helper()
	table := d.music()
	for i := range 10 {
		d.put(table, fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"s%d"},"year":{"N":"%d"},"genre":{"S":"%s"},"label":{"S":"l%d"},"notes":{"S":"n%d"}}`,
			i, 2000+i, []string{"rock", "jazz"}[i%2], i, i))
	}
	d.put(table, `{"artist":{"S":"b"},"song":{"S":"other"}}`)
	return table
}

// names returns an answer as text: the last characters of its songs, and the song where it ended.
func names(out *PageOutput) string {
	var b strings.Builder
	for _, it := range out.Items {
		song := it.Get("song").Bytes()
		b.WriteByte(song[len(song)-1])
	}
	if out.LastEvaluatedKey != nil {
		b.WriteString(" …")
	}
	return b.String()
}

func TestQuery(t *testing.T) {
	d := open(t)
	table := d.songs()
	tests := []struct {
		about string
		in    QueryInput
		want  string
	}{
		{"all", QueryInput{KeyCondition: Some("artist = :a")}, "0123456789"},
		{"backward", QueryInput{KeyCondition: Some("artist = :a"), ScanIndexForward: Some(false)}, "9876543210"},
		{"limit", QueryInput{KeyCondition: Some("artist = :a"), Limit: Some[int64](3)}, "012 …"},
		{"a limit that the last item reaches", QueryInput{KeyCondition: Some("artist = :a"), Limit: Some[int64](10)}, "0123456789 …"},
		{"one", QueryInput{KeyCondition: Some("artist = :a AND song = :s")}, "5"},
		{"less", QueryInput{KeyCondition: Some("artist = :a AND song < :s")}, "01234"},
		{"at most", QueryInput{KeyCondition: Some("artist = :a AND song <= :s")}, "012345"},
		{"greater", QueryInput{KeyCondition: Some("artist = :a AND song > :s")}, "6789"},
		{"at least, mirrored", QueryInput{KeyCondition: Some("artist = :a AND :s <= song")}, "56789"},
		{"between", QueryInput{KeyCondition: Some("artist = :a AND song BETWEEN :s AND :t")}, "567"},
		{"begins", QueryInput{KeyCondition: Some("artist = :a AND begins_with(song, :s)")}, "5"},
		{"filter", QueryInput{KeyCondition: Some("artist = :a"), Filter: Some("genre = :g")}, "13579"},
		{"the limit comes before the filter", QueryInput{KeyCondition: Some("artist = :a"), Filter: Some("genre = :g"), Limit: Some[int64](4)}, "13 …"},
		{"local index", QueryInput{IndexName: Some("byYear"), KeyCondition: Some("artist = :a AND #y > :y")}, "789"},
		{"global index", QueryInput{IndexName: Some("byGenre"), KeyCondition: Some("genre = :g AND #y <= :y")}, "135"},
		{"go on behind", QueryInput{KeyCondition: Some("artist = :a"), ExclusiveStartKey: arg(`{"artist":{"S":"a"},"song":{"S":"s6"}}`)}, "789"},
		{"go on before", QueryInput{KeyCondition: Some("artist = :a"), ScanIndexForward: Some(false), ExclusiveStartKey: arg(`{"artist":{"S":"a"},"song":{"S":"s6"}}`)}, "543210"},
		{"a start key that is not there", QueryInput{KeyCondition: Some("artist = :a"), ExclusiveStartKey: arg(`{"artist":{"S":"a"},"song":{"S":"s66"}}`)}, "789"},
		{"go on in an index", QueryInput{IndexName: Some("byGenre"), KeyCondition: Some("genre = :g"), ExclusiveStartKey: arg(
			`{"artist":{"S":"a"},"song":{"S":"s5"},"genre":{"S":"jazz"},"year":{"N":"2005"}}`)}, "79"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			tt.in.TableName = Some(table)
			useSongValues(&tt.in)
			out, err := d.Query(ctx, &tt.in)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "songs", names(out), tt.want)
		})
	}
}

// useSongValues sets the values and names that the query's expressions use.
func useSongValues(in *QueryInput) {
	all := vals(`{":a":{"S":"a"},":s":{"S":"s5"},":t":{"S":"s7"},":g":{"S":"jazz"},":y":{"N":"2006"}}`)
	in.Values = Values{V: map[string]dynamo.Value{}}
	for name, v := range all.V {
		if strings.Contains(in.KeyCondition.V+in.Filter.V, name) {
			in.Values.V[name] = v
		}
	}
	if strings.Contains(in.KeyCondition.V, "#y") {
		in.Names = Names{"#y": "year"}
	}
}

func TestQueryPagesByLimit(t *testing.T) {
	d := open(t)
	table := d.songs()
	for _, index := range []Opt[string]{{}, Some("byYear")} {
		in := QueryInput{TableName: Some(table), IndexName: index, KeyCondition: Some("artist = :a"), Limit: Some[int64](3)}
		useSongValues(&in)
		var pages []string
		for {
			out, err := d.Query(ctx, &in)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, names(out))
			if out.LastEvaluatedKey == nil {
				break
			}
			in.ExclusiveStartKey = ItemArg{Item: out.LastEvaluatedKey}
		}
		equal(t, "pages "+index.V, strings.Join(pages, "|"), "012 …|345 …|678 …|9")
	}
}

// A page ends with the item that makes it reach 1 MB, whether or not a filter drops items.
func TestQueryPagesBySize(t *testing.T) {
	d := open(t)
	table := d.music()
	for i := range 5 {
		d.put(table, fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"s%d"},"x":{"S":"%s"}}`, i, strings.Repeat("x", 300*1024)))
	}
	in := QueryInput{TableName: Some(table), KeyCondition: Some("artist = :a"), Values: vals(`{":a":{"S":"a"}}`), Projection: Some("song")}
	out, err := d.Query(ctx, &in)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "first page", names(out), "0123 …")
	equal(t, "start key", out.LastEvaluatedKey.String(), `{"artist":{"S":"a"},"song":{"S":"s3"}}`)
	in.Filter = Some("attribute_not_exists(x)")
	if out, err = d.Query(ctx, &in); err != nil {
		t.Fatal(err)
	}
	equal(t, "filtered", fmt.Sprint(out.Count, out.ScannedCount, out.LastEvaluatedKey != nil), "0 4 true")
}

func TestQuerySelect(t *testing.T) {
	d := open(t)
	table := d.songs()
	first := func(in QueryInput) string {
		t.Helper()
		in.TableName, in.Limit, in.Names = Some(table), Some[int64](1), nil
		useSongValues(&in)
		out, err := d.Query(ctx, &in)
		if err != nil {
			return err.(*dynamo.Error).Message
		}
		if out.CountOnly {
			return fmt.Sprint("count ", out.Count, " items ", len(out.Items))
		}
		return out.Items[0].String()
	}
	const whole = `{"artist":{"S":"a"},"genre":{"S":"rock"},"label":{"S":"l0"},"notes":{"S":"n0"},"song":{"S":"s0"},"year":{"N":"2000"}}`
	table1, local, global := Opt[string]{}, Some("byYear"), Some("byGenre")
	artist, genre := Some("artist = :a"), Some("genre = :g")
	tests := []struct {
		about string
		in    QueryInput
		want  string
	}{
		{"table", QueryInput{IndexName: table1, KeyCondition: artist}, whole},
		{"count", QueryInput{IndexName: table1, KeyCondition: artist, Select: Some("COUNT")}, "count 1 items 0"},
		{"local index, as projected", QueryInput{IndexName: local, KeyCondition: artist}, `{"artist":{"S":"a"},"song":{"S":"s0"},"year":{"N":"2000"}}`},
		{"local index, all", QueryInput{IndexName: local, KeyCondition: artist, Select: Some("ALL_ATTRIBUTES")}, whole},
		{"local index, unprojected attribute", QueryInput{IndexName: local, KeyCondition: artist, Projection: Some("notes, song")}, `{"notes":{"S":"n0"},"song":{"S":"s0"}}`},
		{"local index, filter on one", QueryInput{IndexName: local, KeyCondition: artist, Filter: Some("notes <> :g")},
			"One or more parameter values were invalid: Secondary index byYear does not project one or more filter attributes: [notes]"},
		{"global index, as projected", QueryInput{IndexName: global, KeyCondition: genre},
			`{"artist":{"S":"a"},"genre":{"S":"jazz"},"label":{"S":"l1"},"song":{"S":"s1"},"year":{"N":"2001"}}`},
		{"global index, all", QueryInput{IndexName: global, KeyCondition: genre, Select: Some("ALL_ATTRIBUTES")},
			"One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary index byGenre because its projection type is not ALL"},
		{"global index, unprojected attribute", QueryInput{IndexName: global, KeyCondition: genre, Projection: Some("notes")},
			"One or more parameter values were invalid: Global secondary index byGenre does not project [notes]"},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) { equal(t, "first item", first(tt.in), tt.want) })
	}
}

func TestQueryValidation(t *testing.T) {
	d := open(t)
	table := d.songs()
	counters := d.counters()
	artist := Some("artist = :a")
	tests := []struct {
		about string
		in    QueryInput
		want  string
	}{
		{"limit", QueryInput{KeyCondition: artist, Limit: Some[int64](0)},
			"1 validation error detected: Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"index name", QueryInput{KeyCondition: artist, IndexName: Some("a")},
			"1 validation error detected: Value 'a' at 'indexName' failed to satisfy constraint: Member must have length greater than or equal to 3"},
		{"no condition", QueryInput{}, "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."},
		{"values without expressions", QueryInput{Projection: Some("a"), Values: vals(`{":a":{"S":"a"}}`)},
			"ExpressionAttributeValues can only be specified when using expressions: FilterExpression and KeyConditionExpression are null"},
		{"old and new", QueryInput{KeyCondition: artist, Legacy: Legacy{AttributesToGet: []string{"a"}, KeyConditions: map[string]LegacyCondition{}}},
			"Can not use both expression and non-expression parameters in the same request: " +
				"Non-expression parameters: {AttributesToGet, KeyConditions} Expression parameters: {KeyConditionExpression}"},
		{"specific without list", QueryInput{KeyCondition: artist, Select: Some("SPECIFIC_ATTRIBUTES")},
			"1 validation error detected: Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"},
		{"list with all", QueryInput{KeyCondition: artist, Projection: Some("x"), Select: Some("ALL_ATTRIBUTES")},
			"Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES"},
		{"list with count", QueryInput{KeyCondition: artist, Projection: Some("x"), Select: Some("COUNT")},
			"Cannot specify the ProjectionExpression when choosing to get only the Count"},
		{"all projected without index", QueryInput{KeyCondition: artist, Select: Some("ALL_PROJECTED_ATTRIBUTES")},
			"ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"},
		{"unknown index", QueryInput{KeyCondition: artist, IndexName: Some("none")}, "The table does not have the specified index: none"},
		{"consistent read of a global index", QueryInput{KeyCondition: Some("genre = :g"), IndexName: Some("byGenre"), ConsistentRead: Some(true)},
			"Consistent reads are not supported on global secondary indexes"},
		{"key missing", QueryInput{KeyCondition: Some("song = :s")}, "Query condition missed key schema element: artist"},
		{"partition key by comparison", QueryInput{KeyCondition: Some("artist > :a")}, "Query key condition not supported"},
		{"wrong type", QueryInput{KeyCondition: Some("artist = :y")},
			"One or more parameter values were invalid: Condition parameter type does not match schema type"},
		{"empty key", QueryInput{KeyCondition: artist, Values: vals(`{":a":{"S":""}}`)},
			"One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: artist"},
		{"key too long", QueryInput{KeyCondition: artist, Values: vals(`{":a":{"S":"` + strings.Repeat("a", 2049) + `"}}`)},
			"One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes"},
		{"filter on the key", QueryInput{KeyCondition: artist, Filter: Some("song = :s")},
			"Filter Expression can only contain non-primary key attributes: Primary key attribute: song"},
		{"start key without sort key", QueryInput{KeyCondition: artist, ExclusiveStartKey: arg(`{"artist":{"S":"a"}}`)},
			"The provided starting key is invalid: The provided key element does not match the schema"},
		{"start key of the table for an index", QueryInput{KeyCondition: artist, IndexName: Some("byYear"), ExclusiveStartKey: arg(`{"artist":{"S":"a"},"song":{"S":"s1"}}`)},
			"The provided starting key is invalid"},
		{"start key with a bad value", QueryInput{KeyCondition: artist, ExclusiveStartKey: arg(`{"artist":{"SS":[]}}`)},
			"The provided starting key is invalid: One or more parameter values were invalid: An string set  may not be empty"},
		{"start key with a bad number", QueryInput{KeyCondition: artist, ExclusiveStartKey: arg(`{"artist":{"N":"x"}}`)},
			"The parameter cannot be converted to a numeric value: x"},
		{"start key of another partition", QueryInput{KeyCondition: artist, ExclusiveStartKey: arg(`{"artist":{"S":"b"},"song":{"S":"other"}}`)},
			"The provided starting key is outside query boundaries based on provided conditions"},
		{"start key outside the range", QueryInput{KeyCondition: Some("artist = :a AND song > :s"), ExclusiveStartKey: arg(`{"artist":{"S":"a"},"song":{"S":"s1"}}`)},
			"The provided starting key does not match the range key predicate"},
		{"start key of a single item", QueryInput{KeyCondition: Some("artist = :a AND song = :s"), ExclusiveStartKey: arg(`{"artist":{"S":"a"},"song":{"S":"s5"}}`)},
			"The query can return at most one row and cannot be restarted"},
		{"start key of a table without sort key", QueryInput{TableName: Some(counters), KeyCondition: Some("id = :a"), ExclusiveStartKey: arg(`{"id":{"S":"a"}}`)},
			`The provided exclusive start key is invalid: ExclusiveStartKey: {"id":{"S":"a"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.about, func(t *testing.T) {
			tt.in.TableName = Some(tt.in.TableName.Or(table))
			if tt.in.Values.V == nil && tt.in.KeyCondition.Set {
				useSongValues(&tt.in)
			}
			_, err := d.Query(ctx, &tt.in)
			invalidRequest(t, err, tt.want)
		})
	}
}

// A local index's entry and its item are of one state, even during concurrent writes.
func TestQueryFetchesFromOneState(t *testing.T) {
	d := open(t)
	table := d.music()
	done := make(chan error)
	stop := make(chan struct{})
	go func() {
		put := WriteInput{TableName: Some(table), Item: arg(`{"artist":{"S":"a"},"song":{"S":"s"},"year":{"N":"1"},"notes":{"S":"n"}}`)}
		remove := WriteInput{TableName: Some(table), Item: arg(`{"artist":{"S":"a"},"song":{"S":"s"}}`)}
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if _, err := d.PutItem(ctx, &put); err != nil {
				done <- err
				return
			}
			if _, err := d.DeleteItem(ctx, &remove); err != nil {
				done <- err
				return
			}
		}
	}()
	in := QueryInput{
		TableName: Some(table), IndexName: Some("byYear"), KeyCondition: Some("artist = :a"), Values: vals(`{":a":{"S":"a"}}`), Select: Some("ALL_ATTRIBUTES"),
	}
	for range 500 {
		out, err := d.Query(ctx, &in)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range out.Items {
			if it.Get("notes") == nil {
				t.Fatalf("an entry without its item: %v", it)
			}
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
