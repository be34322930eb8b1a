package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

// expiryOfTable returns the expiry of a table as text.
func (d *db) expiryOfTable(name string) string {
	d.t.Helper()
	table, err := d.engine.Table(namespace, name)
	if err != nil {
		d.t.Fatal(err)
	}
	return table.Desc().TTL.Expiry.String()
}

func (d *db) tag(table string, pairs ...string) error {
	in := TagResourceInput{ARN: Some(d.tableARN(table))}
	for i := 0; i < len(pairs); i += 2 {
		in.Tags = append(in.Tags, Tag{Some(pairs[i]), Some(pairs[i+1])})
	}
	_, err := d.TagResource(ctx, &in)
	return err
}

func (d *db) untag(table string, keys ...string) {
	d.t.Helper()
	if _, err := d.UntagResource(ctx, &UntagResourceInput{ARN: Some(d.tableARN(table)), Keys: keys}); err != nil {
		d.t.Fatal(err)
	}
}

// A table's tags set how its items expire; the server's settings fill the gaps.
func TestExpiryTags(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.expiry = engine.Expiry{Seed: 9}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "strict"},
		{func() { d.mustTag(table, "mayfly:expiry", "aws") }, "aws, observed, seed 9"},
		{func() { d.mustTag(table, "mayfly:expiry-delay", "fixed:600s") }, "aws, fixed:10m, seed 9"},
		{func() { d.mustTag(table, "mayfly:expiry-seed", "18446744073709551615", "team", "a") }, "aws, fixed:10m, seed 18446744073709551615"},
		{func() { d.untag(table, "mayfly:expiry") }, "strict"},
		{func() { d.mustTag(table, "mayfly:expiry", "aws", "mayfly:expiry-delay", "uniform:0s-1s") }, "aws, uniform:0s-1s, seed 18446744073709551615"},
		{func() { d.untag(table, "mayfly:expiry-delay", "mayfly:expiry-seed") }, "aws, observed, seed 9"},
		{func() { d.mustTag(table, "mayfly:expiry", "strict") }, "strict"},
	} {
		step.change()
		equal(t, "expiry", d.expiryOfTable(table), step.want)
	}
	in := CreateTableInput{
		TableName: Some("Tagged"), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST"),
		Tags: []Tag{{Some("mayfly:expiry"), Some("aws")}, {Some("mayfly:expiry-seed"), Some("3")}},
	}
	if _, err := d.CreateTable(ctx, &in); err != nil {
		t.Fatal(err)
	}
	equal(t, "created", d.expiryOfTable("Tagged"), "aws, observed, seed 3")
}

func (d *db) mustTag(table string, pairs ...string) {
	d.t.Helper()
	if err := d.tag(table, pairs...); err != nil {
		d.t.Fatal(err)
	}
}

