package timeseries

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustParser(t testing.TB, f Format, m Mapping) parser {
	t.Helper()
	p, err := newParser(f, m.withDefaults(f))
	must(t, err)
	return p
}

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func TestLineProtocol(t *testing.T) {
	for _, c := range []struct {
		line   string
		m      Mapping
		want   Sample
		reason Reason
	}{
		{`weather,location=us-midwest temperature=82,humidity=71i 1893499200000000000`, Mapping{},
			Sample{Device: "weather,location=us-midwest", Time: noon, Values: map[string]float64{"temperature": 82, "humidity": 71}}, ""},
		{`cpu,host=server\ 01,region=a\,b value=0.5 1893499200000000001`, Mapping{},
			Sample{Device: "server 01", Time: noon.Add(1), Values: map[string]float64{"cpu": 0.5}, Tags: map[string]string{"region": "a,b"}}, ""},
		{`cpu,host=a idle=1,on=t,note="it's, \"so\" = x" 1893499200`, Mapping{TimeFormat: "s", Measurement: true},
			Sample{Device: "a", Time: noon, Values: map[string]float64{"cpu_idle": 1, "cpu_on": 1}, Tags: map[string]string{"cpu_note": `it's, "so" = x`}}, ""},
		{`m,z=1,a=2 v=-1.5e3 1893499200000`, Mapping{TimeFormat: "ms"}, Sample{Device: "m,a=2,z=1", Time: noon, Values: map[string]float64{"v": -1500}}, ""},
		{`m,z=1,a=2 v=1 1893499200`, Mapping{TimeFormat: "s", Device: "z"}, Sample{Device: "1", Time: noon, Values: map[string]float64{"v": 1}, Tags: map[string]string{"a": "2"}}, ""},
		{`m v=1 1893499200`, Mapping{TimeFormat: "s", Device: "z"}, Sample{}, ReasonDevice},
		{`m v=1`, Mapping{}, Sample{}, ReasonTime},
		{`m v=1 soon`, Mapping{}, Sample{}, ReasonTime},
		{`m`, Mapping{}, Sample{}, ReasonSyntax},
		{`m v= 1`, Mapping{}, Sample{}, ReasonSyntax},
		{`m,t v=1 1`, Mapping{}, Sample{}, ReasonSyntax},
		{`m,t=1,t=2 v=1 1`, Mapping{}, Sample{}, ReasonSyntax},
		{`m v=1,v=2 1`, Mapping{}, Sample{}, ReasonSyntax},
		{`m v="open 1`, Mapping{}, Sample{}, ReasonTime},
		{`m v=much 1`, Mapping{}, Sample{}, ReasonNumber},
		{`m v=9007199254740993i 1`, Mapping{}, Sample{}, ReasonNumber},
	} {
		r, bad := mustParser(t, LineProtocol, c.m).parse([]byte(c.line))
		switch {
		case c.reason != "":
			if bad == nil || bad.Reason != c.reason {
				t.Errorf("%s: %v, want %s", c.line, bad, c.reason)
			}
		case bad != nil:
			t.Errorf("%s: %v", c.line, bad)
		default:
			if diff := cmp.Diff(c.want, r.Sample); diff != "" {
				t.Errorf("%s:\n%s", c.line, diff)
			}
		}
	}
	for _, line := range []string{"", "   ", "# a comment"} {
		if r, bad := mustParser(t, LineProtocol, Mapping{}).parse([]byte(line)); r != nil || bad != nil {
			t.Errorf("%q says %v, %v", line, r, bad)
		}
	}
}

