package program

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var rewrite = flag.Bool("rewrite", false, "write what the program prints into the scripts that compare it with a file")

// TestScripts runs testdata/script: what the program prints, and with which code it exits. Beside testscript's own commands there are
//
//	serve [flag…]            start mayfly serve on a free port; sets $URL and $PORT, and puts what it printed at stdout
//	terminate [code]         send it SIGTERM and check the code that it exits with, 0 unless given; what it wrote goes to stdout and stderr
//	get PATH [NAME:VALUE…]   fetch $URL/PATH; the answer goes to stdout, and "! get" wants a status of 400 or more
//	post PATH BODY [NAME:VALUE…]
//	dynamodb OPERATION BODY  call the API of DynamoDB
//
// and shell scripts in them have
//
//	fetch URL [OPERATION BODY]  print the page, or the answer of the API of DynamoDB
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Deadline:            time.Now().Add(2 * time.Minute), // a server that starts although it should not would run on
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       *rewrite,
		Setup: func(env *testscript.Env) error {
			env.Values[serverKey{}] = new(*served)
			env.Vars = append(env.Vars, "HOME="+env.WorkDir, "NO_COLOR=1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":     scriptServe,
			"terminate": scriptTerminate,
			"get":       scriptGet,
			"post":      scriptPost,
			"dynamodb":  scriptDynamoDB,
		},
	})
}

type serverKey struct{}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("use exec for a server that does not start")
	}
	s, err := startServer(ts.MkAbs("."), scriptEnv(ts), args...)
	ts.Check(err)
	ts.Defer(s.kill)
	*ts.Value(serverKey{}).(**served) = s
	ts.Setenv("URL", s.url)
	ts.Setenv("PORT", s.url[strings.LastIndexByte(s.url, ':')+1:])
	_, err = io.WriteString(ts.Stdout(), s.printed())
	ts.Check(err)
}

// scriptEnv is the environment of the process with our variables from the script.
func scriptEnv(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"MAYFLY_REGION", "MAYFLY_SERVE_REGION", "MAYFLY_CONFIG", "MAYFLY_DATA", "MAYFLY_LOG_FORMAT", "MAYFLY_TEST_SECRET"} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func scriptTerminate(ts *testscript.TestScript, neg bool, args []string) {
	want := "0"
	if len(args) > 0 {
		want = args[0]
	}
	s := *ts.Value(serverKey{}).(**served)
	code, err := s.stop(syscall.SIGTERM)
	ts.Check(err)
	io.WriteString(ts.Stdout(), s.printed())
	io.WriteString(ts.Stderr(), s.logged())
	if code != want {
		ts.Fatalf("exited with %s, want %s\n%s", code, want, s.logged())
	}
}

func scriptGet(ts *testscript.TestScript, neg bool, args []string) {
	status, text, err := exchange(http.MethodGet, ts.Getenv("URL")+args[0], "", args[1:]...)
	scriptAnswer(ts, neg, "GET "+args[0], status, text, err)
}

func scriptPost(ts *testscript.TestScript, neg bool, args []string) {
	status, text, err := exchange(http.MethodPost, ts.Getenv("URL")+args[0], args[1], args[2:]...)
	scriptAnswer(ts, neg, "POST "+args[0], status, text, err)
}

func scriptDynamoDB(ts *testscript.TestScript, neg bool, args []string) {
	status, text, err := exchangeDynamoDB(ts.Getenv("URL")+"/", args[0], args[1])
	scriptAnswer(ts, neg, args[0], status, text, err)
}

func scriptAnswer(ts *testscript.TestScript, neg bool, request string, status int, text string, err error) {
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d %s\n%s\n", status, http.StatusText(status), text)
	if failed := status >= 400; failed != neg {
		ts.Fatalf("%s: %d\n%s", request, status, text)
	}
}

// Fetch is the program fetch. A machine may have no other for it.
func Fetch() {
	var status int
	var text string
	var err error
	if len(os.Args) > 3 {
		status, text, err = exchangeDynamoDB(os.Args[1], os.Args[2], os.Args[3])
	} else {
		status, text, err = exchange(http.MethodGet, os.Args[1], "")
	}
	fmt.Print(text)
	if err != nil || status >= 400 {
		log.Fatal(status, " ", err)
	}
}
