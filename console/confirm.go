package console

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// questions are asked before changes that cannot be undone: by the path of the form and the value
// of its field "do". The script asks at once and then sets the field "confirmed". Without the script
// the server asks on a page of its own. The changes of several items have a preview, and the deletion
// of a table needs its name.
var questions = sync.OnceValue(func() map[string]map[string]string {
	return map[string]map[string]string{
		"table/{table}/item":           {"delete": "Delete this item?"},
		"table/{table}":                {"index-delete": "Delete this index?"},
		"schedules":                    {"delete": "Delete this schedule?"},
		"triggers":                     {"delete": "Delete this trigger?"},
		"deadletters":                  {"delete": "Delete the chosen dead letters?"},
		"lifecycle/{lifecycle}/entity": {"cancel": "End the lifecycle of this entity?"},
	}
})

// unconfirmed returns the page that asks before a change; nil: the change needs no question, or the
// visitor has confirmed it.
func (v *visit) unconfirmed() *page {
	f := v.r.PostForm
	question := questions()[strings.TrimPrefix(v.r.Pattern, http.MethodPost+" "+below)][f.Get("do")]
	if question == "" || f.Get("confirmed") != "" {
		return nil
	}
	fields := []node{has("method", "post"), v.tokenField()}
	shown := group{}
	for name, values := range f {
		if name == "token" {
			continue
		}
		for _, value := range values {
			fields = append(fields, el("input", has("type", "hidden"), has("name", name), has("value", value)))
			if slices.Contains([]string{"key", "index", "name", "uuid", "id"}, name) && value != "" {
				shown = append(shown, el("li", el("code", words(clip(value, 2*cellMost)))))
			}
		}
	}
	fields = append(fields,
		el("input", has("type", "hidden"), has("name", "confirmed"), has("value", "yes")),
		el("button", has("class", "danger"), words("Yes")), words(" "), el("a", has("href", v.r.URL.RequestURI()), words("No")))
	return &page{title: question, body: []node{el("ul", shown), el("p", words("This cannot be undone.")), el("form", fields...)}}
}
