package service

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// consumed returns the units consumed since before as text, such as "Music w1 r0.5, Music/byGenre
// w1", and updates before.
func (d *db) consumed(before *map[string]Consumed) string {
	now, words := map[string]Consumed{}, []string{}
	for _, c := range d.Consumed() {
		name := c.Table
		if c.Index != "" {
			name += "/" + c.Index
		}
		now[name] = c
		earlier := (*before)[name]
		word := name
		if w := c.Write - earlier.Write; w != 0 {
			word += fmt.Sprint(" w", w)
		}
		if r := c.Read - earlier.Read; r != 0 {
			word += fmt.Sprint(" r", r)
		}
		if word != name {
			words = append(words, word)
		}
	}
	*before = now
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// consumedInAnswers returns the units in answers as text of the same form. A local index's units
// are its table's.
func consumedInAnswers(reads bool, answers []*Capacity) string {
	sums, words := map[string]float64{}, []string{}
	for _, c := range answers {
		sums[c.TableName] += c.Table.Units
		for _, p := range c.Local {
			sums[c.TableName] += p.Units
		}
		for name, p := range c.Global {
			sums[c.TableName+"/"+name] += p.Units
		}
	}
	for name, units := range sums {
		if units > 0 {
			words = append(words, fmt.Sprint(name, map[bool]string{true: " r", false: " w"}[reads], units))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// Every call is counted by the rules of AWS's capacity units, and agrees with its answer if the
// answer shows units.
func TestConsumed(t *testing.T) {
	// with the keys
	kb := func(n int) string { return fmt.Sprintf(`,"x":{"S":"%s"}`, strings.Repeat("x", n*900)) }
	song := func(name, attributes string) ItemArg {
		return arg(fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"%s"}%s}`, name, attributes))
	}
	counter := func(name string) ItemArg { return arg(fmt.Sprintf(`{"id":{"S":"%s"}}`, name)) }
	const indexed = `,"year":{"N":"1"},"genre":{"S":"a"}`
	one := func(c *Capacity) []*Capacity { return []*Capacity{c} }
	type call func(d *db, ask Opt[string]) ([]*Capacity, error)
	put := func(item ItemArg) call {
		return func(d *db, ask Opt[string]) ([]*Capacity, error) {
			out, err := d.PutItem(ctx, &WriteInput{TableName: Some("Music"), Item: item, ReturnConsumedCapacity: ask})
			return one(out.Capacity), err
		}
	}
	update := func(in WriteInput) call {
		return func(d *db, ask Opt[string]) ([]*Capacity, error) {
			in.TableName, in.Item, in.ReturnConsumedCapacity = Some("Music"), song("a", ""), ask
			out, err := d.UpdateItem(ctx, &in)
			return one(out.Capacity), err
		}
	}
	remove := func(d *db, ask Opt[string]) ([]*Capacity, error) {
		out, err := d.DeleteItem(ctx, &WriteInput{TableName: Some("Music"), Item: song("a", ""), ReturnConsumedCapacity: ask})
		return one(out.Capacity), err
	}
	get := func(name string, consistent bool) call {
		return func(d *db, ask Opt[string]) ([]*Capacity, error) {
			out, err := d.GetItem(ctx, &GetItemInput{TableName: Some("Music"), Key: song(name, ""), ConsistentRead: Some(consistent), ReturnConsumedCapacity: ask})
			return one(out.Capacity), err
		}
	}
	query := func(in QueryInput) call {
		return func(d *db, ask Opt[string]) ([]*Capacity, error) {
			in.TableName, in.Values, in.ReturnConsumedCapacity = Some("Music"), vals(`{":v":{"S":"a"}}`), ask
			out, err := d.Query(ctx, &in)
			return one(out.Capacity), err
		}
	}
	scan := func(in ScanInput) call {
		return func(d *db, ask Opt[string]) ([]*Capacity, error) {
			in.TableName, in.ReturnConsumedCapacity = Some("Music"), ask
			out, err := d.Scan(ctx, &in)
			return one(out.Capacity), err
		}
	}
	transact := func(d *db, ask Opt[string]) ([]*Capacity, error) {
		out, err := d.TransactWriteItems(ctx, &TransactWriteItemsInput{
			Items:              []TransactAction{{Put: &WriteInput{TableName: Some("Music"), Item: song("t", indexed+kb(1))}}, putAction(`{"id":{"S":"t"}}`)},
			ClientRequestToken: Some("token"), ReturnConsumedCapacity: ask,
		})
		return out.Capacity, err
	}
	steps := []struct {
		about string
		do    call
		want  string
	}{
		{"an item in no index", put(song("a", kb(1))), "Music w1"},
		{"into both, and the local one's units are the table's", put(song("a", indexed+kb(1))), "Music w2, Music/byGenre w1"},
		{"growing to 3 KB; its entries stay as they are", put(song("a", indexed+kb(3))), "Music w3"},
		{"and back: the larger size counts", put(song("a", indexed+kb(1))), "Music w3"},
		{"an update that changes nothing", update(WriteInput{Update: Some("REMOVE nothing")}), "Music w1"},
		{"the keys of both indexes change", update(WriteInput{Update: Some("SET #y = :y"), Names: map[string]string{"#y": "year"}, Values: vals(`{":y":{"N":"7"}}`)}), "Music w3, Music/byGenre w2"},
		{"gone from all", remove, "Music w2, Music/byGenre w1"},
		{"there is none", remove, "Music w1"},
		{"a batch", func(d *db, ask Opt[string]) ([]*Capacity, error) {
			out, err := d.BatchWriteItem(ctx, &BatchWriteItemInput{ReturnConsumedCapacity: ask, RequestItems: []BatchWriteTable{
				{Table: "Music", Requests: []WriteRequest{{Put: new(song("b", indexed+kb(5)))}, {Put: new(song("c", kb(5)))}}},
				{Table: "Counters", Requests: []WriteRequest{{Put: new(counter("b"))}}},
			}})
			return out.Capacity, err
		}, "Counters w1, Music w11, Music/byGenre w1"},
		{"a transaction, twice in the tables", transact, "Counters w2, Music w3, Music/byGenre w1"},
		{"the same again has only been read", transact, "Counters r2, Music r2"},
		{"an eventual read of 5 KB", get("b", false), "Music r1"},
		{"a strong one", get("b", true), "Music r2"},
		{"of nothing", get("none", false), "Music r0.5"},
		{"many at once, each by itself", func(d *db, ask Opt[string]) ([]*Capacity, error) {
			out, err := d.BatchGetItem(ctx, &BatchGetItemInput{ReturnConsumedCapacity: ask, RequestItems: []BatchGetTable{
				{Table: "Music", Keys: []ItemArg{song("b", ""), song("c", ""), song("none", "")}, ConsistentRead: Some(true)}, {Table: "Counters", Keys: []ItemArg{counter("b")}},
			}})
			return out.Capacity, err
		}, "Counters r0.5, Music r5"},
		{"many as a transaction", func(d *db, ask Opt[string]) ([]*Capacity, error) {
			out, err := d.TransactGetItems(ctx, &TransactGetItemsInput{ReturnConsumedCapacity: ask, Items: []TransactGet{
				{Present: true, TableName: Some("Music"), Key: song("b", "")}, {Present: true, TableName: Some("Counters"), Key: counter("none")},
			}})
			return out.Capacity, err
		}, "Counters r2, Music r4"},
		{"a page of 10 KB", query(QueryInput{KeyCondition: Some("artist = :v")}), "Music r1.5"},
		{"one item of it, strong", query(QueryInput{KeyCondition: Some("artist = :v"), ScanIndexForward: Some(false), ConsistentRead: Some(true), Limit: Some(int64(1)), Select: Some("COUNT")}), "Music r1"},
		{"of the global index", query(QueryInput{IndexName: Some("byGenre"), KeyCondition: Some("genre = :v")}), "Music/byGenre r0.5"},
		{"of the local one, fetching two items", query(QueryInput{IndexName: Some("byYear"), KeyCondition: Some("artist = :v"), Select: Some("ALL_ATTRIBUTES")}), "Music r2"},
		{"all of the table", scan(ScanInput{}), "Music r2"},
		{"all of the global index", scan(ScanInput{IndexName: Some("byGenre")}), "Music/byGenre r0.5"},
	}
	for _, ask := range []Opt[string]{{}, Some("INDEXES")} {
		d, before := open(t), map[string]Consumed{}
		d.music()
		d.counters()
		for _, s := range steps {
			answers, err := s.do(d, ask)
			if err != nil {
				t.Fatalf("%s: %v", s.about, err)
			}
			equal(t, s.about, d.consumed(&before), s.want)
			if ask.Set {
				equal(t, s.about+", in the answer", consumedInAnswers(strings.Contains(s.want, " r"), answers), s.want)
			}
		}
	}
}

// A write that a condition refuses costs as much as the stored item would; other refusals cost
// nothing.
func TestConsumedByRefusals(t *testing.T) {
	d, before := open(t), map[string]Consumed{}
	table := Some(d.counters())
	d.put(table.V, fmt.Sprintf(`{"id":{"S":"a"},"x":{"S":"%s"}}`, strings.Repeat("x", 3000)))
	d.consumed(&before)
	a := arg(`{"id":{"S":"a"}}`)
	large := fmt.Sprintf(`{"id":{"S":"b"},"x":{"S":"%s"}}`, strings.Repeat("x", 1500))
	for _, s := range []struct {
		about string
		do    func() error
		want  string
	}{
		{"a put over 3 KB", func() error {
			_, err := d.PutItem(ctx, &WriteInput{TableName: table, Item: a, Condition: Some("attribute_not_exists(id)")})
			return err
		}, "Counters w3"},
		{"an update of nothing", func() error {
			_, err := d.UpdateItem(ctx, &WriteInput{TableName: table, Item: arg(`{"id":{"S":"none"}}`), Update: Some("SET n = id"), Condition: Some("attribute_exists(id)")})
			return err
		}, "Counters w1"},
		{"a transaction, all of it", func() error {
			return d.transact("", putAction(large), checkAction(`{"id":{"S":"a"}}`, "attribute_not_exists(id)"))
		}, "Counters w10"},
		{"an update of the wrong kind", func() error {
			_, err := d.UpdateItem(ctx, &WriteInput{TableName: table, Item: a, Update: Some("ADD x :v"), Values: vals(`{":v":{"N":"1"}}`)})
			return err
		}, ""},
		{"a key of the wrong kind", func() error {
			_, err := d.GetItem(ctx, &GetItemInput{TableName: table, Key: arg(`{"id":{"N":"1"}}`)})
			return err
		}, ""},
	} {
		if err := s.do(); errorCode(err) == "" {
			t.Errorf("%s: %v", s.about, err)
		}
		equal(t, s.about, d.consumed(&before), s.want)
	}
}

// Counters last as long as the table or the index. mayfly's own work is not counted: expiry costs
// nothing, and AWS does not charge a table for the backfill of an index.
func TestConsumedLastsAsLongAsTheTable(t *testing.T) {
	d, before := open(t), map[string]Consumed{}
	table := d.music()
	_, err := d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some(table), Present: true, Attribute: Some("ttl"), Enabled: Some(true)})
	if err != nil {
		t.Fatal(err)
	}
	put := func(label string) {
		t.Helper()
		d.put(table, fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"s"},"label":{"S":"%s"},"genre":{"S":"g"},"ttl":{"N":"%d"}}`, label, epoch.Unix()+60))
	}
	put("x")
	equal(t, "begun", d.consumed(&before), "Music w1") // without a year, the item is in no index
	d.updateMusic(adding(index("byLabel", "ALL", "label"), "label:S"))
	d.build()
	equal(t, "an index is added", d.consumed(&before), "")
	put("y")
	equal(t, "its key changes", d.consumed(&before), "Music w1, Music/byLabel w2")
	d.updateMusic(dropIndex("byLabel"))
	if d.consumed(&before); len(before) != 2 {
		t.Errorf("an index that is gone is told of: %v", before)
	}
	equal(t, "the table's stay", before["Music"].Write, 2)
	d.updateMusic(adding(index("byLabel", "ALL", "label"), "label:S"))
	d.consumed(&before)
	equal(t, "another index of the name", before["Music/byLabel"].Write, 0)

	d.build()
	d.advance(2 * time.Minute)
	equal(t, "expired", d.consumed(&before), "")
	equal(t, "and gone", d.get(table, `{"artist":{"S":"a"},"song":{"S":"s"}}`), "(none)")

	if _, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some(table)}); err != nil {
		t.Fatal(err)
	}
	if d.consumed(&before); len(before) != 0 {
		t.Errorf("a table that is gone is told of: %v", before)
	}
}

// Concurrent counting loses nothing.
func TestConsumedAtOnce(t *testing.T) {
	d := open(t)
	table := d.counters()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				if err := d.transact("", addAction(`{"id":{"S":"a"}}`)); err != nil {
					t.Error(err)
				}
				if _, err := d.GetItem(ctx, &GetItemInput{TableName: Some(table), Key: arg(`{"id":{"S":"a"}}`)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	equal(t, "units", fmt.Sprint(d.Consumed()), "[{Counters  800 3200 0 0}]")
}
