package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/term"

	"github.com/mayflydb/mayfly/internal/ttl"
	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/judge"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

type doctorCommand struct {
	Table     string        `help:"Table to examine." required:"" placeholder:"NAME"`
	Attribute string        `help:"TTL attribute to judge the items by. Default: the table's own." placeholder:"NAME"`
	Sample    int           `help:"Items to read, spread over the table. Smaller tables are read whole." default:"10000" placeholder:"N"`
	All       bool          `help:"Read the whole table, however large."`
	MaxRCU    float64       `name:"max-rcu" help:"Most read units a second; 0: no limit. Reads are eventually consistent, at half a unit for 4 KB." default:"500" placeholder:"N"`
	Fail      bool          `help:"Exit with code 1 if the items have mistakes, for a check in CI."`
	Patience  time.Duration `help:"How long to repeat a call that fails or is throttled, before the command ends." default:"30s"`
	JSON      bool          `name:"json" help:"Print the report as JSON."`
	endpointFlags
}

func (doctorCommand) Help() string {
	return `Examples:

    mayfly doctor --table sessions
    mayfly doctor --endpoint aws --region eu-west-1 --table sessions --all --max-rcu 50
    mayfly doctor --table orders --attribute delete_at

It reads a table at any endpoint and changes nothing. It finds TTL values by which items never expire, counts what enabling TTL would delete
now, and shows when the other items expire. Without --all it reads a sample, and numbers with ~ are estimates for the whole table.`
}

// doctorReport is the report as JSON.
type doctorReport struct {
	Table     string `json:"table"`
	Attribute string `json:"attribute"`
	// TTLAttribute is the attribute of the table's own TTL; "" if that is off.
	TTLAttribute string    `json:"ttl_attribute"`
	Stream       string    `json:"stream"` // view type; "" if there is no stream
	Billing      string    `json:"billing"`
	Now          time.Time `json:"now"` // by the endpoint's clock
	*judge.Survey
	// Whole reports whether all items were read. Otherwise the counts are of a sample, and each times
	// Scale is an estimate for the whole table.
	Whole bool    `json:"whole"`
	Scale float64 `json:"scale"`

	Values []doctorValues `json:"values"`
	Cliffs []judge.Cliff  `json:"cliffs"` // the fullest minutes
	Next   string         `json:"next"`
}

// doctorValues are the items with one kind of TTL value.
type doctorValues struct {
	Kind     string          `json:"kind"`
	Mistake  bool            `json:"mistake"`
	Items    int64           `json:"items"`
	Examples []judge.Example `json:"examples,omitempty"`
	reason   ttl.Reason
}

// Run examines a table.
func (c doctorCommand) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	e.widen(doctorCalls)
	side := transferFlags{Patience: c.Patience}.side(e, c.Table, 0)
	table, err := side.Describe(ctx)
	if err != nil {
		return e.adviseTable(err, c.Table)
	}
	attribute := cmp.Or(c.Attribute, table.TimeToLiveAttribute)
	if attribute == "" {
		return misused(fmt.Errorf("table %q has no TTL", c.Table), "name the attribute that is to be its deadline: --attribute %s", c.candidate(ctx, side, e))
	}
	r := &doctorReport{
		Table: c.Table, Attribute: attribute, TTLAttribute: table.TimeToLiveAttribute, Stream: string(table.Stream), Billing: string(table.BillingMode),
		Now: e.now(ctx).Truncate(time.Millisecond), Scale: 1,
	}
	r.Survey = judge.NewSurvey(attribute, table.Keys(), r.Now.UnixMilli())
	if r.Whole, err = c.read(ctx, s, side, table.Items, r.Survey); err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return e.advise(err)
	}
	r.conclude(table.Items)
	if c.JSON {
		err = writeJSON(s.out, r)
	} else {
		err = r.write(s, e.name())
	}
	if n := r.mistakes(); err == nil && c.Fail && n > 0 {
		return fmt.Errorf("table %q has %s with a TTL value that is a mistake", c.Table, counted(int(n), "item"))
	}
	return err
}

// candidate returns the attribute that has most numbers that look like instants, in the first items
// of the table, or an example of a name.
func (c doctorCommand) candidate(ctx context.Context, side transfer.Side, e *endpoint) string {
	out, err := side.DB.Scan(ctx, &dynamodb.ScanInput{TableName: &c.Table, Limit: aws.Int32(100)})
	if err != nil {
		return "expires"
	}
	now, seen := e.now(ctx).UnixMilli(), map[string]int{}
	best := "expires"
	for _, item := range out.Items {
		for name, v := range item {
			n, isNumber := v.(*types.AttributeValueMemberN)
			if !isNumber {
				continue
			}
			if _, reason := ttl.Deadline(n.Value, now); reason != ttl.Good && reason != ttl.Milliseconds {
				continue
			}
			seen[name]++
			if most := seen[best]; seen[name] > most || seen[name] == most && name < best {
				best = name
			}
		}
	}
	return best
}

