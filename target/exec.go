package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflydb/mayfly/internal/option"
)

// ExecOptions configure a local command. Only Command is required.
type ExecOptions struct {
	// the program and its arguments, without a shell, and independent of the delivery. At most 100
	Command []string
	Dir     string // its working directory. Default: mayfly's own
	// variables besides those that [Exec] lists: at most 100, with values of up to 16 KB. Names
	// must not begin with MAYFLY_DELIVERY_ or MAYFLY_ATTRIBUTE_
	Env       map[string]string
	Permanent []int         // exit codes of permanent failures, 1 to 255. Default: none
	Timeout   time.Duration // of one run. Default: only the lane's. Range: 10 ms to 24 hours
	// from SIGTERM to SIGKILL, on systems with signals. Default: 2 s. Range: 1 ms to 1 minute
	Grace time.Duration
	// how many bytes of the end of its output a failure's message quotes. Default: 2,048. Range: 1
	// to 64 KB, or -1 for none
	Output int
}

// Exec delivers by running a local command, once for each delivery, one after another within a call
// of Deliver.
//
// The command receives the delivery's body as its standard input. Its environment has
// MAYFLY_DELIVERY_ID, _SOURCE, _TYPE, _SUBJECT, _TIME (RFC 3339), _ATTEMPT, _KEY, _CONTENT_TYPE and
// _TARGET (the ARN), and for each of the delivery's attributes MAYFLY_ATTRIBUTE_ and the name in
// capitals, with an underscore for each character that is no letter or digit. Values are cut at 16
// KB. From mayfly's own environment, which may contain secrets, it has only PATH, HOME, USER,
// LOGNAME, SHELL, LANG, LC_ALL, TZ, TMPDIR and the variables that programs on Windows require.
//
// Exit code 0 means delivered. Any other code, or a signal, is a failed attempt. Its message ends
// with the end of the command's standard output and error. At the timeout, or when the call is
// given up, the command and its process group get SIGTERM, and SIGKILL after the grace. On systems
// without process groups only the command itself is killed. Background processes of a command that
// has exited are left alone, and their output delays the result by at most a second.
type Exec struct {
	options ExecOptions
	program string   // the path of Command[0]
	env     []string // the variables that do not depend on the delivery
}

const (
	defaultGrace  = 2 * time.Second
	defaultOutput = 2 << 10
	maxOutput     = 64 << 10
	maxArguments  = 100
	maxEnv        = 100
	// bytes of a variable; systems refuse to start a program with too large an environment
	maxVariable = 16 << 10
	leftOutput  = time.Second // how long to wait for the output of background processes
)

// Codes of a command's failures.
const (
	codeExit  = "CommandFailed"
	codeStart = "CommandNotStarted"
)

// inherited are the variables that a command inherits from mayfly's environment.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "WINDIR",
}

// NewExec checks the options, including that the program exists, and runs nothing. It reports all
// faults together.
func NewExec(o ExecOptions) (*Exec, error) {
	setDefault(&o.Grace, defaultGrace)
	setDefault(&o.Output, defaultOutput)
	e := &Exec{options: o}
	var wrong option.Complaints

	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		wrong.Add("command", "missing; list the program and its arguments")
	case len(o.Command) > maxArguments:
		wrong.Add("command", "%d arguments are too many; the limit is %d", len(o.Command), maxArguments)
	case slices.ContainsFunc(o.Command, hasNUL):
		wrong.Add("command", "it contains a NUL character")
	default:
		path, err := exec.LookPath(o.Command[0])
		switch {
		case errors.Is(err, exec.ErrNotFound):
			wrong.Add("command", "program %q not found on the PATH", o.Command[0])
		case err != nil:
			wrong.Add("command", "%w", err)
		}
		e.program = path
	}
	if info, err := os.Stat(o.Dir); o.Dir != "" && (err != nil || !info.IsDir()) {
		wrong.Add("dir", "%s is not a directory", o.Dir)
	}
	for _, code := range o.Permanent {
		if code < 1 || code > 255 {
			wrong.Add("permanent", "%d is not an exit code from 1 to 255", code)
		}
	}
	if o.Timeout != 0 && (o.Timeout < minTimeout || o.Timeout > 24*time.Hour) {
		wrong.Add("timeout", "%v is not between %v and %v", o.Timeout, minTimeout, 24*time.Hour)
	}
	if o.Grace < time.Millisecond || o.Grace > time.Minute {
		wrong.Add("grace", "%v is not between %v and %v", o.Grace, time.Millisecond, time.Minute)
	}
	if o.Output < -1 || o.Output > maxOutput {
		wrong.Add("output", "%d is not between 0 and %d, or -1", o.Output, maxOutput)
	}
	if len(o.Env) > maxEnv {
		wrong.Add("env", "%d variables are too many; the limit is %d", len(o.Env), maxEnv)
	}
	for name, value := range o.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "MAYFLY_DELIVERY_") || strings.HasPrefix(name, "MAYFLY_ATTRIBUTE_"):
			wrong.Add("env", "%q cannot be set", name)
		case hasNUL(value) || len(value) > maxVariable:
			wrong.Add("env", "the value of %s has a NUL character or more than %d bytes", name, maxVariable)
		}
	}
	if err := wrong.Err(""); err != nil {
		return nil, err
	}
	e.env = e.environment()
	return e, nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// environment returns the variables that all runs share.
