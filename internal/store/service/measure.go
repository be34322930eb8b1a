package service

import (
	"context"
	"errors"
	"time"

	"github.com/mayflydb/mayfly/internal/points"
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
	"github.com/mayflydb/mayfly/internal/store/partiql"
)

// Measured is the series for the latency of a request that succeeded. The zero value has none.
type Measured struct {
	first *points.Series
	more  []*points.Series // of a request to several tables
}

// Took adds the time that the request took.
func (m Measured) Took(d time.Duration) {
	ms := float64(d) / float64(time.Millisecond)
	m.first.AddJust(ms)
	for _, s := range m.more {
		s.AddJust(ms)
	}
}

// Measure counts the outcome of an operation in the points of the tables that it names. It returns
// the series for the latency. CloudWatch has the same metrics; see docs/cloudwatch.md.
func (s *Service) Measure(operation string, in, out any, err error) (m Measured) {
	s.noteChange(in)
	if err != nil {
		s.measureError(operation, in, err)
		return m
	}
	switch in := in.(type) {
	case *GetItemInput:
		m.first = s.latency(in.TableName.V, operation)
	case *WriteInput:
		m.first = s.latency(in.TableName.V, operation)
	case *QueryInput:
		m.first = s.latency(in.TableName.V, operation)
		s.returned(in.TableName.V, operation, out)
	case *ScanInput:
		m.first = s.latency(in.TableName.V, operation)
		s.returned(in.TableName.V, operation, out)
	case *ExecuteStatementInput:
		if st := in.parsed; st != nil {
			m.first = s.latency(st.Table, operation)
		}
		s.returnedByStatement(in, operation, out)
	default:
		for _, table := range namedTables(in) {
			m.more = append(m.more, s.latency(table, operation))
		}
	}
	return m
}

func (s *Service) latency(table, operation string) *points.Series {
	return s.pointsOf(table).Get(points.Latency, operation)
}

// returned counts the items of a page.
func (s *Service) returned(table, operation string, out any) {
	if page, ok := out.(*PageOutput); ok {
		s.pointsOf(table).Get(points.ReturnedItems, operation).Add(float64(page.Count))
	}
}

// returnedByStatement counts the items of a page of a SELECT.
func (s *Service) returnedByStatement(in *ExecuteStatementInput, operation string, out any) {
	page, ok := out.(*ExecuteStatementOutput)
	if st := in.parsed; ok && st != nil && st.Verb == partiql.Select {
		s.pointsOf(st.Table).Get(points.ReturnedItems, operation).Add(float64(len(page.Items)))
	}
}

// pointsOf returns the series of a table that a request names, or nil.
func (s *Service) pointsOf(given string) *points.Set {
	name := given
	if isARN(given) {
		ref, err := (tableRef{given, given}).resolve()
		if err != nil {
			return nil
		}
		name = ref.name
	}
	if u := s.engine.UnitsOf(namespace, name); u != nil {
		return u.Points
	}
	return nil
}

// namedTables returns the tables that a request to several names, each once.
func namedTables(in any) (tables []string) {
	seen := map[string]bool{}
	add := func(table string) {
		if table != "" && !seen[table] {
			seen[table] = true
			tables = append(tables, table)
		}
	}
	switch in := in.(type) {
	case *BatchGetItemInput:
		for i := range in.RequestItems {
			add(in.RequestItems[i].Table)
		}
	case *BatchWriteItemInput:
		for i := range in.RequestItems {
			add(in.RequestItems[i].Table)
		}
	case *TransactGetItemsInput, *TransactWriteItemsInput, *ExecuteTransactionInput:
		for _, table := range actionTables(in) {
			add(table)
		}
	case *ExecuteStatementInput:
		add(in.table())
	case *BatchExecuteStatementInput:
		for i := range in.Statements {
			add(in.Statements[i].table())
		}
	}
	return tables
}

// ActionTables returns the table of each action of a transaction, "" where it names none; nil: the
// request is no transaction.
func ActionTables(in any) []string {
	if in, ok := in.(*ExecuteTransactionInput); ok {
		for i := range in.Statements {
			_, _ = in.Statements[i].parse() // a malformed one names no table
		}
	}
	return actionTables(in)
}

