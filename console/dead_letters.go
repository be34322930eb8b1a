package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/work/deliver"
)

const (
	lettersPage = 50
	bodyShown   = 4_000 // characters of a payload
)

// showDeadLetters lists deliveries that have failed for good.
func showDeadLetters(ctx context.Context, v *visit) (*page, error) {
	f := form{v.r.Form}
	all, next, err := deliver.ListDeadLetters(ctx, v.DynamoDB(), deliver.DeadLetterFilter{Target: f.get("target"), Source: f.get("source"), Code: f.get("code")}, lettersPage, f.get("from"))
	if errors.Is(err, deliver.ErrBadToken) {
		err = &pageError{http.StatusBadRequest, "The URL's page of dead letters is none: begin at the first page."}
	}
	if err != nil {
		return nil, err
	}
	rows := make([]node, len(all))
	for i, l := range all {
		rows[i] = el("tr",
			el("td", el("input", has("type", "checkbox"), has("name", "key"), has("value", l.ID), has("form", "bulk"), has("aria-label", "Select "+l.ID))),
			el("td", instant(l.When)), el("td", el("code", words(clip(l.Target, cellMost)))), el("td", el("code", words(clip(l.Source, cellMost)))),
			el("td", words(l.Code)), el("td", words(clip(l.Message, cellMost))), el("td", has("class", "number"), words(strconv.Itoa(l.Attempts))), el("td", payload(l.Body)),
		)
	}
	body := []node{
		el("form", has("class", "filter"), has("method", "get"),
			el("label", words("Target "), el("input", has("type", "search"), has("name", "target"), has("value", f.get("target")), has("data-search"), has("placeholder", "ARN, or its beginning and *"))),
			f.text("source", "Source", ""), f.text("code", "Code", ""), el("button", words("Filter")),
		),
		stacked([]string{"", "When", "Target", "Source", "Code", "Error", "Attempts", "Payload"}, rows, "There are no dead letters."),
		optionally(len(rows) > 0, func() node {
			return el("form", has("id", "bulk"), has("class", "filter"), has("method", "post"), v.tokenField(),
				el("label", el("input", has("type", "checkbox"), has("data-all")), words("all of this page")),
				el("button", has("name", "do"), has("value", "redrive"), words("Deliver again")),
				el("button", has("name", "do"), has("value", "delete"), has("class", "danger"), has("data-confirm", "Delete the chosen dead letters?"), words("Delete")),
			)
		}),
		el("p", el("small", words("A dead letter is a delivery that failed for good. It is kept for 14 days."))),
	}
	if next != "" {
		body = append(body, more(v.r.URL, url.Values{"from": {next}}))
	}
	return &page{title: "Dead letters", area: below + "deadletters", body: body}, nil
}

// payload shows the body of a delivery.
func payload(b []byte) node {
	if !utf8.Valid(b) {
		return binary(b)
	}
	return el("details", el("summary", words(size(int64(len(b))))), el("pre", el("code", words(clip(string(b), bodyShown)))))
}

// changeDeadLetters delivers dead letters again, or deletes them.
func changeDeadLetters(ctx context.Context, v *visit) (string, *page, error) {
	ids := v.r.PostForm["key"]
	if len(ids) == 0 || len(ids) > bulkMost {
		return "", nil, &pageError{http.StatusBadRequest, fmt.Sprintf("Choose 1 to %d dead letters.", bulkMost)}
	}
	var err error
	switch v.r.PostForm.Get("do") {
	case "redrive":
		_, err = deliver.RedriveDeadLetters(ctx, v.DynamoDB(), ids...)
	case "delete":
		_, err = deliver.DeleteDeadLetters(ctx, v.DynamoDB(), ids...)
	default:
		err = errChange
	}
	return below + "deadletters", nil, err
}