func TestNDJSON(t *testing.T) {
	for _, c := range []struct {
		line    string
		m       Mapping
		want    Sample
		unknown []string
		reason  Reason
	}{
		{`{"sensor_id": 7, "ts": 1893499200.25, "air": {"t": 1.5, "ok": true}, "note": "x", "gone": null}`, Mapping{},
			Sample{Device: "7", Time: noon.Add(250 * time.Millisecond), Values: map[string]float64{"air.t": 1.5, "air.ok": 1}, Tags: map[string]string{"note": "x"}}, nil, ""},
		{`{"device":"a","time":"2030-01-01T13:00:00+01:00","t":1,"u":2,"l":[1]}`, Mapping{Metrics: []string{"t"}},
			Sample{Device: "a", Time: noon, Values: map[string]float64{"t": 1}}, []string{"l", "u"}, ""},
		{`{"device":"a","time":"2030-01-01","ttl":1}`, Mapping{}, Sample{Device: "a", Time: noon.Add(-12 * time.Hour), Values: map[string]float64{"ttl_": 1}}, nil, ""},
		{`{"time":1,"t":1}`, Mapping{}, Sample{}, nil, ReasonDevice},
		{`{"device":{},"time":1,"t":1}`, Mapping{}, Sample{}, nil, ReasonDevice},
		{`{"device":"a","t":1}`, Mapping{}, Sample{}, nil, ReasonTime},
		{`{"device":"a","time":true,"t":1}`, Mapping{}, Sample{}, nil, ReasonTime},
		{`{"device":"a","time":1,"t":"much"}`, Mapping{Metrics: []string{"t"}}, Sample{}, nil, ReasonNumber},
		{`{"device":"a","time":1,"t":1} {}`, Mapping{}, Sample{}, nil, ReasonSyntax},
		{`{"device":"a"`, Mapping{}, Sample{}, nil, ReasonSyntax},
		{`[1]`, Mapping{}, Sample{}, nil, ReasonSyntax},
		{`null`, Mapping{}, Sample{}, nil, ReasonSyntax},
		{`{"a":{"b":{"c":{"d":{"e":{"f":1}}}}},"device":"a","time":1}`, Mapping{}, Sample{}, nil, ReasonSyntax},
	} {
		r, bad := mustParser(t, NDJSON, c.m).parse([]byte(c.line))
		switch {
		case c.reason != "":
			if bad == nil || bad.Reason != c.reason {
				t.Errorf("%s: %v, want %s", c.line, bad, c.reason)
			}
		case bad != nil:
			t.Errorf("%s: %v", c.line, bad)
		default:
			if diff := cmp.Diff(c.want, r.Sample) + cmp.Diff(c.unknown, r.unknown); diff != "" {
				t.Errorf("%s:\n%s", c.line, diff)
			}
		}
	}
	// NaN in quotes is an invalid number.
	r, bad := mustParser(t, NDJSON, Mapping{}).parse([]byte(`{"device":"a","time":1,"t":"NaN"}`))
	if bad != nil || r.check() == nil || r.check().Reason != ReasonNumber {
		t.Errorf("NaN: %v, %v", r, bad)
	}
}

func TestCSVMapping(t *testing.T) {
	p := mustParser(t, CSV, Mapping{Device: "where", Time: "when", Comma: ';', Metrics: []string{"t"}, Tags: []string{"code"}, TimeFormat: "02.01.2006 15:04"})
	_, err := p.header([]byte("when;where;t;code;rest"))
	must(t, err)
	r, bad := p.parse([]byte("01.01.2030 12:00;roof;4.5;007;1"))
	want := Sample{Device: "roof", Time: noon, Values: map[string]float64{"t": 4.5}, Tags: map[string]string{"code": "007"}}
	if bad != nil || cmp.Diff(want, r.Sample) != "" || cmp.Diff([]string{"rest"}, r.unknown) != "" {
		t.Errorf("%v: %+v", bad, r)
	}
	if _, bad := p.parse([]byte("01.01.2030 12:00;roof;much;007;1")); bad == nil || bad.Reason != ReasonNumber {
		t.Errorf("got %v", bad)
	}
	for header, m := range map[string]Mapping{
		"a,b": {}, "time,b": {}, "device,b": {}, "device,time": {Metrics: []string{"t"}}, "device,time,x": {Device: "x", Time: "y"}, `device,"time`: {},
	} {
		if _, err := mustParser(t, CSV, m).header([]byte(header)); err == nil {
			t.Errorf("the header %s is not refused", header)
		}
	}
	for _, m := range []Mapping{{TimeFormat: "weekly"}, {TimeFormat: "15:04"}, {Comma: '"'}, {As: "a#shard01"}, {Metrics: []string{"ttl"}}} {
		if err := m.withDefaults(CSV).validate(); err == nil {
			t.Errorf("%+v is not refused", m)
		}
	}
}

