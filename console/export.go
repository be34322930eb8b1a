package console

import (
	"context"
	"encoding/csv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/transfer"
)

// exportMost is the number of items of an export from a page. mayfly export has no such limit.
const exportMost = 100_000

// exportItems sends the items that a page's form chooses, as JSON lines or CSV.
func (p *pages) exportItems(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), callMost)
	defer cancel()
	v, err := p.visit(r)
	if err != nil {
		p.answer(ctx, w, v, nil, err)
		return
	}
	t, err := v.table(ctx)
	var q *query
	if err == nil {
		_ = r.ParseForm() // a wrong one has fewer fields
		q, err = readQuery(t, form{r.Form})
	}
	var first *found
	if err == nil {
		q.limit = pageMost
		first, err = q.run(ctx, v.DynamoDB())
	}
	if err != nil {
		p.answer(ctx, w, v, nil, err)
		return
	}
	write, end := jsonLines(w), func() {}
	name, kind := t.name()+".jsonl", "application/x-ndjson"
	as := r.FormValue("as")
	if as == "csv" || as == "sheet" {
		columns, err := q.exported(r.Context(), v, first)
		if err != nil {
			p.answer(ctx, w, v, nil, err)
			return
		}
		c := csv.NewWriter(w)
		name, kind, write, end = t.name()+".csv", "text/csv; charset=utf-8", csvLines(c, columns, as == "sheet"), c.Flush
	}
	if as != "csv" && as != "sheet" {
		if err := q.countable(r.Context(), v, first); err != nil {
			p.answer(r.Context(), w, v, nil, err)
			return
		}
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Header().Set("Cache-Control", "no-store")
	for n := 0; ; {
		for _, item := range first.items {
			if n++; n > exportMost {
				p.Logger.Warn("a table has grown during its export from a page", "table", t.name())
				panic(http.ErrAbortHandler) // as below
			}
			if write(item) != nil {
				return // the visitor has left
			}
		}
		if first.next == nil {
			end()
			return
		}
		q.start = first.next
		if first, err = q.run(r.Context(), v.DynamoDB()); err != nil {
			p.Logger.Warn("an export from a page has failed", "table", t.name(), "error", err)
			panic(http.ErrAbortHandler) // the connection breaks, so that a part is not taken for the whole
		}
	}
}

// errExport is the refusal of an export that would be cut: a file does not show that it lacks
// something.
var errExport = &pageError{http.StatusBadRequest, "More than " + grouped(exportMost) + " items match: choose fewer, or use mayfly export, which has no limit."}

// countable returns errExport if too many items match. It counts them, since the answer cannot be
// taken back once it has begun.
func (q *query) countable(ctx context.Context, v *visit, first *found) error {
	all := *q
	all.counting, all.projection, all.limit = true, nil, exportMost+1
	for n, f := len(first.items), first; f.next != nil; {
		all.start = f.next
		var err error
		if f, err = all.run(ctx, v.DynamoDB()); err != nil {
			return err
		}
		if n += int(f.matched); n > exportMost {
			return errExport
		}
	}
	return nil
}

// exported returns the columns of a CSV file: the attributes of all items. The line of names comes
// first, so a result of several pages is read twice.
func (q *query) exported(ctx context.Context, v *visit, first *found) ([]string, error) {
	names := map[string]bool{}
	all := *q
	for n, f := 0, first; ; {
		for _, item := range f.items {
			for name := range item {
				names[name] = true
			}
		}
		if n += len(f.items); n > exportMost {
			return nil, errExport
		}
		if f.next == nil {
			break
		}
		all.start = f.next
		var err error
		if f, err = all.run(ctx, v.DynamoDB()); err != nil {
			return nil, err
		}
	}
	columns := q.table.keys()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	return columns, nil
}

// jsonLines writes items as lines of DynamoDB JSON, as mayfly import reads them.
func jsonLines(w http.ResponseWriter) func(attr.Item) error {
	var line []byte
	return func(item attr.Item) error {
		line = append(transfer.AppendItem(line[:0], item), '\n')
		_, err := w.Write(line)
		return err
	}
}

// csvLines writes items as lines of CSV, after a line with the names. A sheet has no formulas.
func csvLines(w *csv.Writer, columns []string, sheet bool) func(attr.Item) error {
	begun := false
	return func(item attr.Item) error {
		if !begun {
			begun = true
			heads := columns
			if sheet {
				heads = each(columns, withoutFormula)
			}
			if err := w.Write(heads); err != nil {
				return err
			}
		}
		fields := make([]string, len(columns))
		for i, name := range columns {
			fields[i] = csvField(item[name])
			if _, text := item[name].(*types.AttributeValueMemberS); text && sheet {
				fields[i] = withoutFormula(fields[i])
			}
		}
		return w.Write(fields)
	}
}

// withoutFormula returns a text that spreadsheets show and do not compute.
func withoutFormula(text string) string {
	if text != "" && strings.Contains("=+-@\t\r\n", text[:1]) {
		return "'" + text
	}
	return text
}

// csvField returns a value as a field: texts, numbers and truths as they are, the rest as DynamoDB
// JSON. A text such as =1+1 stays as it is, although a spreadsheet may take it for a formula: a
// mark before it would be part of the value when the file is imported again, here or elsewhere. A
// missing attribute and an empty text are both an empty field: JSON lines have all.
func csvField(v types.AttributeValue) string {
	switch v := v.(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return strconv.FormatBool(v.Value)
	}
	text := transfer.AppendItem(nil, attr.Item{"": v})
	return string(text[len(`{"":`) : len(text)-1])
}
