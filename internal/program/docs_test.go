package program

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit"
)

// TestDocs runs the commands and programs that the pages in docs show. A page is a sequence of fenced blocks:
//
//	sh serve      one line that starts a server and stops the one before it. Here the server gets a free port
//	sh clone      one line that is typed in a clone of the repository and runs until the page ends. It listens on a port of documentedPorts
//	sh setup      the first commands of a new user; see TestReadmeSetsUpWithTwoCommands
//	sh env        the README's first session, with sh aws; see TestReadmeItemGoes
//	sh install    a command that works once the module is public; not run
//	sh            commands for one bash, which goes on from block to block and ends at the first command that fails
//	python run    a program for python3, in the directory and the environment of that bash. It may import boto3 and pytest
//	js run        a program for node, likewise: an ES module, or CommonJS if it calls require. It may import what .ci/clients/package.json lists
//	python FILE   a file for the commands behind it, which the page asks the reader to save under that name. js and yaml likewise
//	text          the output of the block before it, where … stands for any text
//	go            lines that stand in a test of the module, so that they compile and run
//
// Blocks of other languages are shown and not run. 127.0.0.1:8000 in a block stands for the server's address, and each of documentedPorts for a free port.
// A page is skipped if a tool or package that it uses is missing. Pages that call the AWS CLI run only with FULL_TESTS=1: their hundred calls take longer than all else here.
func TestDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, path := range append(pages, "../../README.md") {
		blocks, err := readBlocks(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			r := &reader{T: t, dir: t.TempDir(), path: os.Getenv("PATH")}
			defer r.leave()
			r.findTools(blocks)
			for _, b := range blocks {
				r.follow(b)
			}
		})
	}
}

// TestDifferencesAreShown: every entry of the page of differences names tests, scripts or conformance checks that exist.
func TestDifferencesAreShown(t *testing.T) {
	page, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	source := testSource(t)
	named := regexp.MustCompile("`([^`]+)`")
	for i, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.HasPrefix(line, "| Here") {
			continue
		}
		shown := named.FindAllStringSubmatch(cells[3], -1)
		if len(shown) == 0 {
			t.Errorf("line %d names no test: %s", i+1, line)
		}
		for _, name := range shown {
			if !testExists(source, name[1]) {
				t.Errorf("line %d: there is no %s", i+1, name[1])
			}
		}
	}
}

// testSource is the text of all tests and of the conformance suite.
func testSource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "conformance/") {
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func testExists(source, name string) bool {
	if strings.HasPrefix(name, "testdata/") {
		_, err := os.Stat("../../" + name)
		return err == nil
	}
	test, check, within := strings.Cut(name, "/")
	if strings.HasPrefix(test, "Test") {
		return strings.Contains(source, "\nfunc "+test+"(t ") && (!within || strings.Contains(source, `t.Run("`+check+`"`))
	}
	return strings.Contains(source, `{"`+test+`", `) && strings.Contains(source, `{"`+check+`", `)
}

// block is a fenced block of a page.
type block struct {
	where    string // file and line
	language string
	text     string
}

func readBlocks(path string) ([]block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var blocks []block
	var open *block
	for i, line := range strings.Split(string(text), "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{where: fmt.Sprintf("%s:%d", filepath.Base(path), i+1), language: language}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block is not closed", open.where)
	}
	return blocks, nil
}

// findTools skips the page if a tool or package that its blocks use is missing, and makes the packages of both languages importable in the reader's directory.
func (r *reader) findTools(blocks []block) {
	r.Helper()
	if uses(blocks, "aws") && !testkit.Full() {
		r.Skip("the page calls the AWS CLI, which takes up to a second for each call; run it with FULL_TESTS=1")
	}
	for _, tool := range []string{"bash", "curl", "aws", "python3", "node"} {
		if _, err := exec.LookPath(tool); err != nil && uses(blocks, tool) {
			r.Skipf("the page uses %s, which is not installed", tool)
		}
	}
	if modules := imported(blocks, "python", pythonImport); len(modules) > 0 {
		python, err := pythonWith(modules)
		if err != nil {
			r.Skip(err)
		}
		bin := r.TempDir()
		if err := os.Symlink(python, filepath.Join(bin, "python3")); err != nil {
			r.Fatal(err)
		}
		r.path = bin + string(filepath.ListSeparator) + r.path
	}
	packages, err := filepath.Abs("../../.ci/clients/node_modules")
	if err != nil {
		r.Fatal(err)
	}
	for _, name := range imported(blocks, "js", jsImport) {
		if _, err := os.Stat(filepath.Join(packages, name)); err != nil {
			r.Skipf("the page imports %s; install it with: npm install --prefix .ci/clients", name)
		}
	}
	if err := os.Symlink(packages, filepath.Join(r.dir, "node_modules")); err != nil { // next to the program: an import does not look at NODE_PATH
		r.Fatal(err)
	}
}

