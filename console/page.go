package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"
)

// page is the content of a page within the frame.
type page struct {
	title string // of the window, and the heading
	area  string // the entry of the navigation: a path
	above node   // beside the heading; may be nil
	body  []node

	status int    // of the answer; 0: 200
	live   string // path of a stream of events that replace elements by their ids; "": none
}

// pageError is an error with a text for the visitor.
type pageError struct {
	status int
	text   string
}

func (e *pageError) Error() string { return e.text }

// errNotMayfly is the reason for features that only mayfly's own paths have.
var errNotMayfly = &pageError{http.StatusNotFound, "Amazon's service has no such request: it is an addition of mayfly."}

// answer writes a page, or the page of an error.
func (p *pages) answer(ctx context.Context, w http.ResponseWriter, v *visit, shown *page, err error) {
	status := http.StatusOK
	if asksForKey(err) && p.Password == "" {
		err = errSignIn
	}
	if err != nil {
		shown, status = p.failed(err)
	} else if shown.status != 0 {
		status = shown.status
	}
	var b bytes.Buffer
	if v == nil || errors.Is(err, errSignIn) { // a stranger gets nothing of the endpoint, not even its name
		bare(shown).write(&b)
	} else {
		p.frame(ctx, v, shown).write(&b)
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="mayfly", charset="UTF-8"`)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error is the visitor's: the page was left
}

// bare returns a page without the frame, for which the endpoint is not asked.
func bare(shown *page) node {
	return document(el("html", has("lang", "en"),
		head(shown.title),
		el("body", el("main", has("id", "main"), el("h1", words(shown.title)), group(shown.body))),
	))
}

// asksForKey reports whether the endpoint refused a call for its signature.
func asksForKey(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationTokenException", "IncompleteSignatureException":
		return true
	}
	return false
}

// denied reports whether the endpoint refused a call because no policy allows it.
func denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "AccessDeniedException"
}

// failed returns the page of an error, and its status.
func (p *pages) failed(err error) (*page, int) {
	text, status := errorText(err)
	if status >= http.StatusInternalServerError {
		p.Logger.Warn("a page failed", "error", err)
	}
	return &page{title: "This did not work", body: []node{problem(text)}}, status
}

// errorText returns the text of an error for the visitor, and the status of its page.
func errorText(err error) (string, int) {
	var own *pageError
	var api smithy.APIError
	var sent *url.Error
	var lacking smithy.InvalidParamsError
	switch {
	case errors.As(err, &own):
		return own.text, own.status
	case errors.As(err, &api):
		text := api.ErrorCode() + ": " + api.ErrorMessage()
		var answered interface {
			error
			HTTPStatusCode() int
		}
		if !errors.As(err, &answered) || answered.HTTPStatusCode() < http.StatusInternalServerError {
			return text, statusOf(api)
		}
		if api.ErrorCode() == "UnknownError" {
			text = fmt.Sprintf("The endpoint answered with the status %d and no reason.", answered.HTTPStatusCode())
		}
		return text, http.StatusBadGateway
	case errors.As(err, &lacking):
		return "The request would lack a value: " + strings.TrimSpace(lacking.Error()), http.StatusBadRequest
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("The endpoint did not answer within %s. Load the page again; if that does not help, look at the endpoint's load and its log.", callMost), http.StatusGatewayTimeout
	case errors.As(err, &sent):
		return "The endpoint cannot be reached. Check that it runs, and that its address at the end of this page is right, then load the page again. The cause: " + sent.Error(), http.StatusBadGateway
	}
	return "The endpoint's answer cannot be shown: " + err.Error(), http.StatusBadGateway
}

// statusOf returns the status of a page for a refusal by the endpoint.
func statusOf(api smithy.APIError) int {
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		return http.StatusNotFound
	case "AccessDeniedException":
		return http.StatusForbidden
	}
	return http.StatusBadRequest
}

// with adds an error to a page, which may have the form that the visitor has to mend, and more
// after it. The page gets the error's status.
func (p *page) with(err error, more ...node) *page {
	text, status := errorText(err)
	p.body, p.status = append(append(p.body, problem(text)), more...), status
	return p
}

// problem shows an error.
func problem(text string) node {
	return el("p", has("class", "problem"), has("role", "alert"), words(text))
}

// missing shows that an endpoint lacks a feature, with the reason.
func missing(what string, err error) node {
	text, _ := errorText(err)
	return el("p", has("class", "missing"), words(what+" "), el("small", words(text)))
}

// lacks shows why a whole page is missing.
func lacks(reason string) node { return el("p", has("class", "missing"), words(reason)) }

// area is an entry of the navigation.
type area struct{ path, name, keys string }

// areas are the entries of the navigation, with the keys that go there.
var areas = []area{
	{root, "Now", "g n"},
	{below + "tables", "Tables", "g t"},
	{below + "partiql", "PartiQL", "g p"},
	{below + "schedules", "Schedules", "g s"},
	{below + "triggers", "Triggers", "g r"},
	{below + "reminders", "Reminders", "g m"},
	{below + "lifecycles", "Lifecycles", "g l"},
	{below + "deadletters", "Dead letters", "g d"},
	{below + "guard", "Guard", "g u"},
	{below + "clock", "Clock", "g c"},
}

// head returns the head of a page.
func head(title string) node {
	return el("head",
		el("meta", has("charset", "utf-8")),
		el("meta", has("name", "viewport"), has("content", "width=device-width, initial-scale=1")),
		el("meta", has("name", "color-scheme"), has("content", "light dark")),
		el("title", words(title+" · mayfly")),
		el("link", has("rel", "icon"), has("href", assetPath("icon.svg")), has("type", "image/svg+xml")),
		el("link", has("rel", "stylesheet"), has("href", assetPath("console.css"))),
		el("script", has("src", assetPath("console.js")), has("defer")),
	)
}

// frame returns a whole page.
func (p *pages) frame(ctx context.Context, v *visit, shown *page) node {
	now, lacks := v.clock(ctx), v.lacks(ctx)
	theme := ""
	if v.r != nil {
		theme = themeOf(v.r)
	}
	return document(el("html", has("lang", "en"), optional(theme != "", has("data-theme", theme)),
		head(shown.title),
		el("body",
			has("data-now", millis(now.now)), has("data-rate", strconv.FormatFloat(now.rate, 'g', -1, 64)),
			optional(shown.live != "", has("data-live", shown.live)),
			el("a", has("class", "skip"), has("href", "#main"), words("Skip to the content")),
			el("header",
				el("a", has("class", "brand"), has("href", root), el("img", has("src", assetPath("icon.svg")), has("alt", ""), has("width", "24"), has("height", "24")), words("mayfly")),
				el("nav", has("aria-label", "Areas"), el("ul", mapped(areas, func(a area) node {
					return el("li", link(a.path, a.name, a.path == shown.area, now.reason(a.path, lacks), has("data-keys", a.keys)))
				}))),
				now.shown(),
			),
			el("main", has("id", "main"), has("tabindex", "-1"),
				el("div", has("class", "heading"), el("h1", words(shown.title)), shown.above,
					optional(shown.live != "", el("button", has("type", "button"), has("data-pause"), words("Pause updates")))),
				group(shown.body),
			),
			el("footer",
				el("span", words(v.name())),
				el("span", words("Keys: "), el("kbd", words("?"))),
				v.themeLinks(),
			),
			helpDialog(),
		),
	))
}

// link is a link of a navigation. With a reason it is grey: the page that it leads to lacks
// something.
func link(path, name string, current bool, reason string, more ...node) node {
	return el("a", has("href", path), optional(current, has("aria-current", "page")),
		optional(reason != "", group{has("class", "lacking"), has("title", reason), el("span", has("class", "heard"), words(": "+reason))}),
		group(more), words(name))
}

// name returns the endpoint's name.
func (e *endpoint) name() string {
	if e.IsAWS() {
		return "Amazon DynamoDB in " + e.Config.Region
	}
	if region := e.regionShown(); region != "" {
		return e.visible + " in " + region
	}
	return e.visible
}

// regionShown returns the region if pages and samples must name it: at Amazon, and where a visitor
// has chosen another one than the usual.
func (e *endpoint) regionShown() string {
	if !e.IsAWS() && e.Config.Region == regionDefault {
		return ""
	}
	return e.Config.Region
}

// helpDialog lists the keys. The script opens it.
func helpDialog() node {
	row := func(keys, does string) node {
		return el("tr", el("td", el("kbd", words(keys))), el("td", words(does)))
	}
	rows := []node{row("/", "Search or filter"), row("j k", "Next and previous row"), row("Enter", "Open the row"), row("?", "These keys"), row("Esc", "Close")}
	for _, a := range areas {
		rows = append(rows, row(a.keys, a.name))
	}
	return el("dialog", has("id", "help"), has("aria-labelledby", "help-title"),
		el("h2", has("id", "help-title"), words("Keys")),
		el("table", el("tbody", rows...)),
		el("form", has("method", "dialog"), el("button", words("Close"))),
	)
}

// millis returns an instant in milliseconds since 1970, as the script reads it.
func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