func (e *Exec) environment() (env []string) {
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range e.options.Env {
		env = append(env, name+"="+value)
	}
	return env // the later of two duplicates counts
}

// Deliver runs the command for each delivery. Once ctx is done, it starts no further command, and
// the remaining results are ctx's error.
func (e *Exec) Deliver(ctx context.Context, deliveries []Delivery) []error {
	results := make([]error, len(deliveries))
	for i, d := range deliveries {
		results[i] = e.run(ctx, d)
	}
	return results
}

func (e *Exec) run(ctx context.Context, d Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited := ctx
	if e.options.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, e.options.Timeout)
		defer cancel()
	}
	output := &tail{limit: max(e.options.Output, 0)}
	command := exec.Command(e.program, e.options.Command[1:]...)
	command.Args[0] = e.options.Command[0]
	command.Dir = e.options.Dir
	command.Env = append(slices.Clip(e.env), variables(d)...)
	command.Stdin = bytes.NewReader(d.Body)
	// one writer for both, so os/exec writes from one goroutine
	command.Stdout, command.Stderr = output, output
	command.WaitDelay = leftOutput
	ownGroup(command)
	if err := command.Start(); err != nil {
		return &Error{Code: codeStart, Message: err.Error(), Err: err}
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		return e.result(command, err, output)
	case <-limited.Done():
	}
	err := e.stop(command, ended)
	switch {
	// it finished before it noticed the end
	case command.ProcessState != nil && command.ProcessState.Success():
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	}
	return &Error{Code: codeTimeout, Message: withOutput(fmt.Sprintf("%s exceeded its timeout and was killed", e.options.Command[0]), output), Err: err}
}

// stop ends the command and its group, first with SIGTERM.
func (e *Exec) stop(command *exec.Cmd, ended <-chan error) error {
	terminate(command)
	grace, cancel := context.WithTimeout(context.Background(), e.options.Grace)
	defer cancel()
	select {
	case err := <-ended:
		kill(command) // the rest of its group
		return err
	case <-grace.Done():
		kill(command)
		return <-ended
	}
}

// result returns the delivery's result for the end of the command.
func (e *Exec) result(command *exec.Cmd, err error, output *tail) error {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && command.ProcessState.Success() {
		return nil
	}
	code := command.ProcessState.ExitCode() // -1: a signal
	return &Error{
		Code:      codeExit,
		Message:   withOutput(fmt.Sprintf("%s: %v", e.options.Command[0], command.ProcessState), output),
		Permanent: slices.Contains(e.options.Permanent, code),
		Err:       err,
	}
}

func withOutput(message string, output *tail) string {
	if text := output.String(); text != "" {
		return message + ": " + text
	}
	return message
}

// variables returns the variables that describe the delivery. They have a prefix of their own,
// since mayfly reads its flags from MAYFLY_ variables, and a command may run mayfly.
func variables(d Delivery) []string {
	env := []string{
		"MAYFLY_DELIVERY_ID=" + variable(d.ID),
		"MAYFLY_DELIVERY_SOURCE=" + variable(d.Source),
		"MAYFLY_DELIVERY_TYPE=" + variable(d.Type),
		"MAYFLY_DELIVERY_SUBJECT=" + variable(d.Subject),
		"MAYFLY_DELIVERY_TIME=" + d.Time.UTC().Format(time.RFC3339Nano),
		"MAYFLY_DELIVERY_ATTEMPT=" + strconv.Itoa(d.Attempt),
		"MAYFLY_DELIVERY_KEY=" + variable(d.Key),
		"MAYFLY_DELIVERY_CONTENT_TYPE=" + variable(d.ContentType),
		"MAYFLY_DELIVERY_TARGET=" + variable(d.TargetARN),
	}
	for _, name := range slices.Sorted(maps.Keys(d.Attributes)) {
		env = append(env, "MAYFLY_ATTRIBUTE_"+variableName(name)+"="+variable(d.Attributes[name]))
	}
	return env
}

// variable makes a value valid for an environment: it cuts it at maxVariable bytes and removes NUL
// characters.
func variable(value string) string {
	return strings.ReplaceAll(value[:min(len(value), maxVariable)], "\x00", "")
}

// variableName returns a name in capitals, with underscores for characters that no name of a
// variable contains.
func variableName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		}
		return '_'
	}, s)
}

// tail keeps the end of its input.
type tail struct {
	limit int
	kept  []byte
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.limit):]...)
	t.cut = t.cut || len(p) > t.limit
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[over:]...), true
	}
	return len(p), nil
}

// String returns the kept text. Call it after the last write.
func (t *tail) String() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD"))
	if t.cut && text != "" {
		return "… " + text
	}
	return text
}
