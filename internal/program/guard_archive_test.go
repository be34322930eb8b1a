package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/timeseries"
	"github.com/mayflydb/mayfly/timeseries/archive"
)

// What guard removes of a series at an endpoint that is late is in Parquet files first, whenever guard is killed: each sample is in the archive once, as it was, and one that is in
// the table no longer is there already.
func TestGuardArchivesBeforeItRemoves(t *testing.T) {
	t.Parallel()
	s, err := startServer(t.TempDir(), nil, "--memory", "--shards", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	api, _ := s.clients()
	const retention, devices, each = 36 * time.Hour, 8, 150
	series, err := timeseries.Create(t.Context(), api, timeseries.Spec{
		// so that it accepts expired samples
		Table: "weather", Retention: retention, NoLatest: true, Now: func() time.Time { return time.Now().Add(-time.Hour) },
	})
	if err != nil {
		t.Fatal(err)
	}
	table, err := api.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("weather")})
	if err != nil {
		t.Fatal(err)
	}
	// a series expires exactly, despite the server's default
	_, err = api.TagResource(t.Context(), &dynamodb.TagResourceInput{
		ResourceArn: table.Table.TableArn, Tags: []types.Tag{{Key: aws.String("mayfly:expiry"), Value: aws.String("aws")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := series.Writer(t.Context(), timeseries.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	first := time.Now().Add(-30*time.Second - retention)
	var samples []timeseries.Sample
	for i := range devices * each {
		samples = append(samples, timeseries.Sample{
			Device: fmt.Sprint("device-", i%devices), Time: first.Add(time.Duration(i) * time.Millisecond), Values: map[string]float64{"temperature": float64(i)},
			Tags: map[string]string{"n": fmt.Sprint(i)},
		})
	}
	if err := w.Write(t.Context(), samples...); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		pages := dynamodb.NewScanPaginator(api, &dynamodb.ScanInput{TableName: aws.String("weather"), Select: types.SelectCount, ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n += int(page.Count)
		}
		return n
	}
	dir := filepath.Join(t.TempDir(), "expired")
	a := archive.New(archive.Dir(dir))
	archived := func() map[string]timeseries.Sample {
		all := map[string]timeseries.Sample{}
		for d := range devices {
			for s, err := range a.Range(t.Context(), timeseries.Query{Device: fmt.Sprint("device-", d)}) {
				if err != nil {
					t.Fatal(err)
				}
				if _, twice := all[s.Device+s.Key]; twice {
					t.Errorf("%s of %s is given twice", s.Key, s.Device)
				}
				all[s.Device+s.Key] = s
			}
		}
		return all
	}
	var guard *exec.Cmd
	log, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	startGuard := func() {
		guard = exec.Command("mayfly", "guard", "--endpoint", s.url, "--table", "weather", "--archive", "parquet:"+dir, "--archive-wait", "20ms", "--concurrency", "16", "--alone")
		guard.Stdout, guard.Stderr = log, log
		if err := guard.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ended := func() string {
		text, _ := os.ReadFile(log.Name())
		return string(text)
	}
	defer func() { guard.Process.Kill() }()
	for _, until := range []int{devices * each * 3 / 4, devices * each / 2, devices * each / 4} {
		startGuard()
		for limit := time.Now().Add(time.Minute); left() > until; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%d samples are left after a minute: %s", left(), ended())
			}
		}
		guard.Process.Kill() // as kill -9
		_ = guard.Wait()
		there := left()
		if n := len(archived()); n < devices*each-there {
			t.Fatalf("%d samples are archived, and %d are gone: %s", n, devices*each-there, ended())
		}
		t.Logf("killed when %d of %d samples were left", there, devices*each)
	}
	startGuard()
	for limit := time.Now().Add(time.Minute); left() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%d samples are left after a minute: %s", left(), ended())
		}
	}
	guard.Process.Signal(os.Interrupt)
	if err := guard.Wait(); err != nil {
		t.Errorf("guard ends with %v: %s", err, ended())
	}
	all := archived()
	if len(all) != devices*each {
		t.Errorf("%d samples are archived of %d", len(all), devices*each)
	}
	for _, s := range all {
		if n := s.Values["temperature"]; len(s.Values) != 1 || s.Tags["n"] != fmt.Sprint(n) || !s.Time.Equal(first.Add(time.Duration(n)*time.Millisecond)) {
			t.Fatalf("archived is %+v", s)
		}
	}
}
