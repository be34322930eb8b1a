package mayfly_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestClientsAreMadeInOnePlace: clients for DynamoDB, its streams and the Scheduler come from package
// sdk, so that all have its options. Without them, an endpoint that sends no checksum floods the log.
func TestClientsAreMadeInOnePlace(t *testing.T) {
	services := map[string]string{}
	for _, name := range []string{"dynamodb", "dynamodbstreams", "scheduler"} {
		services["github.com/aws/aws-sdk-go-v2/service/"+name] = name
	}
	made := 0
	for _, s := range sources(t) {
		if s.test || s.pkg == "internal/brokertest" || strings.HasPrefix(s.pkg, "examples") {
			continue
		}
		local := map[string]bool{}
		for _, i := range s.file.Imports {
			name, is := services[strings.Trim(i.Path.Value, `"`)]
			if is && i.Name != nil {
				name = i.Name.Name
			}
			local[name] = is
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, _ := n.(*ast.CallExpr)
			if call == nil {
				return true
			}
			f, _ := call.Fun.(*ast.SelectorExpr)
			if f == nil || f.Sel.Name != "New" && f.Sel.Name != "NewFromConfig" {
				return true
			}
			if of, _ := f.X.(*ast.Ident); of == nil || !local[of.Name] {
				return true
			}
			if made++; s.pkg != "internal/sdk" {
				t.Errorf("%s makes a client; use package sdk", s.name)
			}
			return true
		})
	}
	if made < 6 {
		t.Errorf("%d clients are made in all; the test has looked in the wrong places", made)
	}
}
