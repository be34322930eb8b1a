package chrome

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Upload chooses files of this machine in a file field.
func (tab *Tab) Upload(selector string, paths ...string) {
	tab.t.Helper()
	there := wait(visible(bySelector(selector)), fmt.Sprintf("no visible field for %q takes files", selector))
	tab.Do(there, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		field, err := chromedp.Evaluate[*cdpruntime.RemoteObject](visible(bySelector(selector)))(ctx, t)
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, t, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: field.ObjectID})
		return err
	}))
}

// Download clicks the first visible link or button with a text. It returns the name and the contents
// of the file that the browser stores.
func (tab *Tab) Download(text string) (name, contents string) {
	tab.t.Helper()
	dir := tab.t.TempDir()
	tab.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		info, err := chromedp.Call(ctx, target.GetTargetInfo, target.GetTargetInfoParams{})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, BrowserContextID: info.TargetInfo.BrowserContextID,
		})
		return err
	}))
	tab.ClickText(text)
	tab.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for {
			files, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			if len(files) == 1 && !strings.HasPrefix(files[0].Name(), ".") && !strings.HasSuffix(files[0].Name(), ".crdownload") {
				name = files[0].Name()
				return nil
			}
			if _, late := chromedp.Sleep(50*time.Millisecond)(ctx, t); late != nil {
				return fmt.Errorf("no file was stored after a click on %q: %w", text, late)
			}
		}
	}))
	stored, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		tab.t.Fatal(err)
	}
	return name, string(stored)
}

// Paste replaces the text of a field by a text from the clipboard, which is faster than typing.
func (tab *Tab) Paste(selector, text string) {
	tab.t.Helper()
	tab.Do(selectText(selector), command(input.InsertText, input.InsertTextParams{Text: text}))
}

// Reload loads the page again.
func (tab *Tab) Reload() {
	tab.t.Helper()
	Eval[bool](tab, "window.old = true") // the library may return while the old page is still there
	tab.Do(chromedp.Reload())
	tab.Wait(`!window.old && document.readyState === "complete"`)
}

// Copied returns the text in the clipboard.
func (tab *Tab) Copied() string {
	tab.t.Helper()
	tab.Do(permit("clipboard-read"))
	return Eval[string](tab, "navigator.clipboard.readText()")
}

// permit grants pages a permission, such as clipboard-read, without asking the visitor.
func permit(name string) action {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		info, err := chromedp.Call(ctx, target.GetTargetInfo, target.GetTargetInfoParams{})
		if err != nil {
			return err
		}
		_, err = chromedp.Call(ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted, BrowserContextID: info.TargetInfo.BrowserContextID,
		})
		return err
	})
}
