package testkit

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Browse opens a page in Chromium until it has loaded. It returns the document as it is then, and the
// browser's log. It skips the test if there is no Chromium.
func Browse(t *testing.T, url string, flags ...string) (document, log string) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: it is Debian's package of that name")
	}
	profile, err := os.MkdirTemp("", "mayfly-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(profile) // the browser may still be writing, and leftovers are no failure
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// The sandbox does not work for root, the user of CI; the pages are ours.
	args := []string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--no-first-run", "--enable-logging=stderr", "--user-data-dir=" + profile, "--dump-dom",
	}
	command := exec.CommandContext(ctx, chromium, append(append(args, flags...), url)...)
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr, command.WaitDelay = &out, &messages, 10*time.Second
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &messages)
	}
	return out.String(), messages.String()
}
