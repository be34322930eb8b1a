package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
)

// logged makes the service log into the buffer that it returns, without times.
func (d *db) logged() *bytes.Buffer {
	var b bytes.Buffer
	d.log = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return &b
}

func (d *db) setTTL(table, attribute string, enabled bool) {
	d.t.Helper()
	in := UpdateTimeToLiveInput{TableName: Some(table), Present: true, Enabled: Some(enabled), Attribute: Some(attribute)}
	if _, err := d.UpdateTimeToLive(ctx, &in); err != nil {
		d.t.Fatal(err)
	}
}

// suspicions returns the counts as text.
func (d *db) suspicions() string {
	all := map[string]int64{}
	for _, s := range d.Suspicions() {
		all[s.Table+" "+s.Reason] = s.Writes
	}
	return fmt.Sprint(all)
}

// suspiciousItems are items of a table with TTL on "expires", and the reasons why they do not expire
// in time; "" for items that do, or that are to stay.
var suspiciousItems = []struct{ attributes, reason string }{
	{`"expires":{"N":"1767225700"}`, ""},
	{`"expires":{"N":"1767225700.25"}`, ""},
	{`"expires":{"N":"1767225500"}`, ""}, // has passed
	{`"name":{"S":"stays"},"more":{"M":{"a":{"M":{"expires":{"N":"1"}}},"expires":{"S":"never"}}},"expiry":{"N":"1"}`, ""},
	{`"expires":{"NULL":true}`, ""},
	{`"Expires":{"BOOL":true},"EXPIRES":{"S":"never"}`, ""}, // other things of a similar name
	{`"expires":{"N":"1767225700000"}`, "milliseconds"},
	{`"expires":{"N":"1767225700000000"}`, "microseconds"},
	{`"expires":{"N":"1767225700000000000"}`, "nanoseconds"},
	{`"expires":{"N":"1E+50"}`, "too_far"},
	{`"expires":{"N":"253402300799"}`, "too_far"}, // the year 9999; a thousandth of it is long past
	{`"expires":{"N":"0"}`, "not_positive"},
	{`"expires":{"N":"-1767225700"}`, "not_positive"},
	{`"expires":{"N":"3600"}`, "five_years_past"},
	{`"expires":{"S":"1767225700"}`, "string"},
	{`"expires":{"S":"2026-01-01T00:00:00Z"}`, "string"},
	{`"expires":{"NS":["1767225700"]}`, "type"},
	{`"expires":{"BOOL":false}`, "type"},
	{`"meta":{"M":{"expires":{"N":"1767225700"}}}`, "nested"},
	{`"Expires":{"N":"1767225700"}`, "name_case"},
}