// An invalid tag is refused, and nothing changes.
func TestExpiryTagsRefused(t *testing.T) {
	d := open(t)
	table := d.counters()
	d.mustTag(table, "mayfly:expiry", "aws")
	for _, c := range [][3]string{
		{"mayfly:expiry", "AWS", "The value of the tag mayfly:expiry is strict or aws, and not: AWS"},
		{"mayfly:expiry", "", "The value of the tag mayfly:expiry is strict or aws, and not: "},
		{"mayfly:expiry-delay", "10m", `The value of the tag mayfly:expiry-delay is wrong: invalid distribution of delays "10m"; use observed, fixed:10m or uniform:8m-30m`},
		{"mayfly:expiry-seed", "-1", "The value of the tag mayfly:expiry-seed is a whole number from 0 to 18446744073709551615, and not: -1"},
		{"mayfly:expiry-seed", "18446744073709551616", "The value of the tag mayfly:expiry-seed is a whole number from 0 to 18446744073709551615, and not: 18446744073709551616"},
		{"mayfly:expirey", "aws", "Tag Keys with the prefix mayfly: are mayfly:expiry, mayfly:expiry-delay, mayfly:expiry-seed, mayfly:shards, mayfly:ttl-check and mayfly:throttle, and not: mayfly:expirey"},
		{"mayfly:ttl-check", "Refuse", "The value of the tag mayfly:ttl-check is warn, refuse or off, and not: Refuse"},
		{"mayfly:ttl-check", "", "The value of the tag mayfly:ttl-check is warn, refuse or off, and not: "},
		{"mayfly:shards", "0", "The value of the tag mayfly:shards is a whole number from 1 to 64, and not: 0"},
		{"mayfly:shards", "65", "The value of the tag mayfly:shards is a whole number from 1 to 64, and not: 65"},
		{"mayfly:shards", "-1", "The value of the tag mayfly:shards is a whole number from 1 to 64, and not: -1"},
		{"mayfly:shards", "1.0", "The value of the tag mayfly:shards is a whole number from 1 to 64, and not: 1.0"},
		{"mayfly:shards", "4294967297", "The value of the tag mayfly:shards is a whole number from 1 to 64, and not: 4294967297"},
		{"mayfly:shards", "", "The value of the tag mayfly:shards is a whole number from 1 to 64, and not: "},
	} {
		invalidRequest(t, d.tag(table, "team", "a", c[0], c[1]), c[2])
		in := CreateTableInput{
			TableName: Some("Tagged"), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST"),
			Tags: []Tag{{Some(c[0]), Some(c[1])}},
		}
		_, err := d.CreateTable(ctx, &in)
		invalidRequest(t, err, c[2])
	}
	equal(t, "expiry", d.expiryOfTable(table), "aws, observed, seed 0")
	out, err := d.ListTagsOfResource(ctx, &ListTagsInput{ARN: Some(d.tableARN(table))})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tags", fmt.Sprint(out.Tags), "[[mayfly:expiry aws]]")
}

// After a restart with other settings, tables follow them where their tags leave the choice, and
// the server reports which tables changed.
func TestAdoptExpiry(t *testing.T) {
	d := open(t)
	tables := map[string][]string{"Plain": nil, "Strict": {"mayfly:expiry", "strict"}, "AWS": {"mayfly:expiry", "aws"}, "Fixed": {"mayfly:expiry-delay", "fixed:1m"}}
	for name, tags := range tables {
		in := CreateTableInput{TableName: Some(name), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST")}
		if _, err := d.CreateTable(ctx, &in); err != nil {
			t.Fatal(err)
		}
		if tags != nil {
			d.mustTag(name, tags...)
		}
	}
	for _, step := range []struct {
		expiry engine.Expiry
		want   string
	}{
		{engine.Expiry{}, "map[]"},
		{engine.Expiry{Seed: 1}, "map[AWS:aws, observed, seed 0 → aws, observed, seed 1]"},
		{engine.Expiry{Mode: engine.ExpiryAWS, Seed: 1}, "map[Fixed:strict → aws, fixed:1m, seed 1 Plain:strict → aws, observed, seed 1]"},
		{engine.Expiry{Mode: engine.ExpiryAWS, Seed: 1}, "map[]"},
		{engine.Expiry{Seed: 1}, "map[Fixed:aws, fixed:1m, seed 1 → strict Plain:aws, observed, seed 1 → strict]"},
	} {
		d.expiry = step.expiry
		changed := map[string]string{}
		err := d.AdoptExpiry(ctx, func(table string, from, to engine.Expiry) { changed[table] = fmt.Sprint(from, " → ", to) })
		if err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint("with ", step.expiry), fmt.Sprint(changed), step.want)
	}
}

