package mayfly_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// textMatches are the files that match or cut the texts of errors, with the reasons. Errors of our own
// are recognized by their types.
var textMatches = map[string]string{
	"internal/program/endpoint.go":          "the SDK has no type for a machine without a role",
	"timeseries/fromnats/fromnats.go":       "a NATS server sends a refused permission as text only",
	"internal/store/kv/bad_blocks.go":       "Pebble has no type with the offset of a damaged block",
	"internal/store/kv/raw_table.go":        "puts the text on one line",
	"internal/yamlfile/faults.go":           "removes the name of the YAML library",
	"internal/yamlfile/parse.go":            "removes the name of the YAML library, and a value that it quotes",
	"internal/program/schedule_document.go": "removes the name of the JSON library",
	"internal/front/wire/call.go":           "removes the name of the JSON library",
	"internal/bench/nats.go":                "removes the name of the NATS library",
	"internal/program/cli.go":               "removes our own name, which the program prints already",
	"internal/program/advice.go":            "replaces the SDK's words within a wrapped error",
}

// Code that matches the text of an error breaks without notice when the message is improved.
func TestErrorsAreNotMatchedByText(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != "."):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if !matchesErrorText(n) {
				return true
			}
			name := filepath.ToSlash(path)
			seen[name] = true
			if textMatches[name] == "" {
				t.Errorf("%s: matches the text of an error; use errors.Is or errors.As", files.Position(n.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range textMatches {
		if !seen[name] {
			t.Errorf("%s no longer matches the text of an error; remove its exception", name)
		}
	}
}

// matchesErrorText reports whether a node passes err.Error() to a function that looks into a text, or
// compares it.
func matchesErrorText(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if y, ok := n.Y.(*ast.Ident); ok && y.Name == "nil" { // the error of an iterator, not a text
			return false
		}
		return (n.Op == token.EQL || n.Op == token.NEQ) && (isErrorText(n.X) || isErrorText(n.Y))
	case *ast.SwitchStmt:
		return n.Tag != nil && isErrorText(n.Tag)
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains(textFunctions, f.Sel.Name) && slices.ContainsFunc(n.Args, containsErrorText)
	}
	return false
}

// textFunctions are functions of strings, bytes and regexp that look into a text.
var textFunctions = []string{
	"Contains", "HasPrefix", "HasSuffix", "EqualFold", "Index", "Cut", "CutPrefix", "CutSuffix", "Split", "SplitN", "SplitSeq", "Fields",
	"TrimPrefix", "TrimSuffix", "Replace", "ReplaceAll", "MatchString", "FindString", "FindStringSubmatch", "ReplaceAllString",
}

// containsErrorText reports whether an argument is err.Error(), also within another call.
func containsErrorText(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && isErrorText(e) {
			found = true
		}
		return !found
	})
	return found
}

// isErrorText reports whether an expression is x.Error().
func isErrorText(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Error"
}
