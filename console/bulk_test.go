package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/mayflydb/mayfly"
	"github.com/mayflydb/mayfly/internal/work/attr"
)

// several returns a site with so many items in the table "things", and their keys.
func several(t *testing.T, n int) (s *site, keys []string) {
	s = open(t, mayfly.Options{})
	s.table("things")
	s.expires("things", "ends")
	for i := range n {
		item := attr.Item{"id": attr.S(fmt.Sprintf("%02d", i)), "ends": attr.N("1893502800"), "x": attr.Int(i)}
		if i%4 == 3 {
			delete(item, "ends")
		}
		s.put("things", item)
		keys = append(keys, keyJSON(item, []string{"id"}))
	}
	return s, keys
}

// TestBulk: a change of several items has a preview, makes no change before it is confirmed, and
// then changes the chosen items only.
func TestBulk(t *testing.T) {
	for _, c := range []struct {
		form         url.Values
		text, result string
		failed       []string // items that the result names
		want         string   // of item 01
	}{
		{url.Values{"do": {"delete"}}, "Delete 3 items", "3 items changed", nil, ""},
		{url.Values{"do": {"set"}, "name": {"new <b>"}, "kind": {"N"}, "value": {"12345678901234567890123456789012345678"}}, "Set the attribute new <b> of 3 items to 12345678901234567890123456789012345678", "3 items changed", nil,
			`{"ends":{"N":"1893502800"},"id":{"S":"01"},"new <b>":{"N":"12345678901234567890123456789012345678"},"x":{"N":"1"}}`},
		{url.Values{"do": {"set"}, "name": {"x"}, "kind": {"B"}, "value": {"AAE="}}, "Set the attribute x of 3 items to AAE=", "3 items changed", nil, `{"ends":{"N":"1893502800"},"id":{"S":"01"},"x":{"B":"AAE="}}`},
		{url.Values{"do": {"remove"}, "name": {"x"}}, "Remove the attribute x from 3 items", "3 items changed", nil, `{"ends":{"N":"1893502800"},"id":{"S":"01"}}`},
		{url.Values{"do": {"renew"}, "by": {" 1h "}}, "Move the deadline of 3 items by 1h", "2 items changed, 1 not.", []string{"03"}, `{"ends":{"N":"1893506400"},"id":{"S":"01"},"x":{"N":"1"}}`},
		{url.Values{"do": {"renew"}, "by": {"-1m"}}, "Move the deadline of 3 items by -1m", "2 items changed, 1 not.", []string{"03"}, `{"ends":{"N":"1893502740"},"id":{"S":"01"},"x":{"N":"1"}}`},
		{url.Values{"do": {"set"}, "name": {"id"}, "kind": {"S"}, "value": {"other"}}, "Set the attribute id of 3 items to other", "0 items changed, 3 not.", []string{"00", "01", "03"}, `{"ends":{"N":"1893502800"},"id":{"S":"01"},"x":{"N":"1"}}`},
	} {
		s, keys := several(t, 5)
		form := url.Values{"key": {keys[0], keys[1], keys[3]}}
		for name, values := range c.form {
			form[name] = values
		}
		before := s.contents("things")
		preview := s.post("table/things/bulk", form).page(t, http.StatusOK)
		if !strings.Contains(preview.text(), c.text+"? Nothing has changed yet.") {
			t.Errorf("%v: the preview says %.600s", c.form, preview.text())
		}
		for _, key := range form["key"] {
			if !slices.Contains(preview.texts, key) {
				t.Errorf("%v: the preview does not name %s", c.form, key)
			}
		}
		if after := s.contents("things"); !slices.Equal(after, before) {
			t.Fatalf("%v: the preview changed\n%q to\n%q", c.form, before, after)
		}
		confirmed := url.Values{} // the form of the preview
		for _, one := range preview.all("input") {
			confirmed.Add(one.values["name"], one.values["value"])
		}
		var result markup
		if a := s.post("table/things/bulk", confirmed); len(c.failed) == 0 {
			result = s.followed(a)
		} else {
			result = a.page(t, http.StatusOK)
		}
		if !strings.Contains(result.text(), c.result) {
			t.Errorf("%v: the result is %.600s; want %q", c.form, result.text(), c.result)
		}
		for _, id := range c.failed {
			if !slices.Contains(result.texts, `{"id":{"S":"`+id+`"}}`) {
				t.Errorf("%v: the result does not name %s", c.form, id)
			}
		}
		after := s.contents("things")
		for _, line := range before {
			chosen := slices.ContainsFunc([]string{"00", "01", "03"}, func(id string) bool { return strings.Contains(line, `"id":{"S":"`+id+`"}`) })
			if !chosen && !slices.Contains(after, line) {
				t.Errorf("%v: %s was not chosen, and is gone from %q", c.form, line, after)
			}
		}
		if found := slices.ContainsFunc(after, func(line string) bool { return strings.Contains(line, `"id":{"S":"01"}`) }); found != (c.want != "") || found && !slices.Contains(after, c.want) {
			t.Errorf("%v: the items are %q; want %s", c.form, after, c.want)
		}
	}
}

