package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// project sets a projection of the attributes of a deadline, and some others. names are the
// request's attribute names so far.
func (g *Guard) project(expression **string, names map[string]string, besides ...string) {
	var parts []string
	add := func(attribute string) {
		if attribute == "" {
			return
		}
		name := fmt.Sprintf("#a%d", len(parts))
		for n, has := range names {
			if has == attribute {
				name = n
			}
		}
		if names[name] = attribute; !slices.Contains(parts, name) { // naming one twice is refused
			parts = append(parts, name)
		}
	}
	for _, attribute := range slices.Concat(g.table.names(), []string{g.o.Attribute, g.o.Version}, besides) {
		add(attribute)
	}
	*expression = aws.String(strings.Join(parts, ", "))
}

// endOf returns a strategy's error; nil once ctx is done.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
