package console

import (
	"context"
	"net/http"
	"net/url"
)

// urlMost is the length of the longest URL that a page links to. The server takes heads of 16 KB, of
// which a browser's headers need some.
const urlMost = 12 << 10

// to returns a link, or a form that asks for the same page if its URL would be too long.
func (v *visit) to(path string, more ...node) node {
	if len(path) <= urlMost {
		return el("a", has("href", path), group(more))
	}
	u, err := url.Parse(path)
	if err != nil {
		return nil // it was made by urlWith
	}
	fields := group{v.tokenField()}
	for name, values := range u.Query() {
		for _, value := range values {
			fields = append(fields, el("input", has("type", "hidden"), has("name", name), has("value", value)))
		}
	}
	return el("form", has("class", "link"), has("method", "post"), has("action", u.Path), fields, el("button", group(more)))
}

// posted serves a page whose values come as a form, since its URL would be too long.
func (p *pages) posted(show http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), callMost)
		defer cancel()
		v, err := p.visit(r)
		if err == nil {
			err = v.admit(ctx, w, bodyMost)
		}
		if err != nil {
			p.answer(ctx, w, v, nil, err)
			return
		}
		values := r.PostForm
		values.Del("token")
		same := r.Clone(r.Context())
		same.Method, same.Body, same.Form, same.PostForm = http.MethodGet, http.NoBody, nil, nil
		same.URL.RawQuery = values.Encode()
		show(w, same)
	}
}
