package keyfile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mayflydb/mayfly/internal/front/keyfile"
	"github.com/mayflydb/mayfly/internal/front/keys"
	"github.com/mayflydb/mayfly/internal/front/policy"
	"github.com/mayflydb/mayfly/internal/front/sigv4"
)

// place is a directory with a key file, and the options of its reader.
type place struct {
	*testing.T
	dir string
	env map[string]string
	now time.Time
	log bytes.Buffer
}

func newPlace(t *testing.T) *place {
	return &place{T: t, dir: t.TempDir(), env: map[string]string{"SET": "from-env"}, now: time.Unix(1_900_000_000, 0)}
}

func (p *place) options() keyfile.Options {
	return keyfile.Options{
		Guard: func(table string) string {
			return policy.Text(policy.Grant{Sid: "G", Actions: []string{"dynamodb:Scan"}, Resources: []string{"arn:aws:dynamodb:*:*:table/" + table}})
		},
		Env:    func(name string) (string, bool) { v, ok := p.env[name]; return v, ok },
		Now:    func() time.Time { return p.now },
		Logger: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

// write writes a file in the place, by renaming over it as careful editors do.
func (p *place) write(name, text string) string {
	p.Helper()
	path := p.path(name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.Fatal(err)
	}
	return path
}

const allowAll = `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}`

func TestLoad(t *testing.T) {
	p := newPlace(t)
	p.write("own.json", allowAll)
	p.write("secret", "from-file\r\n")
	path := p.write("keys.yaml", `
keys:
- user: root
  access-key: A
  secret-key: "plain # text"
  policies: [full-access]
- access-key: B
  secret-key-env: SET
  session-token-file: secret
  status: active
  expires: 2027-01-01T00:00:00+01:00
  policies: &all
  - read-only
  - backup
  - table:orders.json
  - guard:orders
  - ./own.json
- {access-key: C, secret-key-file: secret, session-token: 0123, status: inactive, policies: *all}
- access-key: D
  secret-key-command: [echo, "from command
    here"]
  expires: 2027-01-01
  policies: [read-only]
`)
	got, err := keyfile.Load(t.Context(), path, p.options())
	if err != nil {
		t.Fatal(err)
	}
	all := []keys.Policy{
		{Name: "read-only", Text: policy.ReadOnly()}, {Name: "backup", Text: policy.Backup()},
		{Name: "table:orders.json", Text: policy.Table("arn:aws:dynamodb:*:*:table/orders.json")},
		{Name: "guard:orders", Text: p.options().Guard("orders")}, {Name: "./own.json", Text: allowAll},
	}
	want := []keyfile.Key{
		{Active: true, Spec: keys.Spec{User: "root", Credential: sigv4.Credential{AccessKey: "A", SecretKey: "plain # text"}}},
		{Active: true, Spec: keys.Spec{Credential: sigv4.Credential{AccessKey: "B", SecretKey: "from-env", SessionToken: "from-file"},
			Expires: time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC), Policies: all}},
		{Spec: keys.Spec{Credential: sigv4.Credential{AccessKey: "C", SecretKey: "from-file", SessionToken: "0123"}, Policies: all}},
		{Active: true, Spec: keys.Spec{Credential: sigv4.Credential{AccessKey: "D", SecretKey: "from command here"},
			Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Policies: all[:1]}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the keys differ (-want +got):\n%s", diff)
	}
	if p.log.Len() > 0 {
		t.Errorf("it logs %s", p.log.String())
	}
	var specs []keys.Spec
	for _, k := range got {
		specs = append(specs, k.Spec)
	}
	if _, err := keys.New(specs, nil, nil); err != nil {
		t.Errorf("a ring refuses the keys: %v", err)
	}

	o := p.options()
	o.NoSecrets, o.Env = true, nil
	if got, err = keyfile.Load(t.Context(), path, o); err != nil || len(got) != 4 || got[0].SecretKey+got[3].SecretKey != "" {
		t.Errorf("without secrets: %v, %v", got, err)
	}
}

// JSON is YAML.
func TestLoadJSON(t *testing.T) {
	p := newPlace(t)
	path := p.write("keys.json", `{"keys": [{"access-key": "A", "secret-key": "s", "policies": ["read-only"]}]}`)
	if got, err := keyfile.Load(t.Context(), path, p.options()); err != nil || len(got) != 1 || got[0].AccessKey != "A" {
		t.Errorf("got %v, %v", got, err)
	}
}

// Each fault is reported with its line and the correction, and no error has a secret.
func TestLoadErrors(t *testing.T) {
	p := newPlace(t)
	p.write("bad.json", `{"Version": "2012-10-17", "Statement": {"Effect": "Permit", "Action": "*", "Resource": "*"}}`)
	p.write("empty", "\n")
	p.write("lines", "hunter2\nhunter2\n")
	p.write("large", strings.Repeat("hunter2", 10_000))
	p.write("large.json", strings.Repeat(" ", 1<<20)+allowAll)
	p.env["EMPTY"] = ""
	if err := os.Mkdir(p.path("dir.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	const ok = ", secret-key: hunter2, policies: [read-only]}"
	entry := func(settings string) string { return "keys:\n- {access-key: A, " + settings + "}\n" }
	secret := func(settings string) string { return entry("policies: [read-only], " + settings) }
	policies := func(list string) string { return entry("secret-key: hunter2, policies: " + list) }
	for text, want := range map[string]string{
		// The document.
		"":                                `it is empty; it must begin with "keys:"`,
		"# nothing":                       `it is empty; it must begin with "keys:"`,
		"hunter2":                         `line 1: the file has no keys; it must begin with "keys:"`,
		"{}":                              `line 1: the file has no keys; it must begin with "keys:"`,
		"keys: [":                         "line 1, column 8: it is neither YAML nor JSON: did not find expected node content",
		"keys:":                           "line 1: keys: the value is missing; add it, or drop the line",
		"keys: hunter2":                   `line 1: keys: must be a list, each entry with "- " before its first setting; write [] for no key`,
		"keyz: []":                        "line 1: unknown setting keyz; did you mean keys?",
		"keys: []\nkeys: []":              "line 2: keys is given twice; drop one",
		"keys: []\n---\nkeys: []":         "line 2, column 1: a second document begins here; the file must have only one",
		"keys: [hunter2]":                 "line 1: key 1: must have settings, such as access-key: ORDERS1",
		"keys: [{access-key: *hunter2 }]": `a value begins with "*", which refers to an anchor that is missing; write the value in quotes`,
		"keys:\n" + strings.Repeat("- {}\n", 1001): "line 2: keys: 1001 keys are too many; the limit is 1000",
		strings.Repeat("#", 1<<20+1):               "is larger than 1048576 bytes",

		// The settings.
		secret("secret-key: hunter2, acces-key: A"):                "line 2: key A: unknown setting acces-key; did you mean access-key?",
		secret("secret-key: hunter2, role: A"):                     "line 2: key A: unknown setting role; use one of access-key, expires, policies,",
		secret("secret-key: hunter2, [a]: b"):                      "line 2: key A: the name of a setting must be a single word",
		secret("secret-key: hunter2, access-key: B"):               "line 2: key A: access-key is given twice; drop one",
		secret("secret-key: hunter2, user: "):                      "line 2: key A: user: the value is missing; add it, or drop the line",
		secret(`secret-key: hunter2, user: ""`):                    "line 2: key A: user: the value is empty",
		secret("secret-key: !hunter2 x"):                           `line 2: key A: secret-key: begins with "!", which is a tag in YAML; write the value in quotes`,
		secret("secret-key: [hunter2]"):                            "line 2: key A: secret-key: must be a text",
		secret("secret-key: hunter2, user: a b"):                   `line 2: key A: user: "a b" is not 1 to 64 letters, digits and characters of "+=,.@_-"`,
		secret("secret-key: hunter2, status: on"):                  `line 2: key A: status: "on" is neither active nor inactive`,
		secret("secret-key: hunter2, expires: tomorrow"):           `line 2: key A: expires: invalid time "tomorrow"; use 2030-01-01, 2030-01-01T12:00:00Z or 2030-01-01T12:00:00+01:00`,
		"keys:\n- {user: u" + ok:                                   `line 2: key 1: access-key: must be set to 1 to 128 characters, without "/" and white space`,
		"keys:\n- {access-key: a/b" + ok:                           `line 2: key 1: access-key: must be set to 1 to 128 characters, without "/" and white space`,
		"keys:\n- {access-key: A" + ok + "\n- {access-key: A" + ok: `line 3: key A: access-key: "A" is also the access key of the entry at line 2; each key needs its own`,
		"keys:\n- {access-key: flag" + ok:                          `line 2: key flag: access-key: "flag" is also set by --access-key; drop the flag, or rename this key`,

		// The policies.
		entry("secret-key: hunter2"):    "line 2: key A: policies: must be set, such as [read-only], or [full-access] for a key without restriction",
		policies("[]"):                  "line 2: key A: policies: must be set, such as [read-only], or [full-access] for a key without restriction",
		policies("read-only"):           "line 2: key A: policies: must be a list, such as [read-only]",
		policies("[read-only, {a: b}]"): "line 2: key A: policies: must be a text",
		policies("[read-only" + strings.Repeat(", backup", 10) + "]"): "line 2: key A: policies: 11 policies are too many; the limit is 10",
		policies("[readonly]"):               `line 2: key A: policies: unknown policy "readonly"; did you mean read-only?; a policy of your own is the path of a file that ends in .json`,
		policies("[mine]"):                   `line 2: key A: policies: unknown policy "mine"; use one of full-access, read-only, backup, table:NAME, guard:NAME; a policy`,
		policies("[read-only, full-access]"): "line 2: key A: policies: full-access must be the only policy, because it would overrule a Deny in the others; drop it, or the others",
		policies("['table:']"):               `line 2: key A: policies: "table:" does not name a table, such as table:orders: 3 to 255 letters, digits, "_", "-" and "."`,
		policies("['guard:a*b']"):            `line 2: key A: policies: "guard:a*b" does not name a table, such as guard:orders: 3 to 255 letters`,
		policies("[bad.json]"):               "bad.json: statement 1: ",
		policies("[absent.json]"):            "absent.json: no such file or directory; paths are relative to the directory of the key file",
		policies("[dir.json]"):               "dir.json is not a regular file",
		policies("[large.json]"):             "large.json is larger than 1048576 bytes",

		// The secrets.
		secret("user: u"): "line 2: key A: needs exactly one of secret-key, secret-key-env, secret-key-file and secret-key-command; it has none",
		secret("secret-key: hunter2, secret-key-env: SET"):                             "line 2: key A: needs exactly one of secret-key, secret-key-env, secret-key-file and secret-key-command; it has secret-key and secret-key-env",
		secret("secret-key: hunter2, session-token: hunter2, session-token-env: SET"):  "line 2: key A: needs at most one of session-token, session-token-env, session-token-file and session-token-command; it has session-token and session-token-env",
		secret("secret-key-env: UNSET"):                                                "line 2: key A: secret-key-env: the environment variable UNSET is not set",
		secret("secret-key-env: EMPTY"):                                                "line 2: key A: secret-key-env: the environment variable EMPTY is not set",
		secret("secret-key: hunter2, session-token-env: UNSET"):                        "line 2: key A: session-token-env: the environment variable UNSET is not set",
		secret("secret-key-file: absent"):                                              "absent: no such file or directory; paths are relative to the directory of the key file",
		secret("secret-key-file: empty"):                                               "empty is empty",
		secret("secret-key-file: lines"):                                               "lines has several lines; it must have the secret alone",
		secret("secret-key-file: large"):                                               "large is larger than 65536 bytes",
		secret("secret-key-command: echo"):                                             "line 2: key A: secret-key-command: must be a list, such as [aws, secretsmanager, get-secret-value]",
		secret("secret-key-command: []"):                                               "line 2: key A: secret-key-command: the list is empty; it must begin with a program",
		secret("secret-key-command: [echo" + strings.Repeat(", a", 100) + "]"):         "line 2: key A: secret-key-command: 101 arguments are too many; the limit is 100",
		secret("secret-key-command: [no-such-program]"):                                `line 2: key A: secret-key-command: program "no-such-program" not found on the PATH`,
		secret("secret-key-command: [sh, -c, echo hunter2; echo hunter2 >&2; exit 3]"): "line 2: key A: secret-key-command: sh failed: exit status 3; run it by hand to see why",
		secret("secret-key-command: [echo]"):                                           "line 2: key A: secret-key-command: echo prints nothing in its first line; it must print the secret",
		secret("secret-key-command: [sh, -c, while echo hunter2; do :; done]"):         "line 2: key A: secret-key-command: sh prints more than 65536 bytes; it must print the secret alone",
	} {
		path := p.write("keys.yaml", text)
		o := p.options()
		o.Besides = []sigv4.Credential{{AccessKey: "flag", SecretKey: "hunter2"}}
		got, err := keyfile.Load(t.Context(), path, o)
		if err == nil {
			t.Errorf("%.80q is accepted: %v", text, got)
			continue
		}
		said := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "key file "+path+": "), "key file: ")
		if !strings.HasPrefix(said, want) && !strings.Contains(said, "/"+want) && !strings.HasSuffix(said, " "+want) && (!strings.HasPrefix(want, "is ") || !strings.HasSuffix(said, want)) {
			t.Errorf("%.80q:\n got %s\nwant %s", text, said, want)
		}
		if strings.Contains(said, "hunter2") {
			t.Errorf("%.80q: the error has the secret: %s", text, said)
		}
	}
}

// All faults of a file are reported together, by line.
func TestFaultsTogether(t *testing.T) {
	p := newPlace(t)
	path := p.write("keys.yaml", "keys:\n- access-key: A\n  status: on\n- access-key: B\n  secret-key: s\n  policies: [mine]\n")
	_, err := keyfile.Load(t.Context(), path, p.options())
	if err == nil || !strings.Contains(err.Error(), "4 mistakes\n  line 2: key A: needs exactly one") || !strings.Contains(err.Error(), "\n  line 3: key A: status") ||
		!strings.Contains(err.Error(), "\n  line 6: key B: policies: unknown policy") {
		t.Errorf("got %v", err)
	}
	_, err = keyfile.Load(t.Context(), p.write("keys.yaml", "keys:\n"+strings.Repeat("- {}\n", 500)), p.options())
	if err == nil || strings.Count(err.Error(), "\n") != 101 || !strings.HasSuffix(err.Error(), "\n  and more") {
		t.Errorf("1500 faults are %v", err)
	}
}

func TestNoFile(t *testing.T) {
	p := newPlace(t)
	for path, want := range map[string]string{p.path("absent"): "key file: open " + p.path("absent") + ": no such file or directory", p.dir: "key file: " + p.dir + " is not a regular file"} {
		if _, err := keyfile.Load(t.Context(), path, p.options()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestReadable(t *testing.T) {
	p := newPlace(t)
	secret := p.write("secret", "s\n")
	path := p.write("keys.yaml", "keys: [{access-key: A, secret-key-file: secret, policies: [full-access]}]")
	for _, wide := range []string{secret, path} {
		if err := os.Chmod(wide, 0o640); err != nil {
			t.Fatal(err)
		}
		p.log.Reset()
		if _, err := keyfile.Load(t.Context(), path, p.options()); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("level=WARN msg=\"other users of this machine can read a file with secrets\" file=%s next=\"chmod 600 %s\"\n", wide, wide); !strings.Contains(p.log.String(), want) {
			t.Errorf("got %s\nwant %s", p.log.String(), want)
		}
	}
}

// Renew reads files again when they change, keeps the keys while a file has a fault, and reports a
// fault once.
func TestRenew(t *testing.T) {
	p := newPlace(t)
	p.write("own.json", allowAll)
	p.write("secret", "one\n")
	entry := func(key string) string {
		return "- {access-key: " + key + ", secret-key-file: secret, policies: [own.json]}\n"
	}
	path := p.write("keys.yaml", "keys:\n"+entry("A"))
	f, err := keyfile.Watch(t.Context(), path, p.options())
	if err != nil {
		t.Fatal(err)
	}
	renewed := func(want string) {
		t.Helper()
		specs, err := f.Renew(t.Context())
		if got := describe(specs, err); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("renewed: %q, want %q", got, want)
		}
	}
	if got := describe(f.Specs(), nil); got != "A=one " {
		t.Errorf("at first %q", got)
	}
	renewed("")
	p.write("keys.yaml", "keys:\n"+entry("B"))
	renewed("B=one ")
	renewed("")
	if log := p.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `level=INFO msg="read the changed key file" file=`+path+" keys=1\n") {
		t.Errorf("it logs\n%s", log)
	}
	p.write("secret", "two\n")
	renewed("B=two ")
	p.write("own.json", strings.ReplaceAll(allowAll, "Allow", "Deny "))
	renewed("key file " + path + ": line 2: key B: policies: ")
	renewed("")
	p.now = p.now.Add(time.Minute)
	renewed("") // the same fault
	p.write("own.json", "x")
	renewed("key file " + path + ": line 2: key B: policies: ")
	p.write("own.json", allowAll)
	renewed("B=two ")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	renewed("key file: open ")
	renewed("")
	p.write("keys.yaml", "keys:\n"+entry("A")+entry("B")+"- {access-key: C, status: inactive, secret-key: s, policies: [backup]}\n")
	renewed("A=two B=two ")
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	renewed("A=two B=two ")
	p.write("keys.yaml", "keys: []")
	if specs, err := f.Renew(t.Context()); len(specs) != 1 || err != nil || !strings.HasSuffix(p.log.String(), " keys=0\n") {
		t.Errorf("without keys: %v, %v\n%s", specs, err, p.log.String())
	}
	if strings.Contains(p.log.String(), "two") {
		t.Errorf("it logs a secret:\n%s", p.log.String())
	}
}

// A command that has failed is run again after a while, since no file shows that it would succeed.
func TestRenewRepeatsCommands(t *testing.T) {
	p := newPlace(t)
	path := p.write("keys.yaml", "keys: [{access-key: A, secret-key: s, policies: [backup]}]")
	f, err := keyfile.Watch(t.Context(), path, p.options())
	if err != nil {
		t.Fatal(err)
	}
	p.write("keys.yaml", "keys: [{access-key: A, secret-key-command: [cat, "+p.path("made")+"], policies: [backup]}]")
	if _, err := f.Renew(t.Context()); err == nil {
		t.Error("the failure of a command is no error")
	}
	p.write("made", "late\nmore\n")
	if specs, err := f.Renew(t.Context()); specs != nil || err != nil {
		t.Errorf("at once: %v, %v", specs, err)
	}
	p.now = p.now.Add(30 * time.Second)
	if specs, err := f.Renew(t.Context()); describe(specs, err) != "A=late " {
		t.Errorf("later: %v, %v", specs, err)
	}
}

// A server whose file has no active key refuses every request.
func TestNoActiveKey(t *testing.T) {
	p := newPlace(t)
	for _, text := range []string{"keys: []", "keys: [{access-key: A, status: inactive, secret-key: s, policies: [backup]}]"} {
		p.log.Reset()
		f, err := keyfile.Watch(t.Context(), p.write("keys.yaml", text), p.options())
		if err != nil {
			t.Fatal(err)
		}
		if specs := f.Specs(); len(specs) != 1 || len(specs[0].AccessKey) < 20 || len(specs[0].SecretKey) < 20 || specs[0].Expires.IsZero() {
			t.Errorf("%s: %v", text, specs)
		}
		if !strings.Contains(p.log.String(), `level=WARN msg="no key is active: every request is refused"`) {
			t.Errorf("it logs %s", p.log.String())
		}
		o := p.options()
		o.Besides = []sigv4.Credential{{AccessKey: "flag", SecretKey: "x"}}
		if f, err = keyfile.Watch(t.Context(), p.path("keys.yaml"), o); err != nil || describe(f.Specs(), nil) != "flag=x " {
			t.Errorf("with a flag: %v, %v", f.Specs(), err)
		}
	}
}

// describe returns the access keys and secrets, or the error.
func describe(specs []keys.Spec, err error) (text string) {
	if err != nil {
		return err.Error()
	}
	for _, k := range specs {
		text += k.AccessKey + "=" + k.SecretKey + " "
	}
	return text
}

// A file of any content is read or refused. What is read can be used.
func FuzzLoad(f *testing.F) {
	f.Add("keys: [{access-key: A, secret-key: s, user: u, expires: 2027-01-01T00:00:00Z, status: inactive, policies: [table:orders, backup]}]")
	f.Add("keys:\n- &a {access-key: A, secret-key: s, policies: [full-access]}\n- *a\n- {<<: *a}\n")
	f.Add("keys: &k [*k]")
	f.Add("&a [*a]")
	f.Add("keys: [{access-key: !t A, secret-key: ~, policies: {a: b}}]")
	f.Add("? [a]\n: b\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := newPlace(t)
		o := p.options()
		o.NoSecrets = true // runs no command
		all, err := keyfile.Load(t.Context(), p.write("keys.yaml", text), o)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, k := range all {
			if k.AccessKey == "" || seen[k.AccessKey] {
				t.Errorf("access key %q is empty or used twice", k.AccessKey)
			}
			seen[k.AccessKey] = true
			if _, err := keys.New([]keys.Spec{k.Spec}, nil, nil); err != nil {
				t.Errorf("a ring refuses key %s: %v", k.AccessKey, err)
			}
		}
	})
}
