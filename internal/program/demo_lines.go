package program

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mayflydb/mayfly/internal/demo"
)

// linesEvery is the interval between lines of progress.
const linesEvery = 5 * time.Second

// plainLines shows a run as plain text.
type plainLines struct {
	out  io.Writer
	next time.Duration
}

func (p *plainLines) begin(at stage) {
	fmt.Fprintf(p.out, "mayfly demo: %d real readings, with deadlines at whole %s over %s\n", at.items, at.unit, at.spread)
	fmt.Fprintf(p.out, "database %s (durable: acknowledged means on disk)\nendpoint %s\n", at.dir, at.endpoint)
}

func (p *plainLines) progress(r demo.Report, took time.Duration) {
	if took < p.next {
		return
	}
	p.next = took + linesEvery
	fmt.Fprintf(p.out, "%5.1fs  written %d  expired %d  records %d  lateness p50 %d ms p99 %d ms max %d ms  early %d\n",
		took.Seconds(), r.Written, r.Gone, r.Removes, r.P50MS, r.P99MS, r.MaxMS, r.Early)
}

func (p *plainLines) end(r demo.Report, took time.Duration) {
	fmt.Fprintln(p.out, summary(r, took))
}

// jsonLines shows a run as JSON lines.
type jsonLines struct {
	out  io.Writer
	next time.Duration
}

func (j *jsonLines) begin(at stage) {
	j.line(map[string]any{
		"event": "begin", "items": at.items, "spread_ms": at.spread.Milliseconds(), "deadline_unit": at.unit, "dir": at.dir, "endpoint": at.endpoint,
	})
}

func (j *jsonLines) progress(r demo.Report, took time.Duration) {
	if took < j.next {
		return
	}
	j.next = took + linesEvery
	j.report("progress", r, took)
}

func (j *jsonLines) end(r demo.Report, took time.Duration) { j.report("end", r, took) }

func (j *jsonLines) report(event string, r demo.Report, took time.Duration) {
	j.line(struct {
		Event  string `json:"event"`
		TookMS int64  `json:"took_ms"`
		demo.Report
		Broken []string `json:"broken"`
	}{event, took.Milliseconds(), r, append([]string{}, r.Broken()...)})
}

func (j *jsonLines) line(v any) {
	json.NewEncoder(j.out).Encode(v)
}

// summary returns the result in a few lines.
func summary(r demo.Report, took time.Duration) string {
	verdict := "every law held"
	if len(r.Broken()) > 0 {
		verdict = "A LAW WAS BROKEN"
	}
	return fmt.Sprintf(`%s after %.1f s
  items      %d written, %d read just before their deadlines,
             %d no longer found just after
  deadlines  at whole %s, at most %d at one instant
  records    %d insertions, %d removals by the service
  lateness   p50 %d ms, p99 %d ms, max %d ms, from the deadline to the record
  early %d  answered late %d  lost %d  twice %d  unmarked %d  altered %d  remaining %d`,
		verdict, took.Seconds(), r.Written, r.Before, r.Gone, r.Unit, r.AtOnce, r.Inserts, r.Removes, r.P50MS, r.P99MS, r.MaxMS,
		r.Early, r.Visible, r.Lost, r.Twice, r.Unmarked, r.Altered, r.Remaining)
}

// printTryIt prints commands for the endpoint.
func printTryIt(out io.Writer, endpoint string) {
	fmt.Fprintf(out, `
The endpoint %[1]s keeps running. Any DynamoDB client can use it, with any credentials. For example, an item for
five seconds (an AWS CLI before 2.13 needs --endpoint-url %[1]s):

  export AWS_ENDPOINT_URL=%[1]s AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
  aws dynamodb put-item --table-name readings --item '{"device":{"S":"mine"},"time":{"S":"now"},"expires_at":{"N":"'$(($(date +%%s)+5))'"}}'
  aws dynamodb scan --table-name readings

  curl -s %[1]s -H 'Content-Type: application/x-amz-json-1.0' -H 'X-Amz-Target: DynamoDB_20120810.Scan' -d '{"TableName":"readings"}'

  python3 -c "import boto3; print(boto3.client('dynamodb', endpoint_url='%[1]s', region_name='us-east-1').scan(TableName='readings')['Items'])"

Press Ctrl-C to stop it and remove its directory.
`, endpoint)
}
