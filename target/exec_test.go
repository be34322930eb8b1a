//go:build unix

package target_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/target"
)

// shell returns a target that runs a script.
func shell(t *testing.T, script string, o target.ExecOptions) *target.Exec {
	t.Helper()
	o.Command = []string{"sh", "-c", script, "name"}
	e, err := target.NewExec(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A command receives the body, the variables of the delivery, and no secrets of mayfly's
// environment.
func TestExecInput(t *testing.T) {
	t.Setenv("MAYFLY_SECRET_KEY", "hunter2")
	dir := t.TempDir()
	e := shell(t, `cat > body; env | grep -E 'MAYFLY|OWN' | sort > env; pwd -P > dir; echo "$0 $*" > args`, target.ExecOptions{Dir: dir, Env: map[string]string{"OWN": "x y"}})
	d := firing()
	d.Subject, d.Attributes = "a\x00b", map[string]string{"ERROR_CODE": "E", "x.y": "z"}
	if err := one(t, e, d); err != nil {
		t.Fatal(err)
	}
	want := `MAYFLY_ATTRIBUTE_ERROR_CODE=E
MAYFLY_ATTRIBUTE_X_Y=z
MAYFLY_DELIVERY_ATTEMPT=2
MAYFLY_DELIVERY_CONTENT_TYPE=application/json
MAYFLY_DELIVERY_ID=0123456789abcdef0123456789abcdef
MAYFLY_DELIVERY_KEY=room 1
MAYFLY_DELIVERY_SOURCE=arn:aws:scheduler:us-east-1:000000000000:schedule/default/nightly
MAYFLY_DELIVERY_SUBJECT=ab
MAYFLY_DELIVERY_TARGET=arn:aws:lambda:us-east-1:000000000000:function:report
MAYFLY_DELIVERY_TIME=2026-11-21T10:00:00.25Z
MAYFLY_DELIVERY_TYPE=Scheduled Event
OWN=x y
`
	if got := contents(t, dir, "env"); got != want {
		t.Errorf("environment:\n%s", got)
	}
	if contents(t, dir, "body") != string(d.Body) || contents(t, dir, "args") != "name \n" {
		t.Errorf("body %q, arguments %q", contents(t, dir, "body"), contents(t, dir, "args"))
	}
	if real, err := filepath.EvalSymlinks(dir); err != nil || contents(t, dir, "dir") != real+"\n" {
		t.Errorf("it ran in %s", contents(t, dir, "dir"))
	}
}

func contents(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The exit code decides the result; the message quotes the end of the output, within bounds.
func TestExecResults(t *testing.T) {
	for name, test := range map[string]struct {
		script, want string
	}{
		"success":           {`echo fine; exit 0`, ""},
		"failure":           {`echo one; echo two >&2; exit 1`, "CommandFailed: sh: exit status 1: one\ntwo"},
		"permanent failure": {`exit 65`, "permanent CommandFailed: sh: exit status 65"},
		"signal":            {`kill -KILL $$`, "CommandFailed: sh: signal: killed"},
		"much output":       {`head -c 1000000 /dev/zero | tr '\0' x; echo end; exit 2`, "CommandFailed: sh: exit status 2: … xxxxxxxxxxxxxxxxxxxxxxxxxxxxend"},
		"binary output":     {`printf '\377\n'; exit 2`, "CommandFailed: sh: exit status 2: \ufffd"},
		"reads nothing":     {`exec 0<&-; exit 0`, ""},
		"no such program":   {`exec /nowhere/at/all 2>/dev/null`, "CommandFailed: sh: exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := shell(t, test.script, target.ExecOptions{Permanent: []int{64, 65}, Output: 32})
			got := ""
			if failure := one(t, e, target.Delivery{Body: []byte(strings.Repeat("x", 1<<20))}); failure != nil {
				got = failure.Error()
				if failure.Permanent {
					got = "permanent " + got
				}
			}
			if got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}

// A program that disappears after the check is no permanent failure.
func TestExecNotStarted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	e, err := target.NewExec(target.ExecOptions{Command: []string{program}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if failure := one(t, e, target.Delivery{}); failure == nil || failure.Code != "CommandNotStarted" || failure.Permanent {
		t.Error(failure)
	}
}

// The timeout ends the whole group, including processes that the command started or that ignore
// signals.
func TestExecTimeout(t *testing.T) {
	dir := t.TempDir()
	e := shell(t, `trap '' TERM; (trap '' TERM; exec sleep 60) & echo $! > child; echo $$ > parent; echo begun; while :; do sleep 60; done`,
		target.ExecOptions{Dir: dir, Timeout: 500 * time.Millisecond, Grace: 50 * time.Millisecond})
	failure := one(t, e, target.Delivery{})
	if failure == nil || failure.Error() != "Timeout: sh exceeded its timeout and was killed: begun" || failure.Permanent {
		t.Error(failure)
	}
	for _, name := range []string{"parent", "child"} {
		pid, err := strconv.Atoi(strings.TrimSpace(contents(t, dir, name)))
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, name+" to be gone", func() bool { return gone(pid) })
	}
}

// gone reports whether a process has ended, even if no parent has waited for it yet.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited too long for %s", what)
}

// A command that handles SIGTERM may still succeed. One that is given up with the program returns
// the context's error, and the next is not started.
func TestExecGivenUp(t *testing.T) {
	dir := t.TempDir()
	polite := shell(t, `trap 'echo saved > end; exit 0' TERM; echo > begun; while :; do sleep 0.01; done`, target.ExecOptions{Dir: dir, Grace: time.Minute})
	rude := shell(t, `echo > begun2; exec sleep 60`, target.ExecOptions{Dir: dir})
	for file, e := range map[string]*target.Exec{"begun": polite, "begun2": rude} {
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan []error, 1)
		go func() { results <- e.Deliver(ctx, []target.Delivery{{ID: "a"}, {ID: "b"}}) }()
		waitFor(t, file, func() bool { _, err := os.Stat(filepath.Join(dir, file)); return err == nil })
		cancel()
		got := <-results
		if (got[0] == nil) != (e == polite) || e == rude && !errors.Is(got[0], context.Canceled) || !errors.Is(got[1], context.Canceled) {
			t.Errorf("%s: %v", file, got)
		}
	}
	if contents(t, dir, "end") != "saved\n" {
		t.Error("the polite one did not save")
	}
}

// A background process neither delays the result for long nor changes it.
func TestExecLeavesSomethingBehind(t *testing.T) {
	dir := t.TempDir()
	e := shell(t, `sleep 60 & echo $! > child; exit 0`, target.ExecOptions{Dir: dir})
	if failure := one(t, e, target.Delivery{}); failure != nil {
		t.Error(failure)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(contents(t, dir, "child")))
	if err != nil || gone(pid) {
		t.Fatalf("process %d is gone: %v", pid, err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// All faults of the options are reported at once.
func TestExecOptions(t *testing.T) {
	_, err := target.NewExec(target.ExecOptions{
		Command: []string{"/nowhere/at/all"}, Dir: "/nowhere", Permanent: []int{0, 256}, Timeout: time.Microsecond, Grace: time.Hour, Output: 1 << 20,
		Env: map[string]string{"MAYFLY_DELIVERY_ID": "x"},
	})
	want := `command: exec: "/nowhere/at/all": stat /nowhere/at/all: no such file or directory
dir: /nowhere is not a directory
permanent: 0 is not an exit code from 1 to 255
permanent: 256 is not an exit code from 1 to 255
timeout: 1µs is not between 10ms and 24h0m0s
grace: 1h0m0s is not between 1ms and 1m0s
output: 1048576 is not between 0 and 65536, or -1
env: "MAYFLY_DELIVERY_ID" cannot be set`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, command := range [][]string{nil, {""}, {"sh", "a\x00b"}, make([]string, 200)} {
		if _, err := target.NewExec(target.ExecOptions{Command: command}); err == nil {
			t.Errorf("%q was accepted", command)
		}
	}
}
