package program

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// pageOfTries is a web page that makes the requests that its parent sends it, one after another,
// and answers with the results.
const pageOfTries = `<!DOCTYPE html><script>
async function make(base, t) {
  const url = base + t.path;
  switch (t.how) {
  case "beacon":
    return {status: navigator.sendBeacon(url, t.body) ? 200 : 0, text: ""};
  case "form": { // the only form that sends no other text than the given one
    const form = document.createElement("form"), frame = document.createElement("iframe"), input = document.createElement("input");
    frame.name = form.target = "f" + Math.random();
    [form.action, form.method, form.enctype] = [url, "post", "text/plain"];
    [input.name, input.value] = t.body.split("=");
    form.append(input);
    document.documentElement.append(frame, form);
    const loaded = new Promise(resolve => frame.onload = resolve);
    form.submit();
    await loaded;
    return {status: 200, text: ""};
  }
  }
  const headers = {};
  if (t.target) headers["X-Amz-Target"] = t.target;
  if (t.type) headers["Content-Type"] = t.type;
  try {
    const answer = await fetch(url, {method: t.method, headers, body: t.body || undefined, mode: t.how || "cors"});
    return {status: answer.type == "opaque" ? 200 : answer.status, text: await answer.text()};
  } catch (e) {
    return {status: 0, text: String(e)};
  }
}
addEventListener("message", async ({data}) => {
  const results = [];
  for (const t of data.tries) results.push(await make(data.base, t));
  parent.postMessage(results, "*");
});
</script>`

// pageOfFrames is a web page that opens a page of tries in a frame for each visitor. Its variable
// results is a promise of all results.
const pageOfFrames = `<!DOCTYPE html><body><script>
const visitors = %s;
const results = Promise.all(visitors.map(visitor => new Promise(resolve => {
  const frame = document.createElement("iframe");
  frame.src = visitor.page;
  frame.onload = () => frame.contentWindow.postMessage(visitor, "*");
  addEventListener("message", e => { if (e.source == frame.contentWindow) resolve(e.data); });
  document.body.append(frame);
})));
</script></body>`

// try is a request of a page.
type try struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Target string `json:"target"`
	Type   string `json:"type"`
	Body   string `json:"body"`
	How    string `json:"how"` // "no-cors", "beacon" and "form" need no leave of the server, and the page does not see the answer
}

// visitor is a page in a browser that makes requests to a server.
type visitor struct {
	Name  string `json:"name"`
	Page  string `json:"page"`
	Base  string `json:"base"` // "": the page's own origin
	Tries []try  `json:"tries"`
}

// result is the outcome of a try. Without leave to see the answer, the status is 0 or, if nothing
// failed, 200.
type result struct {
	Status int
	Text   string
}

// browse shows the visitors to a browser, and returns the results of their tries.
func browse(t *testing.T, visitors []visitor) [][]result {
	t.Helper()
	list, err := json.Marshal(visitors)
	if err != nil {
		t.Fatal(err)
	}
	frames := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, pageOfFrames, list) }))
	defer frames.Close()
	tab := chrome.Start(t, chrome.Flag{Name: "host-resolver-rules", Value: "MAP *.example 127.0.0.1"}).Open(t, chrome.Desk)
	tab.Go(frames.URL)
	results := chrome.Eval[[][]result](tab, "results")
	tab.Forgive("") // refused requests
	if len(results) != len(visitors) {
		t.Fatalf("%d results of %d pages", len(results), len(visitors))
	}
	return results
}

