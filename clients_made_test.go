package mayfly_test

import (
	"go/ast"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestClientsAreMadeInOnePlace: the clients of AWS's services come from package sdk and those below
// it, so that all have its options. Without them, an endpoint that sends no checksum floods the log.
func TestClientsAreMadeInOnePlace(t *testing.T) {
	made := 0
	for _, s := range sources(t) {
		if s.test || s.pkg == "internal/brokertest" || strings.HasPrefix(s.pkg, "examples") {
			continue
		}
		local := map[string]bool{}
		for _, i := range s.file.Imports {
			name, is := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/aws/aws-sdk-go-v2/service/")
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
			if made++; s.pkg != "internal/sdk" && !strings.HasPrefix(s.pkg, "internal/sdk/") {
				t.Errorf("%s makes a client; use package sdk or one below it", s.name)
			}
			return true
		})
	}
	if made < 16 {
		t.Errorf("%d clients are made in all; the test has looked in the wrong places", made)
	}
}

// TestLibraryLinksNoTargets: a program that uses the database or guard links the clients of three
// services. Those of targets and archives are the program's.
func TestLibraryLinksNoTargets(t *testing.T) {
	const services = "github.com/aws/aws-sdk-go-v2/service/"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "./guard", "./lifecycle", "./timeseries").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for path := range strings.Lines(string(out)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(path), services); is {
			name, _, _ = strings.Cut(name, "/")
			found[name] = true
		}
	}
	delete(found, "internal") // shared by the services
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"dynamodb", "dynamodbstreams", "scheduler"}) {
		t.Errorf("the library links the clients of %q", got)
	}
}

// mayfly links no large library that only mayfly-full needs, and of AWS's services only those that hold
// tables and schedules, and those from which the SDK gets credentials.
func TestSmallProgramLinks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/mayfly").Output()
	if err != nil {
		t.Fatal(err)
	}
	const services = "github.com/aws/aws-sdk-go-v2/service/"
	allowed := []string{"dynamodb", "dynamodbstreams", "internal", "scheduler", "signin", "sso", "ssooidc", "sts"}
	for line := range strings.Lines(string(out)) {
		path := strings.TrimSpace(line)
		if name, is := strings.CutPrefix(path, services); is {
			if name, _, _ = strings.Cut(name, "/"); !slices.Contains(allowed, name) {
				t.Errorf("mayfly links %s", path)
			}
		}
		for _, large := range []string{"github.com/twmb/", "github.com/parquet-go/", "github.com/nats-io/", "github.com/rabbitmq/", module + "/internal/bench", module + "/timeseries/archive"} {
			if strings.HasPrefix(path, large) {
				t.Errorf("mayfly links %s", path)
			}
		}
	}
}
