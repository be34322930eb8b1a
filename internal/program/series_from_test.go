package program

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/mayflydb/mayfly/internal/brokertest"
	"github.com/mayflydb/mayfly/internal/testkit"
	"github.com/mayflydb/mayfly/timeseries"
)

// messages is a broker with a stream or topic "readings".
type messages struct {
	from string               // its address, for --from
	env  []string             // what a command needs besides
	send func(texts [][]byte) // sends texts; the texts of a device stay in order
}

func natsMessages(t *testing.T) messages {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Username: "u", Password: "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	conn, err := nats.Connect(s.ClientURL(), nats.UserInfo("u", "hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err == nil {
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "readings", Subjects: []string{"readings.>"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return messages{strings.Replace(s.ClientURL(), "nats://", "nats://u:hunter2@", 1) + "/readings", nil, func(texts [][]byte) {
		for _, text := range texts {
			if _, err := js.PublishAsync("readings.x", text); err != nil {
				t.Fatal(err)
			}
		}
		<-js.PublishAsyncComplete()
	}}
}

func kafkaMessages(t *testing.T) messages {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(brokertest.Devices, "readings"), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("readings"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return messages{"kafka://" + c.ListenAddrs()[0] + "/readings", nil, func(texts [][]byte) {
		var records []*kgo.Record
		for i, text := range texts {
			records = append(records, &kgo.Record{Value: text, Partition: int32(i % brokertest.Devices)})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}}
}

func kinesisMessages(t *testing.T) messages {
	url := testkit.Kinesalite(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	api := kinesis.New(kinesis.Options{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""), BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport}})
	name := aws.String("readings")
	if _, err := api.CreateStream(t.Context(), &kinesis.CreateStreamInput{StreamName: name, ShardCount: aws.Int32(2)}); err != nil {
		t.Fatal(err)
	}
	brokertest.Await(t, "the stream", func() bool {
		out, err := api.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: name})
		return err == nil && out.StreamDescriptionSummary.StreamStatus == types.StreamStatusActive
	})
	env := []string{"AWS_ENDPOINT_URL_KINESIS=" + url, "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=us-east-1"}
	return messages{"kinesis://readings", env, func(texts [][]byte) {
		for len(texts) > 0 {
			var entries []types.PutRecordsRequestEntry
			for i, text := range texts[:min(len(texts), 300)] {
				entries = append(entries, types.PutRecordsRequestEntry{Data: text, PartitionKey: aws.String(fmt.Sprint("key-", i%brokertest.Devices))})
			}
			texts = texts[len(entries):]
			out, err := api.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamName: name, Records: entries})
			if err != nil || aws.ToInt32(out.FailedRecordCount) > 0 {
				t.Fatalf("%+v, %v", out, err)
			}
		}
	}}
}

// A command that reads a broker is killed repeatedly, and another then reads to the end. Each
// reading is stored once, although some were written and not yet acknowledged at a kill.
func TestSeriesFromKilled(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]func(*testing.T) messages{"nats": natsMessages, "kafka": kafkaMessages, "kinesis": kinesisMessages} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := broker(t)
			s, err := startServer(t.TempDir(), nil, "--memory", "--start", brokertest.Start.Add(48*time.Hour).Format(time.RFC3339))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.kill)
			api, _ := s.clients()
			series, err := timeseries.Create(t.Context(), api, timeseries.Spec{Table: "weather", Retention: 30 * 24 * time.Hour, Now: func() time.Time { return brokertest.Start.Add(48 * time.Hour) }})
			if err != nil {
				t.Fatal(err)
			}
			x := &ingestsFrom{t, m, s.url, t.TempDir(), 0}
			for range 3 {
				x.send(600)
				before := brokertest.Count(t, series)
				c, log := x.start()
				brokertest.Await(t, "a part: "+log.String(), func() bool { return brokertest.Count(t, series) > before })
				_ = c.Process.Kill()
				_ = c.Wait()
			}
			m.send([][]byte{[]byte("{broken")})
			x.send(30)
			report := x.run("--until-caught-up", "--json")
			if report.Rejected < 1 || report.Messages < 31 { // more where a lease was lost on a busy machine
				t.Errorf("the report is %+v", report)
			}
			brokertest.Want(t, series, x.sent)

			x.send(30)
			c, log := x.start()
			brokertest.Await(t, "the rest", func() bool { return brokertest.Count(t, series) == x.sent })
			_ = c.Process.Signal(syscall.SIGTERM)
			if err := c.Wait(); err != nil || !strings.Contains(log.String(), " samples written of ") {
				t.Errorf("stopped: %v\n%s", err, log.String())
			}
			if report := x.run("--until-caught-up", "--json"); report.Messages != 0 {
				t.Errorf("nothing is left, and the report is %+v", report)
			}
			brokertest.Want(t, series, x.sent)
			rejects, err := os.ReadFile(filepath.Join(x.dir, "readings.rejects"))
			if err != nil || !strings.Contains(string(rejects), `"text":"{broken"`) {
				t.Errorf("rejects are %q, %v", rejects, err)
			}
			if strings.Contains(log.String(), "hunter2") {
				t.Errorf("it tells the password: %s", log.String())
			}
		})
	}
}

// ingestsFrom runs the command.
type ingestsFrom struct {
	*testing.T
	messages
	url, dir string
	sent     int
}

// send sends the next readings.
func (x *ingestsFrom) send(n int) {
	x.Helper()
	var texts [][]byte
	for range n {
		texts = append(texts, brokertest.Reading(x.sent))
		x.sent++
	}
	x.messages.send(texts)
}

func (x *ingestsFrom) command(args ...string) *exec.Cmd {
	c := exec.Command("mayfly", append([]string{"series", "ingest", "weather", "--from", x.from, "--endpoint", x.url, "--lease", "1s"}, args...)...)
	c.Dir, c.Env = x.dir, append(os.Environ(), x.env...)
	return c
}

func (x *ingestsFrom) start() (*exec.Cmd, *buffer) {
	x.Helper()
	c := x.command()
	log := &buffer{}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = c.Process.Kill() })
	return c, log
}

func (x *ingestsFrom) run(args ...string) (report timeseries.Report) {
	x.Helper()
	c := x.command(args...)
	log := &buffer{}
	c.Stderr = log
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &report)
	}
	if err != nil {
		x.Fatalf("%v\n%s%s", err, out, log.String())
	}
	return report
}