// TestBulkRefused: wrong changes and too many items are refused before anything happens, confirmed
// or not; items that are gone stay gone.
func TestBulkRefused(t *testing.T) {
	s, keys := several(t, 3)
	before := s.contents("things")
	many := make([]string, bulkMost+1)
	for i := range many {
		many[i] = jsonText(attr.Item{"id": attr.S(fmt.Sprint("gone ", i))})
	}
	for _, c := range []struct {
		form url.Values
		text string
	}{
		{url.Values{"do": {"delete"}}, "Choose items first."}, {url.Values{"do": {"delete"}, "key": many}, "One change has at most 1000 items."},
		{url.Values{"do": {"renew"}, "by": {"soon"}, "key": keys}, `"soon" is not a time in whole seconds`}, {url.Values{"do": {"renew"}, "by": {"1ms"}, "key": keys}, "whole seconds"}, {url.Values{"do": {"renew"}, "key": keys}, "whole seconds"},
		{url.Values{"do": {"set"}, "kind": {"S"}, "value": {"1"}, "key": keys}, "Name the attribute."}, {url.Values{"do": {"remove"}, "key": keys}, "Name the attribute."},
		{url.Values{"do": {"set"}, "name": {"x"}, "kind": {"N"}, "value": {"one"}, "key": keys}, `The value of "x": "one" is not a number.`}, {url.Values{"do": {"set"}, "name": {"x"}, "kind": {"B"}, "value": {"?"}, "key": keys}, "is not base64"},
		{url.Values{"do": {"set"}, "name": {"x"}, "kind": {"BOOL"}, "value": {"yes"}, "key": keys}, "neither true nor false"}, {url.Values{"do": {"drop"}, "key": keys}, errChange.text},
	} {
		for _, confirmed := range []string{"", "yes"} {
			form := url.Values{"confirmed": {confirmed}}
			for name, values := range c.form {
				form[name] = values
			}
			if text := s.post("table/things/bulk", form).refused(t, http.StatusBadRequest); !strings.Contains(text, c.text) {
				t.Errorf("%q: %.500s", c.text, text)
			}
		}
	}
	most := s.post("table/things/bulk", url.Values{"do": {"delete"}, "key": many[1:]}).page(t, http.StatusOK)
	if !strings.Contains(most.text(), "Delete 1,000 items?") {
		t.Errorf("as many as allowed: %.500s", most.text())
	}
	if after := s.contents("things"); !slices.Equal(after, before) {
		t.Errorf("%q became %q", before, after)
	}
	gone := url.Values{"key": {`{"id":{"S":"gone"}}`}, "was": {""}, "confirmed": {"yes"}, "do": {"set"}, "name": {"x"}, "kind": {"S"}, "value": {"1"}}
	if text := s.post("table/things/bulk", gone).page(t, http.StatusOK).text(); !strings.Contains(text, "0 items changed, 1 not.") || !strings.Contains(text, errGone.text) {
		t.Errorf("items that are gone: %.600s", text)
	}
	if after := s.contents("things"); !slices.Equal(after, before) {
		t.Errorf("%q became %q", before, after)
	}
}

// TestBulkReload: the page of a change that failed in part can be reloaded. Changed items stay as
// they are, and each item has its reason.
func TestBulkReload(t *testing.T) {
	for _, c := range []struct {
		form          url.Values
		first, second string
		reasons       []string // after the reload, of the chosen items
	}{
		{url.Values{"do": {"renew"}, "by": {"1h"}}, "2 items changed, 1 not.", "0 items changed, 3 not.", []string{errPreview.text, errPreview.text, errDeadline.text}},
		{url.Values{"do": {"delete"}}, "2 items changed, 1 not.", "0 items changed, 3 not.", []string{errGone.text, errGone.text, errGone.text}},
		{url.Values{"do": {"set"}, "name": {"x"}, "kind": {"N"}, "value": {"7"}}, "2 items changed, 1 not.", "0 items changed, 3 not.", []string{errPreview.text, errPreview.text, errGone.text}},
	} {
		s, keys := several(t, 4)
		form := url.Values{"key": {keys[0], keys[1], keys[3]}}
		for name, values := range c.form {
			form[name] = values
		}
		confirmed := url.Values{}
		for _, one := range s.post("table/things/bulk", form).page(t, http.StatusOK).all("input") {
			confirmed.Add(one.values["name"], one.values["value"])
		}
		if c.form.Get("do") != "renew" { // the renewal of item 03 fails already, since it has no deadline
			s.delete("things", attr.Item{"id": attr.S("03")})
		}
		if text := s.post("table/things/bulk", confirmed).page(t, http.StatusOK).text(); !strings.Contains(text, c.first) {
			t.Errorf("%v: the result is %.600s", c.form, text)
		}
		after := s.contents("things")
		m := s.post("table/things/bulk", confirmed).page(t, http.StatusOK)
		if !strings.Contains(m.text(), c.second) {
			t.Errorf("%v: after a reload the result is %.600s", c.form, m.text())
		}
		var reasons []string
		for i, text := range m.texts {
			if slices.Contains(form["key"], text) {
				reasons = append(reasons, m.texts[i+1])
			}
		}
		if !slices.Equal(reasons, c.reasons) {
			t.Errorf("%v: after a reload the reasons are %q; want %q", c.form, reasons, c.reasons)
		}
		if again := s.contents("things"); !slices.Equal(again, after) {
			t.Errorf("%v: a reload changes\n%q to\n%q", c.form, after, again)
		}
	}
}
