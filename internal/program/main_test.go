package program_test

import (
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mayflydb/mayfly/internal/program"
	"github.com/mayflydb/mayfly/internal/program/full"
	"github.com/mayflydb/mayfly/internal/testkit"
)

// TestMain runs the tests in a program with all parts, beside three programs: mayfly and
// mayfly-full, which have all parts, and mayfly-small, which has none, as the mayfly of a user. Scripts
// have fetch, too.
func TestMain(m *testing.M) {
	program.SetParts(full.Parts())
	testscript.Main(tests{m}, map[string]func(){
		"mayfly":       func() { program.Main(full.Parts()) },
		"mayfly-full":  func() { program.Main(full.Parts()) },
		"mayfly-small": func() { program.Main(program.Parts{}) },
		"fetch":        fetch,
	})
}

// tests runs four tests at once: most of their time is waiting, and with two at once two cores are
// idle half of it.
type tests struct{ *testing.M }

func (m tests) Run() int {
	flag.Parse()
	testkit.AtOnce(4)
	return m.M.Run()
}

// fetch is the program of that name. A machine may have no other for it.
func fetch() {
	method, body := http.MethodGet, ""
	if len(os.Args) > 3 {
		method, body = http.MethodPost, os.Args[3]
	}
	r, err := http.NewRequest(method, os.Args[1], strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	if body != "" {
		r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+os.Args[2])
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		log.Fatal(err)
	}
	if answer.StatusCode >= 400 {
		log.Fatal(answer.Status)
	}
}
