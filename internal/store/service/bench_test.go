package service

import (
	"fmt"
	"testing"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// benchTable is a table of 1,000 small items in a memory engine, without indexes or stream.
func benchTable(b *testing.B) *Service {
	b.Helper()
	e, err := engine.Open(engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	s := New(Options{Engine: e})
	in := CreateTableInput{TableName: Some("Counters"), Attributes: definitions("id:S"), KeySchema: keys("id"), BillingMode: Some("PAY_PER_REQUEST")}
	if _, err := s.CreateTable(ctx, &in); err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		put := WriteInput{TableName: Some("Counters"), Item: arg(fmt.Sprintf(`{"id":{"S":"%d"},"n":{"N":"1"},"name":{"S":"some text of some length"}}`, i))}
		if _, err := s.PutItem(ctx, &put); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func BenchmarkPutItem(b *testing.B) {
	s := benchTable(b)
	in := WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"1"},"n":{"N":"1"},"name":{"S":"some text of some length"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.PutItem(ctx, &in); err != nil {
			b.Fatal(err)
		}
	}
}

// A put that changes an item's entry in one of two indexes.
func BenchmarkPutIndexedItem(b *testing.B) {
	s := benchTable(b)
	in := musicTable("Music")
	if _, err := s.CreateTable(ctx, &in); err != nil {
		b.Fatal(err)
	}
	var puts [2]WriteInput
	for i := range puts {
		puts[i] = WriteInput{TableName: Some("Music"), Item: arg(fmt.Sprintf(`{"artist":{"S":"a"},"song":{"S":"s"},"genre":{"S":"g"},"year":{"N":"1"},"label":{"S":"l%d"},"name":{"S":"some text of some length"}}`, i))}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.PutItem(ctx, &puts[i%2]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetItem(b *testing.B) {
	s := benchTable(b)
	in := GetItemInput{TableName: Some("Counters"), Key: arg(`{"id":{"S":"1"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.GetItem(ctx, &in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateItem(b *testing.B) {
	s := benchTable(b)
	in := WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"1"}}`), Update: Some("SET n = n + :one"), Values: vals(`{":one":{"N":"1"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.UpdateItem(ctx, &in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	s := benchTable(b)
	in := ScanInput{TableName: Some("Counters")}
	b.ReportAllocs()
	for b.Loop() {
		out, err := s.Scan(ctx, &in)
		if err != nil || out.Count != 1000 {
			b.Fatal(out, err)
		}
	}
}

// A put with a TTL value, which is judged.
func BenchmarkPutItemTTL(b *testing.B) {
	s := benchTable(b)
	enable := UpdateTimeToLiveInput{TableName: Some("Counters"), Present: true, Enabled: Some(true), Attribute: Some("ttl")}
	if _, err := s.UpdateTimeToLive(ctx, &enable); err != nil {
		b.Fatal(err)
	}
	in := WriteInput{TableName: Some("Counters"), Item: arg(`{"id":{"S":"1"},"n":{"N":"1"},"name":{"S":"some text of some length"},"ttl":{"N":"1999999999"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.PutItem(ctx, &in); err != nil {
			b.Fatal(err)
		}
	}
}
