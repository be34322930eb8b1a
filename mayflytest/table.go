package mayflytest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TableOption changes a table that CreateTable creates.
type TableOption func(t *table)

// table is a table that is being created.
type table struct {
	in  *dynamodb.CreateTableInput
	ttl string
	err error
}

// TTL lets items expire at the instants in an attribute, and enables the table's stream.
func TTL(attribute string) TableOption {
	return func(t *table) {
		t.ttl = attribute
		t.in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages}
	}
}

// Index adds a global secondary index that projects all attributes. Its key is written as the table's
// in [DB.CreateTable], and can have up to four attributes of each kind, joined by "+":
// "tenant + region, year:N + month:N".
func Index(name, key string) TableOption {
	return func(t *table) {
		schema, err := t.schema(key, true)
		if err != nil {
			t.err = fmt.Errorf("index %q: %w", name, err)
			return
		}
		t.in.GlobalSecondaryIndexes = append(t.in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &name, KeySchema: schema, Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		})
	}
}

// CreateTable creates a table, and returns its description. The key is a text or a struct.
//
// A text names the partition key and, after a comma, the sort key; ":N" and ":B" make one a number or
// binary: "user", "user, at:N".
//
// A struct, or a pointer to one, is the form of the items, with the tags of attributevalue and of
// this package. The tag mayfly is hash, range or ttl. The type of a key follows from its field's:
//
//	type Session struct {
//		User    string    `dynamodbav:"user" mayfly:"hash"`
//		Device  string    `dynamodbav:"device" mayfly:"range"`
//		Expires time.Time `dynamodbav:"expires,unixtime" mayfly:"ttl"`
//	}
func (db *DB) CreateTable(name string, key any, options ...TableOption) *types.TableDescription {
	db.t.Helper()
	t := &table{in: &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}}
	if text, ok := key.(string); ok {
		t.in.KeySchema, t.err = t.schema(text, false)
	} else {
		t.err = t.fromStruct(reflect.TypeOf(key))
	}
	for _, set := range options {
		set(t)
	}
	if t.err != nil {
		db.t.Fatalf("table %q: %v", name, t.err)
	}
	out, err := db.DynamoDB().CreateTable(context.Background(), t.in)
	if err == nil && t.ttl != "" {
		_, err = db.DynamoDB().UpdateTimeToLive(context.Background(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &name, TimeToLiveSpecification: &types.TimeToLiveSpecification{Enabled: aws.Bool(true), AttributeName: &t.ttl},
		})
	}
	if err != nil {
		db.t.Fatalf("table %q: %v", name, err)
	}
	return out.TableDescription
}

// schema returns the key schema of a text such as "user, at:N", and defines its attributes. Only the
// key of an index can have several attributes of a kind.
func (t *table) schema(text string, several bool) (schema []types.KeySchemaElement, err error) {
	for i, part := range strings.Split(text, ",") {
		attributes := strings.Split(part, "+")
		if len(attributes) > 1 && !several {
			return nil, fmt.Errorf("key %q: only an index can have several attributes of a kind", text)
		}
		for _, attribute := range attributes {
			name, kind, _ := strings.Cut(strings.TrimSpace(attribute), ":")
			switch {
			case name == "" || i > 1:
				return nil, fmt.Errorf(`key %q: write the partition key and the sort key, such as "user" or "user, at:N"`, text)
			case kind != "" && kind != "S" && kind != "N" && kind != "B":
				return nil, fmt.Errorf("key %q: the type of %s is S, N or B, not %s", text, name, kind)
			case kind == "":
				kind = "S"
			}
			if err := t.define(name, types.ScalarAttributeType(kind)); err != nil {
				return nil, err
			}
			schema = append(schema, types.KeySchemaElement{AttributeName: &name, KeyType: []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]})
		}
	}
	return schema, nil
}

// define adds the type of a key attribute.
func (t *table) define(name string, kind types.ScalarAttributeType) error {
	for _, d := range t.in.AttributeDefinitions {
		if *d.AttributeName == name && d.AttributeType != kind {
			return fmt.Errorf("%s has the types %s and %s", name, d.AttributeType, kind)
		} else if *d.AttributeName == name {
			return nil
		}
	}
	t.in.AttributeDefinitions = append(t.in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &name, AttributeType: kind})
	return nil
}

// fromStruct sets the keys and the TTL that the tags of a struct's fields name.
func (t *table) fromStruct(of reflect.Type) error {
	if of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == nil || of.Kind() != reflect.Struct {
		return fmt.Errorf("the key is %v, and neither a text nor a struct", of)
	}
	for field := range of.Fields() {
		role := field.Tag.Get("mayfly")
		if role == "" {
			continue
		}
		name, settings, _ := strings.Cut(field.Tag.Get("dynamodbav"), ",")
		if name == "" {
			name = field.Name
		}
		kind, err := kindOf(field.Type, strings.Split(settings, ","))
		switch role {
		case "hash":
			t.in.KeySchema = slices.Insert(t.in.KeySchema, 0, types.KeySchemaElement{AttributeName: &name, KeyType: types.KeyTypeHash})
		case "range":
			t.in.KeySchema = append(t.in.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: types.KeyTypeRange})
		case "ttl":
			if err == nil && kind != types.ScalarAttributeTypeN {
				err = fmt.Errorf("TTL needs a number of seconds; with time.Time add the setting unixtime to dynamodbav")
			}
			TTL(name)(t)
		default:
			err = fmt.Errorf("the tag mayfly is hash, range or ttl, not %q", role)
		}
		if err == nil && role != "ttl" {
			err = t.define(name, kind)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", field.Name, err)
		}
	}
	if len(t.in.KeySchema) == 0 {
		return fmt.Errorf(`no field of %v has the tag mayfly:"hash"`, of)
	}
	return nil
}

// kindOf returns the type that attributevalue gives to a field.
func kindOf(of reflect.Type, settings []string) (types.ScalarAttributeType, error) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[time.Time]() && slices.Contains(settings, "unixtime"):
		return types.ScalarAttributeTypeN, nil
	case of == reflect.TypeFor[time.Time](), kind == reflect.String, slices.Contains(settings, "string"):
		return types.ScalarAttributeTypeS, nil
	case kind >= reflect.Int && kind <= reflect.Float64:
		return types.ScalarAttributeTypeN, nil
	case kind == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		return types.ScalarAttributeTypeB, nil
	}
	return "", fmt.Errorf("%v is neither a text, a number nor bytes", of)
}
