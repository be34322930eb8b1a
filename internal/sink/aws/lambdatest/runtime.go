// Package lambdatest runs Lambda functions on this machine, for tests and experiments. It serves
// the part of Lambda's Invoke API that callers use, and the Runtime API of functions, over HTTP. A
// function is a program (built with aws-lambda-go, or any other runtime of Lambda) that runs as a
// child process and asks for its events.
//
//	caller ──Invoke──► Runtime ──next invocation──► child process
//	       ◄──answer──         ◄────response─────
//
// Like Lambda, it has invocation types, function errors and their answers, time limits, restarts of
// crashed processes, throttling by concurrency, and refusals with their codes. It has no accounts,
// versions, or retries of asynchronous invocations.
package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Function is a program that serves invocations.
type Function struct {
	Command     []string      // the program and its arguments
	Env         []string      // NAME=value, added to this process's environment
	Timeout     time.Duration // of an invocation. Default: 10 s
	Concurrency int           // concurrent processes; further invocations are throttled. Default: 1
	Output      io.Writer     // receives the output of the processes. Default: discarded
}

const (
	defaultTimeout = 10 * time.Second
	waitingMax     = 1000    // waiting asynchronous invocations of a function
	bodyMax        = 6 << 20 // of an event or an answer
)

// Runtime serves the functions. It listens on the loopback interface.
type Runtime struct {
	server    *http.Server
	listener  net.Listener
	functions map[string]*function
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// Start starts a runtime for functions by name. Processes start with the first invocation.
func Start(functions map[string]Function) (*Runtime, error) {
	return StartAt("127.0.0.1:0", functions)
}

// StartAt is like Start, at an address.
func StartAt(address string, functions map[string]Function) (*Runtime, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Runtime{listener: listener, functions: make(map[string]*function), stop: stop}
	for name, f := range functions {
		r.functions[name] = newFunction(ctx, name, f, &r.running)
	}
	api := http.NewServeMux()
	api.HandleFunc("POST /2015-03-31/functions/{name}/invocations", r.invoke)
	api.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "UnknownOperationException", "")
	})
	r.server = &http.Server{Handler: api}
	r.running.Go(func() { _ = r.server.Serve(listener) })
	return r, nil
}

// URL returns the endpoint of the Invoke API.
func (r *Runtime) URL() string { return "http://" + r.listener.Addr().String() }

// Throttle refuses the next n invocations of a function, as Lambda does above its concurrency.
func (r *Runtime) Throttle(name string, n int) { r.functions[name].throttle(n) }

// Finished waits until a function has finished at least n invocations, and returns the first n.
func (r *Runtime) Finished(ctx context.Context, name string, n int) ([]Invocation, error) {
	return r.functions[name].finished(ctx, n)
}

// Invocation is a finished invocation.
type Invocation struct {
	Event   []byte
	Answer  []byte
	Failure string // "Unhandled", or empty for success
}

// Close ends the processes and waits for them.
func (r *Runtime) Close() error {
	r.stop()
	err := r.server.Close()
	r.running.Wait()
	return err
}

// invoke is the operation Invoke.
func (r *Runtime) invoke(w http.ResponseWriter, request *http.Request) {
	name := functionName(request.PathValue("name"))
	f, known := r.functions[name]
	if !known {
		refuse(w, http.StatusNotFound, "ResourceNotFoundException", "Function not found: arn:aws:lambda:us-east-1:000000000000:function:"+name)
		return
	}
	event, err := io.ReadAll(http.MaxBytesReader(w, request.Body, bodyMax))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		refuse(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", bodyMax))
		return
	case err != nil:
		return
	case len(event) == 0:
		event = []byte("{}")
	case !json.Valid(event):
		refuse(w, http.StatusBadRequest, "InvalidRequestContentException", "Could not parse request body into json")
		return
	}
	if f.throttled() {
		tooMany(w)
		return
	}
	switch kind := request.Header.Get("X-Amz-Invocation-Type"); kind {
	case "", "RequestResponse":
		f.answer(w, request, event)
	case "Event":
		if !f.later(event) {
			tooMany(w)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	default:
		refuse(w, http.StatusBadRequest, "InvalidParameterValueException", "Unsupported invocation type "+kind)
	}
}

// functionName returns the name in an ARN or a qualified name.
func functionName(given string) string {
	if plain, err := url.PathUnescape(given); err == nil {
		given = plain
	}
	if _, after, isARN := strings.Cut(given, ":function:"); isARN {
		given = after
	}
	name, _, _ := strings.Cut(given, ":")
	return name
}

func tooMany(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "TooManyRequestsException", "Rate Exceeded.")
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", code)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": "User", "Message": message})
}