func (c doctorCommand) check() error {
	switch {
	case c.Sample < 1 || c.Sample > 10_000_000:
		return misused(fmt.Errorf("--sample %d is not between 1 and 10000000", c.Sample), "for example --sample 10000; --all reads the whole table")
	case !(c.MaxRCU >= 0):
		return misused(fmt.Errorf("--max-rcu %g is negative", c.MaxRCU), "for example --max-rcu 50; 0 is no limit")
	case c.Patience <= 0:
		return misused(fmt.Errorf("--patience %s is not positive", c.Patience), "for example --patience 30s")
	}
	return nil
}

const (
	doctorCalls    = 8   // at the same time
	doctorSegments = 32  // of a sample, at most: it has the beginning of each
	doctorPart     = 100 // items of a segment, at least
	doctorPage     = 500 // items at most, so that no call takes far more units than a second has
)

// errSampled ends a segment once enough of its items were read.
var errSampled = errors.New("the sample is complete")

// read reads the table or a sample of it into the survey. It reports whether it was all of the table.
func (c doctorCommand) read(ctx context.Context, s streams, side transfer.Side, items int64, to *judge.Survey) (whole bool, err error) {
	units := transfer.NewRate(2 * c.MaxRCU) // half units
	segments := min(max(c.Sample/doctorPart, 1), doctorSegments)
	most := (c.Sample + segments - 1) / segments
	total := min(items, int64(c.Sample))
	if c.All || items <= int64(c.Sample) {
		segments, most, total = doctorCalls, c.Sample, items // one partition may have most of them
	}
	count := newTransferred(s.err, "read", total)
	defer count.clear()
	partial := make([]bool, segments)
	scan := transfer.Scan{Side: side, Segments: segments, Page: doctorPage}
	if !c.All {
		scan.Page = min(doctorPage, most)
	}
	err = transfer.Parallel(ctx, segments, doctorCalls, func(ctx context.Context, n int) error {
		left := most
		err := scan.Segment(ctx, n, nil, func(page []attr.Item, next attr.Item) error {
			if len(page) > left && !c.All {
				page, partial[n] = page[:left], true
			}
			left -= len(page)
			bytes := to.Add(page)
			count.add(len(page))
			if err := units.Wait(ctx, int(bytes+4095)/4096); err != nil {
				return err
			}
			if left <= 0 && next != nil && !c.All {
				partial[n] = true
				return errSampled
			}
			return nil
		})
		if errors.Is(err, errSampled) {
			return nil
		}
		return err
	})
	whole = true
	for _, p := range partial {
		whole = whole && !p
	}
	return whole, err
}

// conclude completes the report. items is the number of items by the table's description.
func (r *doctorReport) conclude(items int64) {
	if !r.Whole && r.Items > 0 {
		r.Scale = max(1, float64(items)/float64(r.Items))
	}
	for _, v := range r.Survey.Values() {
		r.Values = append(r.Values, doctorValues{v.Reason.String(), v.Reason.Mistake(), v.Items, v.Examples, v.Reason})
	}
	r.Cliffs = r.Survey.Cliffs(r.Scale)
	r.Next = r.next()
}

func (r *doctorReport) mistakes() (n int64) {
	for _, v := range r.Values {
		if v.Mistake {
			n += v.Items
		}
	}
	return n
}

// next returns what to do.
func (r *doctorReport) next() string {
	var first *doctorValues
	for i := range r.Values {
		if r.Values[i].Mistake && first == nil {
			first = &r.Values[i]
		}
	}
	enabled := r.TTLAttribute == r.Attribute
	switch {
	case first != nil:
		return fmt.Sprintf("correct the program that writes these values and the items, then run this again; for one item: mayfly explain --table %s --key '%s'", r.Table, first.Examples[0].Key)
	case r.Items == 0:
		return "the table has no items yet; run this again when it has"
	case !enabled && r.TTLAttribute != "":
		return fmt.Sprintf("the table's TTL uses %s; to change it, disable TTL first", r.TTLAttribute)
	case !enabled && r.Overdue.Items > 0:
		return fmt.Sprintf("check that the overdue items may go, or save them with mayfly export --table %s --to DIR; then enable TTL: aws dynamodb update-time-to-live", r.Table)
	case !enabled:
		return fmt.Sprintf("enable TTL: aws dynamodb update-time-to-live --table-name %s --time-to-live-specification Enabled=true,AttributeName=%s", r.Table, r.Attribute)
	case len(r.Cliffs) > 0:
		return "if work follows each expiry, spread the deadlines: add a random part of the lifetime when you write them"
	case r.Overdue.Items > 0:
		return "filter overdue items out of your reads, or remove them on time with mayfly guard"
	}
	return "nothing: the values are good"
}