// Each kind of mistake is counted and logged once for the table, by whatever operation it is written.
func TestSuspiciousValues(t *testing.T) {
	writes := map[string]func(d *db, id, attributes string) error{
		"PutItem": func(d *db, id, attributes string) error {
			_, err := d.PutItem(ctx, &WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"` + id + `"},` + attributes + `}`)})
			return err
		},
		"UpdateItem": func(d *db, id, attributes string) error {
			_, err := d.UpdateItem(ctx, suspiciousUpdate(id, attributes))
			return err
		},
		"BatchWriteItem": func(d *db, id, attributes string) error {
			put := arg(`{"id":{"S":"` + id + `"},` + attributes + `}`)
			good := arg(`{"id":{"S":"good"},"expires":{"N":"1767225700"}}`)
			_, err := d.BatchWriteItem(ctx, &BatchWriteItemInput{RequestItems: []BatchWriteTable{{Table: "Counters", Requests: []WriteRequest{{Put: &good}, {Put: &put}}}}})
			return err
		},
		"TransactWriteItems put": func(d *db, id, attributes string) error {
			put := WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"` + id + `"},` + attributes + `}`)}
			_, err := d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{{Put: &put}}})
			return err
		},
		"TransactWriteItems update": func(d *db, id, attributes string) error {
			_, err := d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{{Update: suspiciousUpdate(id, attributes)}}})
			return err
		},
	}
	for operation, write := range writes {
		t.Run(operation, func(t *testing.T) {
			d := open(t)
			log := d.logged()
			table := d.counters()
			d.setTTL(table, "expires", true)
			want := map[string]int64{}
			for i, c := range suspiciousItems {
				for range 3 { // all but the first are only counted
					if err := write(d, fmt.Sprint("item-", i), c.attributes); err != nil {
						t.Fatal(c.attributes, err)
					}
				}
				if c.reason != "" {
					want["Counters "+c.reason] += 3
				}
			}
			equal(t, "counts", d.suspicions(), fmt.Sprint(want))
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			equal(t, "lines", len(lines), len(want))
			equal(t, "the first line", lines[0], `level=WARN msg="a TTL value looks like a mistake, and its item will not expire in time; further ones with this reason are only counted" `+
				`table=Counters attribute=expires reason=milliseconds why="the value of the TTL attribute expires looks like milliseconds" key="id=item-6" `+
				`next="divide it by 1,000: TTL is in seconds; list all with: mayfly doctor --table Counters"`)

			d.mustTag(table, "mayfly:ttl-check", "refuse")
			for i, c := range suspiciousItems {
				err := write(d, fmt.Sprint("refused-", i), c.attributes)
				if (err != nil) != (c.reason != "") {
					t.Errorf("with refuse, %s: %v", c.attributes, err)
				}
				if got := d.get(table, fmt.Sprintf(`{"id":{"S":"refused-%d"}}`, i)); c.reason != "" && got != "(none)" {
					t.Errorf("with refuse, %s was written", c.attributes)
				}
			}
			d.mustTag(table, "mayfly:ttl-check", "off")
			for i, c := range suspiciousItems {
				if err := write(d, fmt.Sprint("off-", i), c.attributes); err != nil {
					t.Errorf("with off, %s: %v", c.attributes, err)
				}
			}
			equal(t, "counts after the tags", d.suspicions(), fmt.Sprint(want))
		})
	}
}

// suspiciousUpdate returns an update that sets these attributes.
func suspiciousUpdate(id, attributes string) *WriteInput {
	item := arg(`{` + attributes + `}`).Item
	in := &WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"` + id + `"}}`)}
	var sets, names, values []string
	for name, v := range item.All() {
		n := fmt.Sprint(len(sets))
		sets = append(sets, "#n"+n+" = :v"+n)
		names = append(names, "#n"+n+"="+string(name))
		values = append(values, `":v`+n+`":`+string(dynamo.AppendValueJSON(nil, v)))
	}
	in.Update = Some("SET " + strings.Join(sets, ", "))
	in.Names = map[string]string{}
	for _, pair := range names {
		n, name, _ := strings.Cut(pair, "=")
		in.Names[n] = name
	}
	in.Values = vals("{" + strings.Join(values, ",") + "}")
	return in
}

// A long key may be a secret: the log has its beginning only.
func TestSuspiciousKeys(t *testing.T) {
	for id, want := range map[string]string{"short": `"id=short"`, "a-secret-token": `"id=a-secret…"`, strings.Repeat("ü", 1000): `"id=` + strings.Repeat("ü", 8) + `…"`} {
		d := open(t)
		log := d.logged()
		d.setTTL(d.counters(), "expires", true)
		if _, err := d.PutItem(ctx, &WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"` + id + `"},"expires":{"S":"1"}}`)}); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); !strings.Contains(got, "key="+want) {
			t.Errorf("%.20s is logged as %s", id, got)
		}
	}
}