var (
	pythonImport = regexp.MustCompile(`(?m)^(?:import|from) (boto3|pytest)\b`)
	jsImport     = regexp.MustCompile(`(?:from |require\()"(@aws-sdk/[^"]+)"`)
)

// imported returns the modules outside the standard library that the page's blocks of a language import.
func imported(blocks []block, language string, pattern *regexp.Regexp) []string {
	var names []string
	for _, b := range blocks {
		if l, how, _ := strings.Cut(b.language, " "); l != language || how == "" {
			continue
		}
		for _, match := range pattern.FindAllStringSubmatch(b.text, -1) {
			if !slices.Contains(names, match[1]) {
				names = append(names, match[1])
			}
		}
	}
	return names
}

// pythonWith returns a python3 that can import the modules: the first on PATH, or Debian's, which alone sees the modules that apt-get installs.
func pythonWith(modules []string) (string, error) {
	program := "import " + strings.Join(modules, ", ")
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if path, err := exec.LookPath(name); err == nil && exec.Command(path, "-c", program).Run() == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no python3 can %s; install with: apt-get install python3-boto3 python3-pytest", program)
}

// uses reports whether the page's blocks run a tool.
func uses(blocks []block, tool string) bool {
	word := regexp.MustCompile(`\b` + tool + `\b`)
	for _, b := range blocks {
		switch b.language {
		case "sh":
			if tool == "bash" || word.MatchString(b.text) {
				return true
			}
		case "python run":
			if tool == "bash" || tool == "python3" {
				return true
			}
		case "js run":
			if tool == "bash" || tool == "node" {
				return true
			}
		}
	}
	return false
}

// reader does what a page says.
type reader struct {
	*testing.T
	dir    string
	path   string // where the page's commands are looked for
	server *served
	shell  *shell
	output string            // of the last block that was run
	free   map[string]string // ports in place of documentedPorts, as far as they were needed
	clone  []*exec.Cmd       // processes started in the repository
}

const documentedAddress = "127.0.0.1:8000"

func (r *reader) follow(b block) {
	r.Helper()
	switch b.language {
	case "sh serve":
		r.serve(b)
	case "sh clone":
		r.startInClone(b)
	case "sh":
		r.run(b)
	case "python run":
		r.runProgram(b, "python3", "program.py")
	case "js run":
		name := "program.mjs"
		if strings.Contains(b.text, "require(") {
			name = "program.cjs"
		}
		r.runProgram(b, "node", name)
	case "text":
		r.compare(b)
	case "go":
		r.findGo(b)
	default:
		if _, name, _ := strings.Cut(b.language, " "); filepath.Ext(name) != "" {
			r.save(b, name)
		}
	}
}

// runProgram saves a program and runs it as a command of the page's bash.
func (r *reader) runProgram(b block, interpreter, name string) {
	r.Helper()
	r.save(b, name)
	b.text = interpreter + " " + name
	r.run(b)
}

func (r *reader) save(b block, name string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(r.addressed(b)), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *reader) serve(b block) {
	r.Helper()
	r.stopServer()
	args := words(b.text)
	if len(args) < 2 || args[0] != "mayfly" || args[1] != "serve" && !strings.HasPrefix(args[1], "-") { // flags alone are DynamoDB Local's
		r.Fatalf("%s: not a mayfly serve: %s", b.where, b.text)
	}
	if slices.Contains(args, "--port") {
		r.Fatalf("%s: pages run at the same time, so none may name the port of its server", b.where)
	}
	server, err := startPrinting(r.dir, nil, append(args[1:], "--port", "0")...)
	if err != nil {
		r.Fatalf("%s: %v", b.where, err)
	}
	r.server, r.output = server, server.printed()
}

// words splits a command at blanks, but not inside single quotes, as a shell does.
func words(command string) (words []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// addressed returns the block's text with the addresses that are in use here.
func (r *reader) addressed(b block) string {
	r.Helper()
	text := r.withFreePort(b.text)
	switch {
	case r.server != nil:
		text = strings.ReplaceAll(text, documentedAddress, r.address())
	case strings.Contains(text, documentedAddress):
		r.Fatalf("%s: no server runs", b.where)
	}
	return text
}

func (r *reader) run(b block) {
	r.Helper()
	text := r.addressed(b)
	if r.shell == nil {
		shell, err := startShell(r.dir, r.path)
		if err != nil {
			r.Fatal(err)
		}
		r.shell = shell
	}
	output, err := r.shell.run(text)
	if err != nil {
		r.Fatalf("%s: %v\n%s%s", b.where, err, output, r.shell.errors.String())
	}
	r.output = output
}

// documentedPorts are the ports of other programs that a page starts.
var documentedPorts = []string{"9001", "9002", "4222"}

func (r *reader) withFreePort(text string) string {
	r.Helper()
	for _, port := range documentedPorts {
		if !strings.Contains(text, port) {
			continue
		}
		if r.free == nil {
			r.free = map[string]string{}
		}
		if r.free[port] == "" {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				r.Fatal(err)
			}
			_, r.free[port], _ = net.SplitHostPort(l.Addr().String())
			l.Close()
		}
		text = strings.ReplaceAll(text, port, r.free[port])
	}
	return text
}