// gate listens on a port that serves pageOfTries at /page. All other connections it passes to a
// server unchanged. So the page, at whatever name it is opened, is of the server's own origin.
// After DNS rebinding a browser sees the same.
func gate(t *testing.T, server string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		if head, _ := in.Peek(len("GET /page")); string(head) == "GET /page" {
			if _, err := http.ReadRequest(in); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(pageOfTries), pageOfTries)
			}
			return
		}
		to, err := net.Dial("tcp", strings.TrimPrefix(server, "http://"))
		if err != nil {
			return
		}
		defer to.Close()
		go func() {
			io.Copy(to, in)
			to.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(c, to)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pass(c)
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// schedule is a schedule that fires once, now, with a text.
func schedule(text string) string {
	return `{"ScheduleExpression":"at(2020-01-01T00:00:00)","FlexibleTimeWindow":{"Mode":"OFF"},` +
		`"Target":{"Arn":"arn:mayfly:exec:::note","RoleArn":"arn:aws:iam::000000000000:role/r","Input":"` + text + `"}}`
}

// tablesTries call the API of tables, and its streams.
func tablesTries(name string) []try {
	const amz = "application/x-amz-json-1.0"
	call := func(operation, body string) try {
		return try{"POST", "/", "DynamoDB_20120810." + operation, amz, body, ""}
	}
	return []try{
		call("ListTables", "{}"),
		call("PutItem", `{"TableName":"orders","Item":{"id":{"S":"`+name+`"}}}`),
		call("Scan", `{"TableName":"orders"}`),
		{"POST", "/", "DynamoDBStreams_20120810.ListStreams", amz, "{}", ""},
	}
}

// workTries call the APIs of schedules, rules and event source mappings. They change and delete a
// schedule that exists.
func workTries(name string) []try {
	return []try{
		{"POST", "/schedules/json-" + name, "", "application/json", schedule("json-" + name), ""},
		{"POST", "/schedules/text-" + name, "", "", schedule("text-" + name), ""},
		{"POST", "/schedules/blind-" + name, "", "", schedule("blind-" + name), "no-cors"},
		{"POST", "/schedules/beacon-" + name, "", "", schedule("beacon-" + name), "beacon"},
		{"POST", "/schedules/form-" + name, "", "", strings.TrimSuffix(schedule("form-"+name), "}") + `,"Description":"x="}`, "form"},
		{"PUT", "/schedules/kept-" + name, "", "application/json", schedule("kept-" + name), ""},
		{"DELETE", "/schedules/kept-" + name, "", "", "", ""},
		{"GET", "/schedules", "", "", "", ""},
		{"POST", "/", "AWSEvents.PutRule", "application/x-amz-json-1.1", `{"Name":"` + name + `","ScheduleExpression":"rate(1 hour)"}`, ""},
		{"GET", "/2015-03-31/event-source-mappings", "", "", "", ""},
	}
}

// operatorTries use the endpoints for operators.
var operatorTries = []try{
	{"GET", "/healthz", "", "", "", ""},
	{"GET", "/readyz", "", "", "", ""},
	{"GET", "/metrics", "", "", "", ""},
	{"GET", "/_mayfly/clock", "", "", "", ""},
}

// TestPagesInABrowser opens web pages in Chromium that try each API of mayfly serve, mayfly worker
// and mayfly guard proxy. Pages of other origins, and pages under a name that resolves to the server
// (DNS rebinding), have no effect and see no answer. The server's own pages and those that its flags
// allow succeed with the same requests.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	if err := os.WriteFile(filepath.Join(dir, "targets.yaml"), []byte(`targets: [{arn: "arn:mayfly:*", exec: {command: [sh, -c, "cat >> ran; echo >> ran"]}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(args ...string) *served {
		t.Helper()
		s, err := startListening(dir, []string{"PATH=" + os.Getenv("PATH"), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any"}, args[0], args[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.kill)
		return s
	}
	app := gate(t, "")
	pages := []string{"--targets", "targets.yaml", "--cors", "http://app.example:" + app, "--allow-host", "db.example"}
	server := start(append([]string{"serve", "--memory"}, pages...)...)
	other := start("serve", "--memory", "--database-only")
	worker := start(append([]string{"worker", "--endpoint", other.url}, pages...)...)
	proxy := start("guard proxy", "--endpoint", other.url, "--all-tables")
	for _, s := range []*served{server, other} {
		callDynamoDB(t, s.url, "CreateTable", `{"TableName":"orders","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`)
	}

	// serves are the servers' URLs, their gates and what their pages try.
	type serves struct {
		name, url, port string
		tries           func(name string) []try
	}
	all := []serves{
		{"serve", server.url, gate(t, server.url), func(name string) []try {
			return append(append(append(tablesTries(name), workTries(name)...), operatorTries...),
				try{"GET", "/", "", "", "", ""}, try{"POST", "/_mayfly/clock/rate", "", "", `{"rate":1}`, ""})
		}},
		{"worker", worker.url, gate(t, worker.url), func(name string) []try { return append(workTries(name), operatorTries...) }},
		{"proxy", proxy.url, gate(t, proxy.url), func(name string) []try { return append(tablesTries(name), try{"GET", "/", "", "", "", ""}) }},
	}
	var attackers, guests []visitor
	for _, s := range all {
		visit := func(list *[]visitor, kind, host, port, base string) {
			name := s.name + "-" + kind
			*list = append(*list, visitor{name, "http://" + host + ":" + port + "/page", base, s.tries(name)})
			if s.name != "proxy" {
				if status, text, err := exchange("POST", s.url+"/schedules/kept-"+name, strings.Replace(schedule("kept"), "2020", "2999", 1)); status != 200 {
					t.Fatal(status, text, err)
				}
			}
		}
		visit(&attackers, "rebound", "evil.example", s.port, "")
		visit(&attackers, "foreign", "evil.example", app, s.url)
		visit(&attackers, "other-port", "127.0.0.1", app, s.url)
		visit(&attackers, "other-name", "localhost", app, s.url)
		if s.name == "proxy" {
			visit(&attackers, "own", "127.0.0.1", s.port, "")
			continue
		}
		visit(&guests, "own", "127.0.0.1", s.port, "")
		visit(&guests, "localhost", "localhost", s.port, "")
		visit(&guests, "named", "db.example", s.port, "")
		visit(&guests, "listed", "app.example", app, s.url)
	}

	state := func() string {
		t.Helper()
		var all strings.Builder
		for _, s := range []*served{server, worker} {
			_, schedules, err := exchange("GET", s.url+"/schedules?MaxResults=100", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`"Name":"(.*?)"`).FindAllStringSubmatch(schedules, -1) {
				_, one, _ := exchange("GET", s.url+"/schedules/"+name[1], "")
				all.WriteString(one + "\n")
			}
			_, rules, _ := exchange("POST", s.url, "{}", "X-Amz-Target:AWSEvents.ListRules", "Content-Type:application/x-amz-json-1.1")
			all.WriteString(rules + "\n")
		}
		for _, s := range []*served{server, other} {
			_, items, _ := exchangeDynamoDB(s.url, "Scan", `{"TableName":"orders"}`)
			all.WriteString(items + "\n")
		}
		return all.String()
	}
	before := state()
	for i, results := range browse(t, attackers) {
		v := attackers[i]
		for j, r := range results {
			x := v.Tries[j]
			health := v.Name == "proxy-own" && x.Method == "GET" // its user may open it
			if blind := x.How != ""; r.Status == 200 && !blind && !health || v.Base != "" && !blind && r.Status != 0 ||
				v.Base == "" && !blind && !health && !strings.Contains(r.Text, "web pages cannot use this") {
				t.Errorf("%s: %s %s %s: %d %s", v.Name, x.Method, x.Path, x.Target, r.Status, r.Text)
			}
		}
	}
	if after := state(); after != before {
		t.Errorf("pages changed\n%s\nto\n%s", before, after)
	}
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("pages ran a command with %s", text)
	}

	for i, results := range browse(t, guests) {
		v := guests[i]
		for j, r := range results {
			x := v.Tries[j]
			fine := r.Status >= 200 && r.Status < 300
			if strings.HasSuffix(v.Name, "-listed") && regexp.MustCompile("^/(healthz|readyz|metrics|_mayfly/.*)$").MatchString(x.Path) {
				fine = r.Status == 0 // these are open to the server's own pages only
			}
			if !fine {
				t.Errorf("%s: %s %s %s: %d %s", v.Name, x.Method, x.Path, x.Target, r.Status, r.Text)
			}
		}
	}
	after := state()
	for _, v := range guests {
		for _, want := range []string{`"Name":"json-`, `"Name":"text-`, `"Name":"blind-`, `"Name":"beacon-`, `"Name":"form-`, `"Name":"`} {
			if !strings.Contains(after, want+v.Name+`"`) {
				t.Errorf("%s%s is missing in\n%s", want, v.Name, after)
			}
		}
		if strings.Contains(after, "kept-"+v.Name) {
			t.Errorf("%s did not delete its schedule", v.Name)
		}
	}
	for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(ran)
		if n := strings.Count(string(text), "form-"); n >= len(guests) {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the command ran with %s", text)
		}
	}
}