// A mistake in another attribute names that attribute.
func TestSuspiciousPlaces(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.setTTL(table, "expires", true)
	d.mustTag(table, "mayfly:ttl-check", "refuse")
	for attributes, want := range map[string]string{
		`"Expires":{"N":"1767225700"}`:                "The attribute Expires differs from the TTL attribute expires in upper and lower case; write the name exactly as the table's TTL has it",
		`"eXpires":{"S":"1767225700"}`:                "The attribute eXpires differs from the TTL attribute expires in upper and lower case; write",
		`"meta":{"M":{"expires":{"N":"1767225700"}}}`: "The TTL attribute expires is inside the map meta, where TTL does not look; write it as an attribute of the item itself",
	} {
		_, err := d.PutItem(ctx, &WriteInput{TableName: Some(table), Item: arg(`{"id":{"S":"a"},` + attributes + `}`)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", attributes, err, want)
		}
	}
}

// The errors of refused writes name the attribute, the fault and the remedy.
func TestSuspiciousValuesRefused(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.setTTL(table, "expires", true)
	d.mustTag(table, "mayfly:ttl-check", "refuse")
	const message = "One or more parameter values were invalid: The value of the TTL attribute expires looks like milliseconds; divide it by 1,000: TTL is in seconds (the table's tag mayfly:ttl-check is refuse)"
	const bad = `"expires":{"N":"1767225700000"}`
	put := arg(`{"id":{"S":"a"},` + bad + `}`)
	_, err := d.PutItem(ctx, &WriteInput{TableName: Some(table), Item: put})
	invalidRequest(t, err, message)
	_, err = d.UpdateItem(ctx, suspiciousUpdate("a", bad))
	invalidRequest(t, err, message)
	_, err = d.BatchWriteItem(ctx, &BatchWriteItemInput{RequestItems: []BatchWriteTable{{Table: table, Requests: []WriteRequest{{Put: &put}}}}})
	invalidRequest(t, err, message)
	for _, action := range []TransactAction{{Put: &WriteInput{TableName: Some(table), Item: put}}, {Update: suspiciousUpdate("a", bad)}} {
		_, err = d.TransactWriteItems(ctx, &TransactWriteItemsInput{Items: []TransactAction{action}})
		if reasons := err.(*dynamo.Error).Reasons; len(reasons) != 1 || reasons[0].Code != "ValidationError" || reasons[0].Message != message {
			t.Errorf("a transaction: %v, %v", err, reasons)
		}
	}
}

// An update may leave an old mistake alone, also where mistakes are refused.
func TestSuspiciousValueOfBefore(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.put(table, `{"id":{"S":"a"},"expires":{"S":"soon"}}`)
	d.setTTL(table, "expires", true)
	d.mustTag(table, "mayfly:ttl-check", "refuse")
	set := func(attributes string) error {
		_, err := d.UpdateItem(ctx, suspiciousUpdate("a", attributes))
		return err
	}
	if err := set(`"n":{"N":"1"}`); err != nil {
		t.Error(err)
	}
	if err := set(`"expires":{"S":"soon"}`); err == nil {
		t.Error("the same mistake was written again")
	}
	if err := set(`"expires":{"N":"1767225700"}`); err != nil {
		t.Error(err)
	}
}

// An attribute whose name is a path means a map, where TTL does not look.
func TestSuspiciousPath(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.setTTL(table, "meta.times.end", true)
	for i, c := range []struct {
		item string
		want string
	}{
		{`"meta":{"M":{"times":{"M":{"end":{"N":"1767225700"}}}}}`, "map[Counters nested:1]"},
		{`"meta":{"M":{"times.end":{"N":"1767225700"}}}`, "map[Counters nested:2]"},
		{`"meta":{"M":{"times":{"M":{"begin":{"N":"1767225700"}}}}}`, "map[Counters nested:2]"},
		{`"meta":{"M":{"times":{"S":"end"}}}`, "map[Counters nested:2]"},
		{`"meta.times.end":{"N":"1767225700"}`, "map[Counters nested:2]"},
	} {
		d.put(table, fmt.Sprintf(`{"id":{"S":"%d"},%s}`, i, c.item))
		equal(t, c.item, d.suspicions(), c.want)
	}
}

// A change of TTL begins anew: the first mistake after it is logged. The counts of a deleted table
// are gone.
func TestSuspicionsEnd(t *testing.T) {
	d := open(t)
	log := d.logged()
	table := d.counters()
	bad := func() { d.put(table, `{"id":{"S":"`+strings.Repeat("é", 300)+`"},"expires":{"S":"soon"}}`) }
	bad()
	equal(t, "without TTL", d.suspicions()+log.String(), "map[]")
	for i := range 2 {
		d.setTTL(table, "expires", true)
		bad()
		bad()
		equal(t, "lines", strings.Count(log.String(), "\n"), i+1)
		d.setTTL(table, "expires", false)
	}
	equal(t, "counts", d.suspicions(), "map[Counters string:4]")
	if log.Len() > 1500 || strings.ContainsRune(log.String(), '\uFFFD') {
		t.Errorf("the key is not cut: %s", log)
	}
	if _, err := d.DeleteTable(ctx, &TableNameInput{TableName: Some(table)}); err != nil {
		t.Fatal(err)
	}
	equal(t, "counts of a deleted table", d.suspicions(), "map[]")
	d.counters()
	equal(t, "counts of a new table of the name", d.suspicions(), "map[]")
}
