package wire

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// TestEveryOperationIsServed: the SDK's clients have a method for each operation of the APIs. A new
// version of the SDK with an operation that is not served fails here.
func TestEveryOperationIsServed(t *testing.T) {
	partiQL := map[string]bool{"ExecuteStatement": true, "BatchExecuteStatement": true, "ExecuteTransaction": true}
	for _, api := range []struct {
		client any
		served map[string]operation
		least  int
	}{
		{&dynamodb.Client{}, operations(), 62},
		{&dynamodbstreams.Client{}, streamOperations, 4},
	} {
		names := sdkOperations(reflect.TypeOf(api.client))
		if len(names) < api.least {
			t.Errorf("%T: the test sees only %d operations: %v", api.client, len(names), names)
		}
		for _, name := range names {
			if api.served[name] == nil && !partiQL[name] {
				t.Errorf("%T: %s is not served", api.client, name)
			}
		}
		for name := range api.served {
			if _, found := reflect.TypeOf(api.client).MethodByName(name); !found {
				t.Errorf("%T has no %s", api.client, name)
			}
		}
	}
}

// sdkOperations returns the methods of a client that take a context, an input and options.
func sdkOperations(client reflect.Type) (names []string) {
	for i := range client.NumMethod() {
		m := client.Method(i)
		if f := m.Type; f.IsVariadic() && f.NumIn() == 4 && f.In(2).Kind() == reflect.Pointer && f.In(2).Elem().Name() == m.Name+"Input" {
			names = append(names, m.Name)
		}
	}
	return names
}
