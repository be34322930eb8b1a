package program

import (
	"context"
	"errors"
	"net/url"

	"github.com/mayflydb/mayfly/internal/sdk/mappings"
)

// lambdaClient calls the Lambda API for event source mappings.
type lambdaClient struct{ *mappings.Client }

func (e *endpoint) lambda() *lambdaClient { return &lambdaClient{mappings.New(e.Scheduler())} }

func (c *lambdaClient) create(ctx context.Context, m *mapping) (*mapping, error) {
	out := &mapping{}
	return out, c.Create(ctx, m, out)
}

func (c *lambdaClient) get(ctx context.Context, uuid string) (*mapping, error) {
	out := &mapping{}
	return out, adviseUUID(c.Get(ctx, uuid, out))
}

func (c *lambdaClient) update(ctx context.Context, uuid string, m *mapping) (*mapping, error) {
	out := &mapping{}
	return out, adviseUUID(c.Update(ctx, uuid, m, out))
}

func (c *lambdaClient) delete(ctx context.Context, uuid string) error {
	return adviseUUID(c.Delete(ctx, uuid, &mapping{}))
}

// list returns a page. The query may have the parameters EventSourceArn, FunctionName and Marker.
func (c *lambdaClient) list(ctx context.Context, query url.Values) (*mappingPage, error) {
	page := &mappingPage{}
	return page, c.List(ctx, query, page)
}

// adviseUUID says what to do about an empty UUID.
func adviseUUID(err error) error {
	if errors.Is(err, mappings.ErrNoUUID) {
		return misused(err, "mayfly trigger list")
	}
	return err
}