func TestTimes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	for _, c := range []struct {
		text string
		f    TimeFormat
		zone *time.Location
		want string // "" for none
	}{
		{"2030-01-01T12:00:00Z", "auto", berlin, "2030-01-01T12:00:00Z"},
		{"2030-01-01T12:00:00.123456789+01:00", "auto", berlin, "2030-01-01T11:00:00.123456789Z"},
		{"2030-01-01 12:00:00.5", "auto", time.UTC, "2030-01-01T12:00:00.5Z"},
		{"2030-01-01T12:00", "auto", berlin, "2030-01-01T11:00:00Z"},
		{"2030-01-01", "auto", time.UTC, "2030-01-01T00:00:00Z"},
		{"2030-03-31T02:30:00", "auto", berlin, ""}, // skipped when the clock moves forward
		{"2030-03-31T03:00:00", "auto", berlin, "2030-03-31T01:00:00Z"},
		{"2030-10-27T02:30:00", "auto", berlin, "2030-10-27T00:30:00Z"}, // occurs twice: the first
		{"2030-10-27T03:30:00", "auto", berlin, "2030-10-27T02:30:00Z"},
		{"1893499200", "auto", time.UTC, "2030-01-01T12:00:00Z"},
		{"1893499200.25", "auto", time.UTC, "2030-01-01T12:00:00.25Z"},
		{"1893499200001", "auto", time.UTC, "2030-01-01T12:00:00.001Z"},
		{"1893499200001.5", "auto", time.UTC, "2030-01-01T12:00:00.0015Z"},
		{"1893499200000001", "auto", time.UTC, "2030-01-01T12:00:00.000001Z"},
		{"1893499200000000001", "auto", time.UTC, "2030-01-01T12:00:00.000000001Z"},
		{"12", "ms", time.UTC, "1970-01-01T00:00:00.012Z"},
		{"01/02/2030", "02/01/2006", time.UTC, "2030-02-01T00:00:00Z"},
		{"99999999999999999999", "auto", time.UTC, ""}, {"1.", "s", time.UTC, ""}, {"-1.5", "s", time.UTC, ""}, {"1e9", "s", time.UTC, ""}, {"", "auto", time.UTC, ""},
		{"2030-02-30", "auto", time.UTC, ""}, {"now", "auto", time.UTC, ""}, {strings.Repeat("1", 100), "auto", time.UTC, ""},
	} {
		got, err := c.f.read(c.text, c.zone)
		if text := got.Format(time.RFC3339Nano); (err == nil) != (c.want != "") || err == nil && text != c.want {
			t.Errorf("%s in %s is %s, %v; want %q", c.text, c.zone, text, err, c.want)
		}
	}
}

// For any line the parsers terminate, and the series stores or refuses their samples.
func FuzzParsers(f *testing.F) {
	for _, line := range []string{
		"device,time,v", `a,1,2`, `"a ""b""",2030-01-01,1`, `{"device":"a","time":1,"v":{"w":1}}`, `m,t=a\ b v=1,w="x" 1`, `m v=1i 1`, "\xff", `"`, `m, =`, `a\`,
	} {
		f.Add([]byte(line))
	}
	parsers := []parser{mustParser(f, NDJSON, Mapping{}), mustParser(f, LineProtocol, Mapping{}), mustParser(f, CSV, Mapping{Header: []string{"device", "time", "v"}})}
	x := newWorld(f, Spec{})
	f.Fuzz(func(t *testing.T, line []byte) {
		_, _ = mustParser(t, CSV, Mapping{}).header(line)
		for _, p := range parsers {
			r, bad := p.parse(line)
			if bad != nil && (bad.Message == "" || bad.Reason == "") {
				t.Errorf("refused without a reason: %+v", bad)
			}
			if r == nil || bad != nil || x.Check(&r.Sample, start) != nil {
				continue
			}
			metadata, err := r.metadata()
			if err != nil {
				continue
			}
			back, _, broken := readItem(newItem(&r.Sample, sortKey(&r.Sample, metadata), metadata, time.Time{}))
			back.Key = ""
			if broken != nil || cmp.Diff(r.Sample, back) != "" {
				t.Errorf("%q: %+v comes back as %+v, %v", line, r.Sample, back, broken)
			}
		}
	})
}

// Any instant in a file is read or refused, in every format.
func FuzzTimes(f *testing.F) {
	for _, text := range []string{"2030-01-01T12:00:00Z", "1893499200.25", "-1", "2030-10-27 02:30"} {
		f.Add(text)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range []TimeFormat{"auto", "s", "ms", "us", "ns", "2006-01-02 15:04"} {
			if at, err := format.read(text, berlin); err == nil && at.IsZero() && !strings.HasPrefix(text, "0001") && !strings.Contains(text, "-") {
				t.Errorf("%q is not a time, and nothing said so", text)
			}
		}
	})
}
