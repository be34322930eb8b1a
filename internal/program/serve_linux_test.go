package program

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sys/unix"
)

// When the log can no longer be written the server does not go on pretending: it refuses the write and exits with an error. The disk
// is made to fail by taking the right to write files from the running process.
func TestStoreFailureEndsTheServer(t *testing.T) {
	s := serveDir(t, t.TempDir())
	api, _ := s.clients()
	if _, err := createEvents(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(s.command.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{}, nil); err != nil {
		t.Skip("the limits of another process cannot be changed here:", err)
	}
	_, err := api.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String("events"),
		Item:      map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "unkept"}},
	}, once)
	if err == nil {
		t.Error("a write that cannot be kept was acknowledged")
	}
	code, err := s.wait()
	if err != nil || code != "1" {
		t.Errorf("exited with %s, %v", code, err)
	}
	if log := s.logged(); !strings.Contains(log, "the store has stopped") || !strings.Contains(log, "next: check the disk") {
		t.Errorf("the reason is missing:\n%s", log)
	}
}

// awaitRead waits until the other end of a connection on this machine has read all data. A server
// that stops must answer the requests that it has read, but not those still in the kernel.
func awaitRead(t *testing.T, local net.Addr) {
	t.Helper()
	port := local.(*net.TCPAddr).Port
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Skip("what connections hold cannot be seen here:", err)
		}
		for line := range strings.SplitSeq(string(table), "\n") { // sl local_address rem_address st tx_queue:rx_queue …, see proc(5)
			fields := strings.Fields(line)
			if len(fields) > 4 && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) && strings.HasSuffix(fields[4], ":00000000") {
				return
			}
		}
	}
	t.Fatal("the server does not read")
}
