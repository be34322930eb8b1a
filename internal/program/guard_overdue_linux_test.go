package program

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// On a terminal guard shows the overdue items and asks. "no" leaves them; "yes" removes them, and
// guard does not ask again.
func TestGuardAsks(t *testing.T) {
	server, err := startServer(t.TempDir(), nil, "--memory", "--expiry", "aws", "--expiry-delay", "fixed:1000h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.kill)
	api := clientOf(server.url, "any", "any")
	makeExpiring(t, api, "people")
	for _, answer := range []string{"no", "yes", ""} {
		putExpired(t, api, "people", "ada", 48*time.Hour)
		screen, device := openTerminal(t)
		text := textOf(screen)
		says := func(what string) {
			t.Helper()
			for limit := time.Now().Add(time.Minute); !strings.Contains(text.String(), what); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatalf("it does not say %q: %q", what, text.String())
				}
			}
		}
		command := exec.Command("mayfly", "guard", "--endpoint", server.url, "--table", "people", "--alone", "--period", "1s")
		command.Stdin, command.Stdout, command.Stderr = device, device, device
		command.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		defer command.Process.Kill()
		if answer != "" {
			says(`{"id":{"S":"ada"}} overdue since `)
			says("Remove the overdue items of table people? [y/N] ")
			if _, err := screen.WriteString(answer + "\n"); err != nil {
				t.Fatal(err)
			}
		}
		if answer == "no" {
			if err := command.Wait(); command.ProcessState.ExitCode() != exitLimit || !there(t, api, "people") {
				t.Errorf("it ended with %v after no; the item is there: %v", err, there(t, api, "people"))
			}
			says("next: check that ")
			says("nothing was removed")
			continue
		}
		for limit := time.Now().Add(time.Minute); there(t, api, "people"); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("the item stays: %q", text.String())
			}
		}
		if strings.Contains(text.String(), "[y/N]") != (answer == "yes") {
			t.Errorf("after the answer %q it says %q", answer, text.String())
		}
		if err := command.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	}
}
