package chrome

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// programs are the programs of Debian's Chromium packages, the preferred one first. The headless shell
// draws only pages, without tabs or menus, and needs a third of the CPU time.
var programs = []string{"chromium-headless-shell", "chromium"}

// program returns the path of Chromium, or "".
func program() string {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Browser is a running Chromium.
type Browser struct {
	ctx context.Context
	end func()
}

// Flag is a flag of Chromium without its dashes, with a value.
type Flag struct{ Name, Value string }

// start starts Chromium.
func start(flags ...Flag) (*Browser, error) {
	profile, err := os.MkdirTemp("", "mayfly-chromium-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program()),
		chromedp.NoSandbox, // it does not work for root, the user of CI; the pages are ours
		chromedp.DisableGPU,
		chromedp.UserDataDir(profile),
		// Without these features, a page takes a quarter of the time: Chromium does not keep the
		// previous page, and loads the next one into the same frame.
		chromedp.Flag("disable-features", "BackForwardCache,RenderDocument,PaintHolding,SpareRendererForSitePerProcess,Translate"),
		chromedp.Flag("accept-lang", "en-US,en"), // the headless shell sends no language, unlike a visitor's browser
	)
	for _, f := range flags {
		options = append(options, chromedp.Flag(f.Name, f.Value))
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, leave := chromedp.NewContext(ctx)
	b := &Browser{ctx, func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has ended
		leave()
		end()
		os.RemoveAll(profile) // the browser may still be writing, and leftovers are no failure
	}}
	if err := chromedp.Do(ctx); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// shared returns the Chromium of all tests of a package. It is nil unless the package's TestMain
// calls Main.
var shared func() (*Browser, error)

// Main runs the tests of a package with one shared Chromium, and returns the exit code for TestMain.
// Chromium starts with the first test that needs it.
func Main(m *testing.M) (code int) {
	var b *Browser
	shared = sync.OnceValues(func() (_ *Browser, err error) {
		b, err = start()
		return b, err
	})
	code = m.Run()
	if b != nil {
		b.end()
	}
	return code
}

// Start returns the shared Chromium of Main. If the test has flags, or TestMain does not call Main,
// Start starts another Chromium, which ends with the test. It skips the test if Chromium is missing.
func Start(t testing.TB, flags ...Flag) *Browser {
	t.Helper()
	if program() == "" {
		t.Skip("Chromium is not installed: it is Debian's package chromium-headless-shell or chromium")
	}
	if shared != nil && flags == nil {
		b, err := shared()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b, err := start(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.end)
	return b
}
