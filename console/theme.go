package console

import (
	"net/http"
	"net/url"
	"strings"
)

// themeCookie keeps the visitor's choice between light and dark. Without it the browser's setting
// counts. It is the only cookie.
const themeCookie = "mayfly-theme"

// themeOf returns "light", "dark" or "".
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// themeLinks returns the links that choose a theme and come back to the page.
func (v *visit) themeLinks() node {
	back, r := root, v.r
	if r != nil && r.Method == http.MethodGet {
		if back = r.URL.RequestURI(); len(back) > urlMost { // of a page that was posted
			back = r.URL.Path
		}
	}
	link := func(to, name string) node {
		return v.to(below+"theme?"+url.Values{"to": {to}, "back": {back}}.Encode(), words(name))
	}
	return el("span", has("class", "themes"), words("Theme: "), link("light", "light"), words(" "), link("dark", "dark"), words(" "), link("", "system"))
}

// setTheme stores the choice of a theme.
func setTheme(w http.ResponseWriter, r *http.Request) {
	c := &http.Cookie{Name: themeCookie, Path: root, SameSite: http.SameSiteStrictMode, HttpOnly: true, MaxAge: -1}
	if to := r.FormValue("to"); to == "light" || to == "dark" {
		c.Value, c.MaxAge = to, 365*24*3600
	}
	http.SetCookie(w, c)
	back, err := url.Parse(r.FormValue("back"))
	if err != nil || back.Scheme != "" || back.Host != "" || !isPage(back.Path) || strings.Contains(back.Path, "/..") {
		back = &url.URL{Path: root} // never to another site
	}
	http.Redirect(w, r, (&url.URL{Path: back.Path, RawQuery: back.RawQuery}).RequestURI(), http.StatusSeeOther)
}
