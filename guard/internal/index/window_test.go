package index

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Any TTL that guard takes, and any granularity that the options take.
var (
	anyTTL         = rapid.Int64Range(0, 1e11)
	anyGranularity = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(1, 86_400).Draw(t, "seconds")) * time.Second
	})
)

// unix is the epoch second of an instant of the specification's table.
func unix(t testing.TB, instant string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		t.Fatal(err)
	}
	return at.Unix()
}

// The table of docs/spec/patterns.md (a), for whole seconds.
func TestWindowTable(t *testing.T) {
	for _, c := range []struct{ ttl, want string }{
		{"2022-07-19T20:55:00Z", "2022-07-19T20:54:00.000Z_2022-07-19T20:55:00.000Z"},
		{"2022-07-19T20:55:01Z", "2022-07-19T20:55:00.000Z_2022-07-19T20:56:00.000Z"},
		{"2022-07-19T20:55:30Z", "2022-07-19T20:55:00.000Z_2022-07-19T20:56:00.000Z"},
		{"2022-07-19T20:55:59Z", "2022-07-19T20:55:00.000Z_2022-07-19T20:56:00.000Z"},
		{"2022-07-19T21:27:01Z", "2022-07-19T21:27:00.000Z_2022-07-19T21:28:00.000Z"},
	} {
		if got := Window(unix(t, c.ttl), time.Minute); got != c.want {
			t.Errorf("%s is in %s, want %s", c.ttl, got, c.want)
		}
	}
	if got := Window(100, 100*time.Millisecond); got != "1970-01-01T00:01:39.000Z_1970-01-01T00:01:40.000Z" {
		t.Errorf("a granularity below a second returns %s", got)
	}
}

// published is the window function of docs/spec/patterns.md (a), in its original language.
const published = `
const iso = ms => new Date(ms).toISOString();
const f = (t, w) => iso(Math.floor((t - 1000) / w) * w) + "_" + iso(Math.ceil(t / w) * w);
let text = "";
process.stdin.on("data", d => text += d).on("end", () => console.log(JSON.stringify(JSON.parse(text).map(([ttl, w]) => f(ttl * 1000, w * 1000)))));`

// Window returns the same as the published function, for each whole second.
func TestWindowAsPublished(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run the published function with:", err)
	}
	var cases [][2]int64
	for i := range 20_000 {
		cases = append(cases, [2]int64{anyTTL.Example(i), int64(anyGranularity.Example(i) / time.Second)})
	}
	for ttl := int64(1_658_265_600); ttl < 1_658_265_600+3600; ttl++ {
		cases = append(cases, [2]int64{ttl, 60})
	}
	input, _ := json.Marshal(cases)
	command := exec.CommandContext(t.Context(), node, "-e", published)
	command.Stdin = strings.NewReader(string(input))
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if err := json.Unmarshal(output, &want); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		if got := Window(c[0], time.Duration(c[1])*time.Second); got != want[i] {
			t.Fatalf("TTL %d, granularity %d s: %s, published %s", c[0], c[1], got, want[i])
		}
	}
}

func TestWindowCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ttl, granularity := anyTTL.Draw(t, "ttl"), anyGranularity.Draw(t, "granularity")
		w, length := windowOf(ttl, granularity), int64(granularity/time.Second)
		if w.start >= ttl || ttl > w.end || w.end-w.start != length || w.end%length != 0 {
			t.Fatalf("TTL %d is in (%d, %d], granularity %d", ttl, w.start, w.end, length)
		}
	})
}

func TestWindowOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, granularity := anyTTL.Draw(t, "a"), anyTTL.Draw(t, "b"), anyGranularity.Draw(t, "granularity")
		if a, b := min(a, b), max(a, b); Window(a, granularity) > Window(b, granularity) {
			t.Fatalf("TTL %d is in %s, and %d in %s", a, Window(a, granularity), b, Window(b, granularity))
		}
	})
}

func TestWindowComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low, length, granularity := anyTTL.Draw(t, "low"), rapid.Int64Range(0, 1000).Draw(t, "length"), anyGranularity.Draw(t, "granularity")
		asked := map[string]bool{}
		for w := range windowsBetween(low, low+length, granularity) {
			asked[w.String()] = true
		}
		needed := map[string]bool{}
		for ttl := low; ttl <= low+length; ttl++ {
			needed[Window(ttl, granularity)] = true
		}
		for w := range needed {
			if !asked[w] {
				t.Fatalf("%s is not asked for between %d and %d", w, low, low+length)
			}
		}
		if len(asked) != len(needed) {
			t.Fatalf("%d windows are asked for, and %d needed", len(asked), len(needed))
		}
	})
}

func TestWindowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := windowOf(anyTTL.Draw(t, "ttl"), anyGranularity.Draw(t, "granularity"))
		shard := Shard(rapid.String().Draw(t, "key"), rapid.IntRange(1, 10_000).Draw(t, "n"))
		if got, rest, ok := readWindow(want.String()); got != want || rest != "" || !ok {
			t.Fatalf("%s reads as %v %q %v", want, got, rest, ok)
		}
		if got, rest, ok := readWindow(WindowShard(want.String(), shard)); got != want || rest != shard || !ok {
			t.Fatalf("%s#%s reads as %v %q %v", want, shard, got, rest, ok)
		}
	})
}

// For milliseconds, the published code returns a span of two windows, or no window.
func TestWindowMalformed(t *testing.T) {
	for _, name := range []string{
		"2022-07-19T20:54:30.000Z_2022-07-19T20:55:30.000Z", "2022-07-19T20:55:00.000Z_2022-07-19T20:54:00.000Z", "2022-07-19T20:54:00.000Z_2022-07-19T20:54:00.000Z",
		"2022-07-19T20:54:00.500Z_2022-07-19T20:55:00.000Z", "2022-07-19T20:54:00.000Z_2022-07-19T20:55:00.000Z#", "2022-07-19T20:54:00.000Z_2022-07-19T20:55:00.000Zx",
		"2022-07-19T20:54:00.000Z 2022-07-19T20:55:00.000Z", "", "0", "7", "x",
	} {
		if w, shard, ok := readWindow(name); ok {
			t.Errorf("%q reads as %v %q", name, w, shard)
		}
	}
}

// Writers in other languages compute the same shards: FNV-1a of 32 bits, modulo n. The hashes are
// from the function's authors.
func TestShard(t *testing.T) {
	for key, hash := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} {
		for _, n := range []int{1, 2, 7, 10_000} {
			if got, want := Shard(key, n), strconv.FormatUint(uint64(hash)%uint64(n), 10); got != want {
				t.Errorf("%q is in shard %s of %d, want %s", key, got, n, want)
			}
		}
	}
	if got := Shard("a", 0); got != "0" {
		t.Errorf("of no shards: %s", got)
	}
	counts := map[string]int{}
	for i := range 16_000 {
		counts[Shard("user"+strconv.Itoa(i), 16)]++
	}
	for shard, n := range counts {
		if n < 700 || n > 1300 {
			t.Errorf("%d of 16,000 keys are in shard %s of 16", n, shard)
		}
	}
}

// FuzzReadWindow: a window that can be parsed is written back as it was.
func FuzzReadWindow(f *testing.F) {
	f.Add("2022-07-19T21:27:00.000Z_2022-07-19T21:28:00.000Z")
	f.Add("2022-07-19T21:27:00.000Z_2022-07-19T21:28:00.000Z#12")
	f.Add("2022-07-19T20:54:00.000Z_2022-07-19T20:56:00.000Z")
	f.Add("0000-01-01T00:00:00.000Z_9999-12-31T00:00:00.000Z#")
	f.Add("0")
	f.Fuzz(func(t *testing.T, name string) {
		w, shard, ok := readWindow(name)
		if !ok {
			return
		}
		back := w.String()
		if shard != "" {
			back = WindowShard(back, shard)
		}
		if back != name {
			t.Fatalf("%q reads as %q", name, back)
		}
		length := time.Duration(w.end-w.start) * time.Second
		if windowOf(w.end, length) != w || windowOf(w.start+1, length) != w {
			t.Fatalf("%q is not the window of its own TTLs", name)
		}
	})
}
