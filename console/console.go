package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/mayflydb/mayfly/internal/clock"
	"github.com/mayflydb/mayfly/internal/front/browser"
)

// Options configure the pages of an endpoint.
type Options struct {
	// Config has the region, the HTTP client and the credentials of the endpoint. Without
	// credentials, visitors enter an access key if the endpoint asks for one.
	Config aws.Config

	// URL is the endpoint, without a slash at the end. Empty: Amazon's service.
	URL string

	// Password is the one that visitors must enter, with any user name. Empty: none is needed, and all
	// who reach the pages act with the credentials of Config.
	Password string

	// PlainPassword accepts the password from other machines without TLS, where others on the network
	// can read it.
	PlainPassword bool

	// Hosts are further names under which browsers may use the pages, as well as addresses and
	// localhost.
	Hosts []string

	// Logger receives the errors of pages. Default: none.
	Logger *slog.Logger
}

// Paths of the pages.
const (
	root  = "/_mayfly/"
	below = "/_mayfly/console/"
)

// pages serves the pages of one endpoint.
type pages struct {
	Options
	mux      *http.ServeMux
	machine  *clock.Clock
	secret   [32]byte     // of the tokens in forms; new with each start
	followed atomic.Int32 // pages that receive events
	lacking  lacking
	api      http.Handler // the server of this process, if that is the endpoint; or nil

	importing sync.Mutex // held by the one import that may run
}

// Handler returns a handler for the pages of an endpoint.
func Handler(o Options) http.Handler {
	rules := browser.Rules{Hosts: o.Hosts}
	p := newPages(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := rules.Check(r.Method, r.Host, r.Header); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		p.ServeHTTP(w, r)
	})
}

// regionDefault is the region unless a visitor names another.
const regionDefault = "us-east-1"

// New returns a handler for the pages of a server in this process, which answers requests with api.
// The caller decides which web pages may use it.
func New(api http.Handler) http.Handler {
	p := newPages(Options{Config: aws.Config{Region: regionDefault}, URL: "http://localhost"})
	p.api = api
	return p
}

func newPages(o Options) *pages {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Config.HTTPClient == nil {
		o.Config.HTTPClient = awshttp.NewBuildableClient() // so that all visits share its connections
	}
	p := &pages{Options: o, mux: http.NewServeMux(), machine: clock.New()}
	if _, err := rand.Read(p.secret[:]); err != nil {
		panic(err) // it never fails
	}
	p.route()
	return p
}

// enter goes to the first page. The address that mayfly console prints leads here, with the password
// in it: the absolute address of the first page has none, so that links from there have none either.
func (p *pages) enter(w http.ResponseWriter, r *http.Request) {
	if _, err := p.visit(r); err != nil {
		p.answer(r.Context(), w, nil, nil, err)
		return
	}
	http.Redirect(w, r, addressOf(r, "")+root, http.StatusFound)
}

// policy is the content security policy: scripts and styles are files of this server only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP implements http.Handler.
func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	p.mux.ServeHTTP(w, r)
}

// The refusals of visitors whom the browser is to ask for a user and a password.
var (
	errSignIn   = &pageError{http.StatusUnauthorized, "Enter an access key ID of this endpoint as the user, and its secret as the password."}
	errPassword = &pageError{http.StatusUnauthorized, "Enter the password that mayfly console printed when it started, with any user name."}
)

// errRegion refuses KEY/REGION without a key, or with a region that cannot exist.
var errRegion = &pageError{http.StatusUnauthorized, "Enter as the user an access key, or KEY/REGION with a region such as eu-west-1."}

// errPlainPassword refuses a password that others on the network could read.
var errPlainPassword = &pageError{http.StatusForbidden, "A password is accepted over TLS or from this machine only: others on the network could read it. Serve TLS, or open the page on the machine of the server."}

// visit is a request with the clients that act for its visitor.
type visit struct {
	*endpoint
	pages *pages
	r     *http.Request
	token string   // of forms
	read  *reading // of the endpoint's clock; nil: not yet
}

// visit returns the request's visit, or the reason why there is none.
func (p *pages) visit(r *http.Request) (*visit, error) {
	user, password, entered := r.BasicAuth()
	if password != "" && r.TLS == nil && !p.PlainPassword && !local(r.RemoteAddr) {
		return nil, errPlainPassword
	}
	if p.Password != "" {
		if subtle.ConstantTimeCompare([]byte(password), []byte(p.Password)) != 1 {
			if entered {
				p.Logger.Warn("a wrong password", "from", r.RemoteAddr)
			}
			return nil, errPassword
		}
		entered = false // the calls are made with the credentials of the options
	}
	if r.Method == http.MethodGet {
		_ = r.ParseForm() // a malformed part of the URL is left out; changes read their forms within limits
	}
	if !entered {
		user, password = "", ""
	}
	e, err := p.endpoint(user, password)
	if err != nil {
		return nil, err
	}
	v := &visit{pages: p, r: r, endpoint: e, token: p.tokenOf(user, password)}
	if p.api != nil {
		v.Config.HTTPClient, v.visible = inProcess{p.api, r.RemoteAddr, r.TLS}, addressOf(r, p.URL)
	}
	return v, nil
}

