package guard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// project asks for no more than a deadline needs, and some attributes besides. names are those that the request has already.
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

// endOf is what a strategy returns: nothing once it was told to end.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
