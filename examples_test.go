package mayfly_test

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"
)

// unshown are the exported verbs that no example of their package calls, with the reasons.
var unshown = map[string]string{
	"DB.Registry": "it is an option of package lifecycle, whose examples pass it",
}

// calledByOthers are the methods of interfaces that the standard library or a caller of a target
// calls; an example shows the value that has them instead.
var calledByOthers = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "String": true, "MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
	"ServeHTTP": true, "Deliver": true,
}

// An example calls each exported function and method of each public package, so that a user can copy
// the call.
func TestVerbsHaveExamples(t *testing.T) {
	type verb struct{ pkg, receiver, name string }
	var verbs []verb
	shown := map[string]bool{} // package, blank, name
	for _, s := range sources(t) {
		if !isPublic(s.pkg) {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case s.test && (strings.HasPrefix(f.Name.Name, "Example") || strings.HasPrefix(filepath.Base(s.name), "example")):
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						shown[s.pkg+" "+id.Name] = true
					}
					return true
				})
			case !s.test && f.Name.IsExported() && !calledByOthers[f.Name.Name]:
				receiver := receiverOf(f)
				if receiver == "" || ast.IsExported(receiver) {
					verbs = append(verbs, verb{s.pkg, receiver, f.Name.Name})
				}
			}
		}
	}
	if len(verbs) < 100 {
		t.Errorf("the packages have %d verbs, which cannot be all", len(verbs))
	}
	for _, v := range verbs {
		name := strings.TrimPrefix(v.receiver+"."+v.name, ".")
		switch is, why := shown[v.pkg+" "+v.name], unshown[name]; {
		case !is && why == "":
			t.Errorf("no example in %q calls %s", v.pkg, name)
		case is && why != "":
			t.Errorf("unshown has %s, but an example calls it", name)
		}
	}
}

// isPublic reports whether users of the library may import a package.
func isPublic(pkg string) bool {
	top, _, _ := strings.Cut(pkg, "/")
	return top != "cmd" && top != "internal" && top != "tools" && top != "examples" && top != "deploy" && !strings.Contains(pkg, "/internal/")
}

// receiverOf returns the name of a method's type, or "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if id, ok := kind.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
