package service

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/engine"
)

// ListContributorInsights returns the enabled Contributor Insights settings of one table or of all, a
// page at a time: by table, and the table before its global indexes, by name.
//
// The order of checks: the shape; NextToken; the table's name and existence.
func (s *Service) ListContributorInsights(ctx context.Context, in *ListInsightsInput) (*ListInsightsOutput, error) {
	var sh shape
	sh.least("maxResults", in.Limit, 1)
	sh.most("maxResults", in.Limit, insightsPageMax)
	if err := sh.err(); err != nil {
		return nil, err
	}
	after, err := parseInsightsToken(in.Token)
	if err != nil {
		return nil, err
	}
	limit := int(in.Limit.Or(insightsPageMax))
	out := &ListInsightsOutput{}
	add := func(d *engine.TableDesc) {
		for _, x := range enabledInsights(d) {
			if x.place() > after && len(out.Summaries) <= limit {
				out.Summaries = append(out.Summaries, x)
			}
		}
	}
	if in.TableName.Set {
		ref, err := controlTable(in.TableName)
		if err != nil {
			return nil, err
		}
		_, d, err := s.describedTable(ref.name)
		if err != nil {
			return nil, apiError(err, ref.name)
		}
		add(d)
	} else if err := s.eachTable(ctx, func(d *engine.TableDesc) bool { add(d); return len(out.Summaries) <= limit }); err != nil {
		return nil, err
	}
	if len(out.Summaries) > limit {
		out.Summaries = out.Summaries[:limit]
		out.Token = base64.RawURLEncoding.EncodeToString([]byte(out.Summaries[limit-1].place()))
	}
	return out, nil
}

// eachTable calls do for each table, by name, until it returns false.
func (s *Service) eachTable(ctx context.Context, do func(*engine.TableDesc) bool) error {
	for start := ""; ; {
		names, more, err := s.engine.TableNames(namespace, start, listTablesMax)
		if err != nil {
			return apiError(err, "")
		}
		for _, name := range names {
			_, d, err := s.describedTable(name)
			if errors.Is(err, engine.ErrTableNotFound) || errors.Is(err, engine.ErrTableCreating) {
				continue
			}
			if err != nil {
				return apiError(err, name)
			}
			if !do(d) {
				return nil
			}
		}
		if !more || len(names) == 0 {
			return ctx.Err()
		}
		start = names[len(names)-1]
	}
}

// enabledInsights returns the enabled settings of a table and its indexes.
func enabledInsights(d *engine.TableDesc) (list []Insights) {
	if d.API.Insights.Since != 0 {
		list = append(list, describeInsights(d, "", &d.API.Insights))
	}
	for i := range d.Indexes {
		if ix := &d.Indexes[i]; ix.Insights.Since != 0 {
			list = append(list, describeInsights(d, ix.Name, &ix.Insights))
		}
	}
	slices.SortFunc(list, func(a, b Insights) int { return strings.Compare(a.IndexName, b.IndexName) })
	return list
}

// place orders the settings of all tables as they are listed. The separator sorts before every
// character of a name.
func (x Insights) place() string { return x.TableName + "\x00" + x.IndexName }

func parseInsightsToken(token Opt[string]) (string, error) {
	place, err := base64.RawURLEncoding.DecodeString(token.V)
	if err != nil || token.Set && !strings.Contains(string(place), "\x00") {
		return "", invalid("Invalid NextToken: it is not one that ListContributorInsights has returned")
	}
	return string(place), nil
}