// A read can be limited to expired items that are not removed yet, or to the others. Pages, counts,
// filters and indexes follow. Nothing removes an item in this test.
func TestExpiredReads(t *testing.T) {
	d := open(t)
	d.expiry = engine.Expiry{Mode: engine.ExpiryAWS}
	table := d.music()
	if _, err := d.UpdateTimeToLive(ctx, &UpdateTimeToLiveInput{TableName: Some(table), Present: true, Enabled: Some(true), Attribute: Some("ttl")}); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		// 0, 3 and 6 never expire; 1, 4 and 7 have expired at the read; 2, 5 and 8 expire later
		ttl := ""
		if i%3 != 0 {
			ttl = fmt.Sprintf(`,"ttl":{"N":"%d"}`, int(epoch.Unix())+i%3)
		}
		d.put(table, fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"%d"},"year":{"N":"200%[1]d"},"genre":{"S":"g"},"plays":{"N":"%[1]d"}%s}`, i, ttl))
	}
	if err := d.clock.Advance(time.Second); err != nil {
		t.Fatal(err)
	}
	songs := func(items []dynamo.Item) (out string) {
		for _, it := range items {
			out += string(it.Get("song").Bytes())
		}
		return out
	}
	one := func(song string) ItemArg { return arg(`{"artist":{"S":"a"},"song":{"S":"` + song + `"}}`) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		show Expired
		want string
	}{{0, "012345678"}, {ExpiredHidden, "023568"}, {ExpiredOnly, "147"}} {
		query := QueryInput{TableName: Some(table), KeyCondition: Some("artist = :a"), Values: vals(`{":a":{"S":"a"}}`), Expired: c.show}
		page, err := d.Query(ctx, &query)
		must(err)
		equal(t, "query", fmt.Sprint(songs(page.Items), page.Count, page.ScannedCount), fmt.Sprint(c.want, len(c.want), len(c.want)))

		query.Limit = Some[int64](2)
		var paged string
		for {
			page, err := d.Query(ctx, &query)
			must(err)
			paged += songs(page.Items)
			if page.LastEvaluatedKey == nil {
				break
			}
			query.ExclusiveStartKey = ItemArg{Item: page.LastEvaluatedKey}
		}
		equal(t, "pages", paged, c.want)

		query = QueryInput{TableName: Some(table), IndexName: Some("byYear"), KeyCondition: Some("artist = :a"), Values: vals(`{":a":{"S":"a"}}`),
			Select: Some("ALL_ATTRIBUTES"), Expired: c.show} // reads the items of the entries
		page, err = d.Query(ctx, &query)
		must(err)
		equal(t, "local index", songs(page.Items), c.want)

		page, err = d.Query(ctx, &QueryInput{TableName: Some(table), IndexName: Some("byGenre"), KeyCondition: Some("genre = :g"), Values: vals(`{":g":{"S":"g"}}`), Expired: c.show})
		must(err)
		equal(t, "global index", songs(page.Items), c.want)

		page, err = d.Scan(ctx, &ScanInput{TableName: Some(table), Filter: Some("plays > :n"), Values: vals(`{":n":{"N":"4"}}`), Expired: c.show})
		must(err)
		want := ""
		for _, song := range c.want {
			if song > '4' {
				want += string(song)
			}
		}
		equal(t, "scan with a filter", fmt.Sprint(songs(page.Items), page.ScannedCount), fmt.Sprint(want, len(c.want)))

		var gets, batch, transaction string
		for i := range 9 {
			song := fmt.Sprint(i)
			got, err := d.GetItem(ctx, &GetItemInput{TableName: Some(table), Key: one(song), Expired: c.show})
			must(err)
			many, err := d.BatchGetItem(ctx, &BatchGetItemInput{RequestItems: []BatchGetTable{{Table: table, Keys: []ItemArg{one(song)}}}, Expired: c.show})
			must(err)
			together, err := d.TransactGetItems(ctx, &TransactGetItemsInput{Items: []TransactGet{{Present: true, TableName: Some(table), Key: one(song)}}, Expired: c.show})
			must(err)
			if got.Item != nil {
				gets += song
			}
			batch += songs(many.Responses[0].Items)
			if together.Responses[0] != nil {
				transaction += song
			}
		}
		equal(t, "by key", fmt.Sprint(gets, batch, transaction), fmt.Sprint(c.want, c.want, c.want))
	}
}
