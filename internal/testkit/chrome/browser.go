package chrome

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// programs are Debian's packages of Chromium. The first has no windows and nothing of what is around
// a page. So its pages take a third of the processor's time.
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
		// It keeps no page that was left, and takes the next page into the same frame: a quarter of the time of a page.
		chromedp.Flag("disable-features", "BackForwardCache,RenderDocument,PaintHolding,SpareRendererForSitePerProcess,Translate"),
		chromedp.Flag("accept-lang", "en-US,en"), // the first program has none by itself, unlike each visitor's browser
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

// Main runs the tests of a package with one Chromium, which starts with the first test that needs it.
// TestMain calls it.
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

// Start returns Main's Chromium, or starts one until the end of the test: where there is no Main, or
// if the test wants flags. It skips the test if Chromium is not installed.
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
