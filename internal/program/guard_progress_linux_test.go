package program

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sys/unix"
)

// openTerminal opens a terminal: output to device can be read from screen.
func openTerminal(t *testing.T) (screen, device *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals here:", err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("a terminal cannot be opened here:", err)
	}
	n, err := unix.IoctlGetUint32(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip("a terminal cannot be opened here:", err)
	}
	if device, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip("a terminal cannot be opened here:", err)
	}
	t.Cleanup(func() { device.Close() })
	return screen, device
}

// screenText collects what a terminal is sent.
type screenText struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (s *screenText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// textOf collects what a terminal is sent until it is closed.
func textOf(screen *os.File) *screenText {
	s := &screenText{}
	go func() {
		var page [4096]byte
		for {
			n, err := screen.Read(page[:])
			s.Write(page[:n])
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screenText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// On a terminal a scan that takes a while has a bar, which lines take the place of and which is gone at the end; NO_COLOR takes its colour away.
func TestGuardDrawsABar(t *testing.T) {
	t.Parallel()
	s, err := startServer(t.TempDir(), nil, "--memory", "--expiry", "aws")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	api, _ := s.clients()
	fillOrders(t, api, 200)
	for _, colour := range []bool{true, false} {
		t.Run(fmt.Sprint("colour ", colour), func(t *testing.T) {
			t.Parallel()
			screen, device := openTerminal(t)
			text := textOf(screen)
			command := exec.Command("mayfly", "guard", "--endpoint", s.url, "--table", "orders", "--attribute", "ttl", "--strategy", "scan", "--max-rcu", "2", "--alone")
			command.Stdout, command.Stderr = device, device
			for _, set := range os.Environ() {
				if !strings.HasPrefix(set, "NO_COLOR=") && !strings.HasPrefix(set, "TERM=") && !strings.HasPrefix(set, "MAYFLY_") {
					command.Env = append(command.Env, set)
				}
			}
			if command.Env = append(command.Env, "TERM=xterm"); !colour {
				command.Env = append(command.Env, "NO_COLOR=1")
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer command.Process.Kill()
			for limit := time.Now().Add(time.Minute); !strings.Contains(text.String(), " of about 200 items"); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatalf("there is no bar: %q", text.String())
				}
			}
			command.Process.Signal(syscall.SIGINT)
			if err := command.Wait(); err != nil {
				t.Fatal(err)
			}
			const wiped = "\r\x1b[2K"
			drawn := func(s string) bool { return strings.Contains(s[strings.LastIndex(s, wiped)+1:], " of about ") }
			for limit := time.Now().Add(time.Minute); drawn(text.String()); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatalf("the bar is left behind: %q", text.String())
				}
			}
			if has := strings.Contains(text.String(), "\x1b[32m"); has != colour {
				t.Errorf("it is coloured: %v: %q", has, text.String())
			}
		})
	}
}

// On 40 columns, a bar with a long text is its numbers alone, and becomes a bar again on 80.
func TestBarOnANarrowTerminal(t *testing.T) {
	for columns, want := range map[uint16]string{
		40: "\r\x1b[2Kscan, 40 of about 100 items, 20s left",
		80: "\r\x1b[2K" + strings.Repeat("█", 9) + strings.Repeat("░", 15) + " orders: scan, 40 of about 100 items, 20s left",
	} {
		screen, device := openTerminal(t)
		if err := unix.IoctlSetWinsize(int(device.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 20, Col: columns}); err != nil {
			t.Skip("a terminal cannot be resized here:", err)
		}
		text := textOf(screen)
		bar{terminal: device}.draw(40, 100, "orders: scan, 40 of about 100 items, 20s left")
		for limit := time.Now().Add(10 * time.Second); text.String() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%d columns show %q and not %q", columns, text.String(), want)
			}
		}
	}
}

// fillOrders makes a table of items of 4 KB, half a read unit each.
func fillOrders(t *testing.T, api *dynamodb.Client, items int) {
	t.Helper()
	_, err := api.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	for i := 0; i < items && err == nil; i++ {
		_, err = api.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
			"id": &types.AttributeValueMemberS{Value: fmt.Sprint(i)}, "pad": &types.AttributeValueMemberS{Value: strings.Repeat("x", 4000)},
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
}
