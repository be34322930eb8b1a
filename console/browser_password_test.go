package console_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/console"
	"github.com/mayflydb/mayfly/internal/testkit/chrome"
)

// TestBrowserPassword: the address that mayfly console prints opens the pages, and what a visitor
// copies from them has no password.
func TestBrowserPassword(t *testing.T) {
	w := newWorld(t, "endpoint", mayfly.Options{})
	config := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}
	pages := serve(t, console.Handler(console.Options{Config: config, URL: strings.TrimSuffix(w.pages, "/_mayfly/"), Password: "wings"}))
	tab := chrome.Start(t).Open(t, chrome.Desk)
	tab.Go(strings.Replace(pages, "http://", "http://mayfly:wings@", 1) + "/")
	tab.WaitText("h1", "Now")
	tab.FollowText("Tables")
	tab.WaitText("h1", "Tables")
	if base, link := chrome.Eval[string](tab, "document.baseURI"), chrome.Eval[string](tab, "document.querySelector('nav a').href"); strings.Contains(base+link, "wings") {
		t.Errorf("the address %s or the link %s has the password", base, link)
	}
	tab.Forgive("401") // before the browser sends the password
}
