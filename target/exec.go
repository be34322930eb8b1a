package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ExecOptions configure a local command. Only Command is needed.
type ExecOptions struct {
	Command   []string          // the program and its arguments; no shell reads them, and nothing of a delivery is put into them. At most 100
	Dir       string            // where it runs. Default: where mayfly does
	Env       map[string]string // added to its environment, which otherwise holds only what [Exec] lists
	Permanent []int             // exit codes after which another attempt is no use, 1 to 255. Default: none
	Timeout   time.Duration     // of one run. Default: none besides that of the lane. Range: 10 ms to 24 hours
	Grace     time.Duration     // from SIGTERM to SIGKILL, where there are signals. Default: 2 s. Range: 1 ms to 1 minute
	Output    int               // bytes of its output's end that a failure's message quotes. Default: 2,048. Range: 0 to 64 KB; -1 for none
}

// Exec delivers by running a local command, once for each delivery, one after another within a call of Deliver.
//
// The command gets the delivery's body as its standard input, and of the delivery in its environment MAYFLY_DELIVERY_ID, _SOURCE, _TYPE, _SUBJECT, _TIME (RFC 3339), _ATTEMPT, _KEY, _CONTENT_TYPE and
// _TARGET (the ARN), and MAYFLY_ATTRIBUTE_ and the name in capitals for each of its attributes; of mayfly's own environment, which may hold secrets, only PATH, HOME, USER,
// LOGNAME, SHELL, LANG, LC_ALL, TZ, TMPDIR and what programs on Windows cannot do without.
//
// It exits with 0 when the delivery has arrived. Any other code, or a signal, is a failed attempt, whose message ends with the last of what the command wrote to its standard
// output and error. When the timeout passes or the call is given up, it and all processes of its group get SIGTERM, and SIGKILL after the grace. On systems without process
// groups only the command itself is killed. What a command that has exited leaves running in the background is left alone, and its output is not waited for longer than a second.
type Exec struct {
	options ExecOptions
	program string   // the path that Command[0] stands for
	env     []string // what does not depend on the delivery
}

const (
	defaultGrace  = 2 * time.Second
	defaultOutput = 2 << 10
	maxOutput     = 64 << 10
	maxArguments  = 100
	maxEnv        = 100
	maxVariable   = 16 << 10    // bytes of a variable; systems refuse to start a program with too large an environment
	leftOutput    = time.Second // how long the output of what a command left in the background is waited for
)

// Codes of a command's failures.
const (
	codeExit  = "CommandFailed"
	codeStart = "CommandNotStarted"
)

// inherited are the variables that a command gets from mayfly's environment.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "WINDIR",
}

// NewExec checks the options, also that the program is there, and runs nothing. It reports all that is wrong with them.
func NewExec(o ExecOptions) (*Exec, error) {
	setDefault(&o.Grace, defaultGrace)
	setDefault(&o.Output, defaultOutput)
	e := &Exec{options: o}
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }

	switch {
	case len(o.Command) == 0 || o.Command[0] == "":
		complain("command: missing; give the program and its arguments as a list")
	case len(o.Command) > maxArguments:
		complain("command: %d arguments are too many; the limit is %d", len(o.Command), maxArguments)
	case slices.ContainsFunc(o.Command, hasNUL):
		complain("command: it contains a NUL character")
	default:
		path, err := exec.LookPath(o.Command[0])
		switch {
		case errors.Is(err, exec.ErrNotFound):
			complain("command: program %q not found on the PATH", o.Command[0])
		case err != nil:
			complain("command: %w", err)
		}
		e.program = path
	}
	if info, err := os.Stat(o.Dir); o.Dir != "" && (err != nil || !info.IsDir()) {
		complain("dir: %s is not a directory", o.Dir)
	}
	for _, code := range o.Permanent {
		if code < 1 || code > 255 {
			complain("permanent: %d is not an exit code from 1 to 255", code)
		}
	}
	if o.Timeout != 0 && (o.Timeout < minTimeout || o.Timeout > 24*time.Hour) {
		complain("timeout: %v is not between %v and %v", o.Timeout, minTimeout, 24*time.Hour)
	}
	if o.Grace < time.Millisecond || o.Grace > time.Minute {
		complain("grace: %v is not between %v and %v", o.Grace, time.Millisecond, time.Minute)
	}
	if o.Output < -1 || o.Output > maxOutput {
		complain("output: %d is not between 0 and %d, or -1", o.Output, maxOutput)
	}
	if len(o.Env) > maxEnv {
		complain("env: %d variables are too many; the limit is %d", len(o.Env), maxEnv)
	}
	for name, value := range o.Env {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "MAYFLY_DELIVERY_") || strings.HasPrefix(name, "MAYFLY_ATTRIBUTE_"):
			complain("env: %q cannot be set", name)
		case hasNUL(value) || len(value) > maxVariable:
			complain("env: the value of %s has a NUL character or more than %d bytes", name, maxVariable)
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	e.env = e.environment()
	return e, nil
}

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }

// environment is what every run has in common.
func (e *Exec) environment() (env []string) {
	for _, name := range inherited {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range e.options.Env {
		env = append(env, name+"="+value)
	}
	return env // of two of a name the later counts
}

// Deliver runs the command for each delivery.
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
	command.Stdout, command.Stderr = output, output // one writer for both, so os/exec writes from one goroutine
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
	case command.ProcessState != nil && command.ProcessState.Success(): // it was done before it heard of the end
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	}
	return &Error{Code: codeTimeout, Message: withOutput(fmt.Sprintf("%s exceeded its timeout and was killed", e.options.Command[0]), output), Err: err}
}

// stop ends the command and its group, politely first.
func (e *Exec) stop(command *exec.Cmd, ended <-chan error) error {
	terminate(command)
	grace, cancel := context.WithTimeout(context.Background(), e.options.Grace)
	defer cancel()
	select {
	case err := <-ended:
		kill(command) // what it has left of its group
		return err
	case <-grace.Done():
		kill(command)
		return <-ended
	}
}

// result says what the end of the command means.
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

// variables describe the delivery. They have a prefix of their own because mayfly takes its flags from MAYFLY_ variables, and a command may well run mayfly.
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
	names := make([]string, 0, len(d.Attributes))
	for name := range d.Attributes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		env = append(env, "MAYFLY_ATTRIBUTE_"+variableName(name)+"="+variable(d.Attributes[name]))
	}
	return env
}

// variable makes a value fit for an environment.
func variable(value string) string {
	return strings.ReplaceAll(value[:min(len(value), maxVariable)], "\x00", "")
}

// variableName is a name in capitals, with an underscore for what no name of a variable contains.
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

// tail keeps the end of what is written to it.
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

// String is what was kept, as text. It is called once nothing writes any more.
func (t *tail) String() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\uFFFD"))
	if t.cut && text != "" {
		return "… " + text
	}
	return text
}