// estimate returns a count for the whole table, as text.
func (r *doctorReport) estimate(n int64) string {
	if r.Whole || n == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("~%.0f", float64(n)*r.Scale)
}

// write prints the report for readers.
func (r *doctorReport) write(s streams, endpoint string) error {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(oneLine(fmt.Sprintf(format, args...)) + "\n") }
	line("table %s at %s", r.Table, endpoint)
	setting := "TTL is off; judged by " + r.Attribute
	switch {
	case r.TTLAttribute == r.Attribute:
		setting = "TTL is on, by " + r.Attribute
	case r.TTLAttribute != "":
		setting = "TTL is on, by " + r.TTLAttribute + "; judged by " + r.Attribute
	}
	line("%s; stream %s; billing %s", setting, cmp.Or(r.Stream, "off"), r.Billing)
	read := fmt.Sprintf("read all %s, %s", counted(int(r.Items), "item"), sizeText(float64(r.Bytes)))
	if !r.Whole {
		read = fmt.Sprintf("read a sample of %s; numbers with ~ are estimates for about %.0f", counted(int(r.Items), "item"), float64(r.Items)*r.Scale)
	}
	line("%s; the endpoint's clock shows %s", read, when.UTC(r.Now))
	b.WriteString("\n")
	r.writeValues(&b, line)
	verb := "overdue and still there"
	if r.TTLAttribute != r.Attribute {
		verb = "enabling TTL on " + r.Attribute + " would delete now"
	}
	if o := r.Overdue; o.Items == 0 {
		line("%s: no items", verb)
	} else {
		tilde := ""
		if !r.Whole {
			tilde = "~"
		}
		items := "items"
		if r.Whole && o.Items == 1 {
			items = "item"
		}
		line("%s: %s %s, %s%s, the oldest due since %s", verb, r.estimate(o.Items), items, tilde, sizeText(float64(o.Bytes)*r.Scale), when.UTC(*o.Oldest))
		for _, x := range o.Examples {
			line("  %s due since %s", x.Key, when.UTC(*x.Deadline))
		}
	}
	b.WriteString("\n")
	r.writeBuckets(&b, widthOf(s.out))
	for _, c := range r.Cliffs {
		line("cliff: %s items expire in the minute from %s", r.estimate(c.Items), when.UTC(c.Minute))
	}
	line("next: %s", r.Next)
	_, err := fmt.Fprint(s.out, b.String())
	return err
}

// writeValues prints the kinds of values as a table, and the examples of mistakes.
func (r *doctorReport) writeValues(b *strings.Builder, line func(string, ...any)) {
	if len(r.Values) == 0 {
		return
	}
	t := table{heading: []string{"VALUE", "ITEMS", "SHARE", "MEANING"}}
	for _, v := range r.Values {
		meaning := "expires"
		switch {
		case v.Mistake:
			meaning = "never expires: the value " + v.reason.Why()
		case v.reason == ttl.Absent:
			meaning = "never expires: no such attribute"
		}
		t.add(v.Kind, r.estimate(v.Items), fmt.Sprintf("%.1f%%", 100*float64(v.Items)/float64(r.Items)), meaning)
	}
	_ = t.write(b)
	for _, v := range r.Values {
		if !v.Mistake {
			continue
		}
		line("%s, for example:", v.Kind)
		for _, x := range v.Examples {
			line("  %s has %s", x.Key, x.Value)
		}
		line("  fix: %s", v.reason.Fix())
	}
	b.WriteString("\n")
}

const bucketCells = 40 // of the longest bar

// writeBuckets prints the histogram of expirations, without bars in a narrow window.
func (r *doctorReport) writeBuckets(b *strings.Builder, width int) {
	t := table{heading: []string{"EXPIRES", "ITEMS", ""}}
	most := int64(1)
	for _, x := range r.Buckets {
		most = max(most, x.Items)
	}
	for _, x := range r.Buckets {
		bar := ""
		if n := int(x.Items * bucketCells / most); x.Items > 0 && width >= 30+bucketCells {
			bar = strings.Repeat("█", max(n, 1))
		}
		t.add(x.Name, r.estimate(x.Items), bar)
	}
	_ = t.write(b)
}

// widthOf returns the width of a terminal; other outputs have 80 cells.
func widthOf(out any) int {
	if file, ok := out.(*os.File); ok && asTerminal(file) != nil {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// sizeText returns a number of bytes for readers.
func sizeText(n float64) string {
	if n < 1024 {
		return fmt.Sprintf("%.0f B", n)
	}
	for _, unit := range []string{"KB", "MB", "GB"} {
		if n /= 1024; n < 1024 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0") + " " + unit
		}
	}
	return fmt.Sprintf("%.1f TB", n/1024)
}
