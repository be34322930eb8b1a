package program

import (
	"os"
	"path/filepath"
	"testing"
)

func docPath(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

func readDoc(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(docPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