// startInClone starts something in the repository, with the environment of the tests, whose caches it needs, and waits until it listens.
func (r *reader) startInClone(b block) {
	r.Helper()
	var log buffer
	command := exec.Command("bash", "-c", r.withFreePort(b.text))
	command.Dir, command.Stdout, command.Stderr = filepath.Join("..", ".."), &log, &log
	command.Env = append(os.Environ(), "TMPDIR="+r.dir)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		r.Fatal(err)
	}
	r.clone = append(r.clone, command)
	for port, free := range r.free {
		if !strings.Contains(b.text, port) {
			continue
		}
		limit := time.Now().Add(cloneLimit)
		for {
			c, err := net.Dial("tcp", "127.0.0.1:"+free)
			if err == nil {
				c.Close()
				break
			}
			if time.Now().After(limit) {
				r.Fatalf("%s: nothing listens: %v\n%s", b.where, err, log.String())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

const cloneLimit = 3 * time.Minute // to compile it

func (r *reader) address() string {
	_, address, _ := strings.Cut(r.server.url, "://")
	return address
}

func (r *reader) compare(b block) {
	r.Helper()
	if r.server == nil {
		return // a picture of something that the page does not run
	}
	got := strings.TrimSpace(strings.ReplaceAll(r.output, r.address(), documentedAddress))
	want := strings.TrimSpace(b.text)
	pattern := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$"
	if !regexp.MustCompile(pattern).MatchString(got) {
		r.Errorf("%s: the page promises\n%s\nand this is printed\n%s", b.where, want, got)
	}
}

// findGo looks for the block's lines, one after another, in the tests of the root package and of those that are to be imported besides.
func (r *reader) findGo(b block) {
	r.Helper()
	var files []string
	for _, pattern := range []string{"../../*_test.go", "../../guard/*_test.go", "../../guard/strict/*_test.go", "../../internal/sdk/*_test.go", "../../mayflytest/*_test.go", "../../planner/*_test.go", "../../timeseries/*_test.go"} {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			r.Fatal(err)
		}
		files = append(files, matches...)
	}
	want := unindented(b.text)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			r.Fatal(err)
		}
		if strings.Contains(unindented(string(text)), want) {
			return
		}
	}
	r.Errorf("%s: no test has these lines:\n%s", b.where, b.text)
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

func (r *reader) stopServer() {
	r.Helper()
	if r.server == nil {
		return
	}
	if code, err := r.server.stop(syscall.SIGTERM); err != nil || code != "0" {
		r.Errorf("the server exited with %s, %v\n%s", code, err, r.server.logged())
	}
	r.server = nil
}

func (r *reader) leave() {
	if r.shell != nil {
		r.shell.stop()
	}
	for _, c := range r.clone {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		_ = c.Wait()
	}
	r.stopServer()
}

// shell is a bash that runs one block after another.
type shell struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  buffer
}

func startShell(dir, path string) (*shell, error) {
	s := &shell{command: exec.Command("bash", "-euo", "pipefail")}
	s.command.Dir, s.command.Stderr = dir, &s.errors
	s.command.Env = append(os.Environ(), "HOME="+dir, "PATH="+path, "AWS_PAGER=", "MAYFLY_ENDPOINT=", "NO_COLOR=1")
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what a page leaves running can be ended with it
	in, err := s.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.in, s.out = in, bufio.NewReader(out)
	return s, s.command.Start()
}

// endOfBlock is printed behind the output of a block.
const endOfBlock = "\x04 end of block"

// run executes a block. The error says that a command of it failed; the shell is gone then.
func (s *shell) run(block string) (output string, err error) {
	if _, err := fmt.Fprintf(s.in, "{\n%s\n} </dev/null\necho; echo '%s'\n", block, endOfBlock); err != nil {
		return "", err
	}
	var all bytes.Buffer
	for {
		line, err := s.out.ReadString('\n')
		if strings.TrimSpace(line) == endOfBlock {
			return strings.TrimSuffix(all.String(), "\n"), nil
		}
		all.WriteString(line)
		if err != nil {
			return all.String(), fmt.Errorf("a command failed: %w", s.command.Wait())
		}
	}
}

func (s *shell) stop() {
	s.in.Close()
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, s.out)
	_ = s.command.Wait()
}