// actionTables returns the table of each action of a transaction.
func actionTables(in any) (tables []string) {
	switch in := in.(type) {
	case *TransactGetItemsInput:
		for i := range in.Items {
			tables = append(tables, in.Items[i].TableName.V)
		}
	case *TransactWriteItemsInput:
		for i := range in.Items {
			tables = append(tables, in.Items[i].table())
		}
	case *ExecuteTransactionInput:
		for i := range in.Statements {
			tables = append(tables, in.Statements[i].table())
		}
	}
	return tables
}

// table returns the table that the action names, or "".
func (a *TransactAction) table() string {
	for _, w := range []*WriteInput{a.Check, a.Put, a.Update, a.Delete} {
		if w != nil {
			return w.TableName.V
		}
	}
	return ""
}

// table returns the table that the statement names, or "" if it is malformed.
func (in *StatementInput) table() string {
	if in.parsed == nil {
		return ""
	}
	return in.parsed.Table
}

// measureError counts an operation's error. The units count what throttling refuses of a table or an
// index, and the caller of the operation the errors of clients.
func (s *Service) measureError(operation string, in any, err error) {
	tables := namedTables(in)
	switch in := in.(type) {
	case *GetItemInput:
		tables = []string{in.TableName.V}
	case *WriteInput:
		tables = []string{in.TableName.V}
	case *QueryInput:
		tables = []string{in.TableName.V}
	case *ScanInput:
		tables = []string{in.TableName.V}
	}
	answer, known := errors.AsType[*dynamo.Error](err)
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded): // the client has gone, or the server stops
	case !known || answer.Code == dynamo.CodeInternal:
		s.countError(tables, points.SystemErrors, operation)
	case answer.Code == dynamo.CodeConditionalCheckFailed:
		s.countError(tables, points.ConditionsFailed, "")
	case answer.Code == dynamo.CodeTransactionConflict:
		s.countError(tables, points.Conflicts, "")
	case answer.Code == dynamo.CodeTransactionCanceled:
		s.measureReasons(operation, in, answer.Reasons)
	case IsThrottling(string(answer.Code)):
		s.countError(tables, points.Throttled, operation)
	}
}

// IsThrottling reports whether an error's code is of throttling, which counts in ThrottledRequests
// and not in UserErrors.
func IsThrottling(code string) bool {
	switch dynamo.Code(code) {
	case dynamo.CodeThrottling, dynamo.CodeThroughputExceeded, dynamo.CodeRequestLimitExceeded:
		return true
	default:
		return false
	}
}

func (s *Service) countError(tables []string, metric, operation string) {
	for _, table := range tables {
		s.pointsOf(table).Get(metric, operation).Add(1)
	}
}

// measureReasons counts the reasons of a cancelled transaction, each for the table of its action. A
// request counts once as throttled for a table.
func (s *Service) measureReasons(operation string, in any, reasons []dynamo.Reason) {
	tables := actionTables(in)
	throttled := map[string]bool{}
	for i, r := range reasons {
		if i == len(tables) {
			return
		}
		switch r.Code {
		case reasonCondition:
			s.countError(tables[i:i+1], points.ConditionsFailed, "")
		case "TransactionConflict":
			s.countError(tables[i:i+1], points.Conflicts, "")
		case reasonThroughput, reasonThrottling:
			if !throttled[tables[i]] {
				s.countError(tables[i:i+1], points.Throttled, operation)
			}
			throttled[tables[i]] = true
		}
	}
}

// countRecords counts the records of an answer to GetRecords, if it has some. Feeds do not count.
func (s *Service) countRecords(d *engine.StreamDesc, records []StreamRecord) {
	if len(records) == 0 || d.Feed() {
		return
	}
	series := func(metric string) *points.Series {
		return s.engine.Points().Series(points.Key{
			Namespace: points.DynamoDB, Metric: metric, Table: d.Table, Operation: "GetRecords", Stream: d.Label,
		})
	}
	var bytes int64
	for i := range records {
		bytes += records[i].SizeBytes
	}
	series(points.ReturnedRecords).Add(float64(len(records)))
	series(points.ReturnedBytes).Add(float64(bytes))
}