// local reports whether an address is of this machine.
func local(address string) bool {
	from, err := netip.ParseAddrPort(address)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// addressOf returns the URL under which the visitor's browser reaches this server. A request
// without a host has the standard one. The header of a proxy that serves TLS decides about this
// address only: a client that sends a false one changes only its own page, and no rule of access
// trusts it.
func addressOf(r *http.Request, standard string) string {
	switch {
	case r.Host == "":
		return standard
	case r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"):
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// tokenOf returns the token of a user's forms. It depends on the password too: not every page asks
// the endpoint whether the password is right, and the token of another user must stay unknown to
// all who know only the name.
func (p *pages) tokenOf(user, password string) string {
	mac := hmac.New(sha256.New, p.secret[:])
	mac.Write([]byte(strconv.Quote(user) + password))
	return hex.EncodeToString(mac.Sum(nil))
}

// errToken is the refusal of a form that does not come from a page of this server, or that is older
// than the server's last start.
var errToken = &pageError{http.StatusForbidden, "This form is not from this server, or is older than its last start. Open the page again, then repeat the change."}

// check reads the form, and returns errToken unless it or its URL has the visitor's token.
func (v *visit) check() error {
	if err := v.r.ParseForm(); err != nil {
		return formError(err)
	}
	if !v.hasToken(v.r.URL.Query().Get("token")) && !v.hasToken(v.r.PostFormValue("token")) {
		return errToken
	}
	return nil
}

func (v *visit) hasToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(v.token)) == 1
}

// formError returns the error of a form that cannot be read.
func formError(err error) error {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &pageError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The form is larger than %s. Nothing was written.", size(large.Limit))}
	}
	return &pageError{http.StatusBadRequest, "The form cannot be read: " + err.Error()}
}

// largeForm returns the attributes of a form that may be large and that goes to the URL of its page, or
// to a path. Its token is in the URL, so that it is checked before the form is read: the server holds
// so much for its visitors only.
func (v *visit) largeForm(path ...string) node {
	to, q := v.r.URL.Path, v.r.URL.Query()
	if len(path) == 1 {
		to, q = path[0], url.Values{}
	}
	q.Set("token", v.token)
	return group{has("method", "post"), has("action", (&url.URL{Path: to, RawQuery: q.Encode()}).String())}
}

// callMost is the longest time that a page waits for the endpoint.
const callMost = 20 * time.Second

// page returns a handler that serves the page of show.
func (p *pages) page(show func(context.Context, *visit) (*page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callMost)
		defer cancel()
		v, err := p.visit(r)
		var shown *page
		if err == nil {
			shown, err = show(ctx, v)
		}
		p.answer(ctx, w, v, shown, err)
	}
}

const (
	formMost = 64 << 10 // bytes of a form without a token in its URL
	bodyMost = 4 << 20  // of others: an item of 400 KB, as text in a form, and its key
)

// change returns a handler for a form. do makes the change and returns the page that shows it: a
// path to go to, or a page.
func (p *pages) change(do func(context.Context, *visit) (string, *page, error)) http.HandlerFunc {
	return p.changeUpTo(bodyMost, do)
}

// changeUpTo is change for a form of at most so many bytes.
func (p *pages) changeUpTo(most int64, do func(context.Context, *visit) (string, *page, error)) http.HandlerFunc {
	return p.changeWithin(callMost, most, do)
}

// changeWithin is changeUpTo for a change that may take so long.
func (p *pages) changeWithin(long time.Duration, most int64, do func(context.Context, *visit) (string, *page, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), long)
		defer cancel()
		v, err := p.visit(r)
		if err == nil {
			err = v.admit(ctx, w, most)
		}
		if r.MultipartForm != nil {
			defer func() { _ = r.MultipartForm.RemoveAll() }() // its files, if they were too large for memory
		}
		var to string
		var shown *page
		if err == nil {
			shown = v.unconfirmed()
		}
		if err == nil && shown == nil {
			to, shown, err = do(ctx, v)
		}
		if err == nil && to != "" {
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
		p.answer(ctx, w, v, shown, err)
	}
}

// admit limits the body of a form and checks its token. A large form is read only with a token in the
// URL and a key that the endpoint knows: a page with a token is shown to all.
func (v *visit) admit(ctx context.Context, w http.ResponseWriter, most int64) error {
	if !v.hasToken(v.r.URL.Query().Get("token")) {
		most = formMost
	} else if v.r.ContentLength < 0 || v.r.ContentLength > formMost {
		if _, err := v.DynamoDB().ListTables(ctx, listOne); asksForKey(err) {
			return err
		}
	}
	v.r.Body = http.MaxBytesReader(w, v.r.Body, most)
	return v.check()
}
