package program

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mayflydb/mayfly/internal/when"
	"github.com/mayflydb/mayfly/internal/work/deliver"
)

type deadletterShowCommand struct {
	ID   string `arg:"" help:"ID of the dead letter."`
	Body bool   `help:"Print only the body for the target, byte for byte."`
	JSON bool   `name:"json" help:"Print it as JSON."`
	endpointFlags
}

func (deadletterShowCommand) Help() string {
	return `Examples:

    mayfly deadletter show 0f3c6f6f7b1d4b6a8a3f1c2d3e4f5a6b
    mayfly deadletter show 0f3c6f6f7b1d4b6a8a3f1c2d3e4f5a6b --body > body.json`
}

// Run shows a dead letter.
func (c deadletterShowCommand) Run(ctx context.Context, s streams) error {
	e, err := c.connect(ctx, serviceDynamoDB)
	if err != nil {
		return err
	}
	l, found, err := deliver.GetDeadLetter(ctx, e.DynamoDB(), c.ID)
	switch {
	case err != nil:
		return e.advise(err)
	case !found:
		return advise(fmt.Errorf("dead letter %s not found", c.ID), "mayfly deadletter list")
	case c.Body:
		_, err := s.out.Write(l.Body)
		return err
	case c.JSON:
		return writeJSON(s.out, letterJSON(l))
	}
	var lines list
	lines.add("ID", l.ID)
	lines.add("when", when.UTC(l.When))
	lines.add("target", l.Target)
	lines.add("source", l.Source)
	lines.add("group", l.Group)
	lines.add("code", l.Code)
	lines.add("message", l.Message)
	lines.add("attempts", fmt.Sprint(l.Attempts))
	for _, name := range slices.Sorted(maps.Keys(l.Attributes)) {
		lines.add(name, l.Attributes[name])
	}
	lines.add("body", bodyText(l.Body))
	return lines.write(s.out)
}

func bodyText(body []byte) string {
	if utf8.Valid(body) {
		return string(body)
	}
	return fmt.Sprintf("%d bytes of binary data; --body prints them", len(body))
}

// letterJSON returns the JSON form of a dead letter. A JSON body is embedded unchanged, text
// becomes a string, and other bytes are in base64.
func letterJSON(l deliver.DeadLetter) any {
	line := struct {
		ID         string            `json:"id"`
		When       wireTime          `json:"when"`
		Target     string            `json:"target"`
		Source     string            `json:"source"`
		Group      string            `json:"group,omitempty"`
		Code       string            `json:"code"`
		Message    string            `json:"message"`
		Attempts   int               `json:"attempts"`
		Attributes map[string]string `json:"attributes,omitempty"`
		JSON       json.RawMessage   `json:"json,omitempty"`
		Text       *string           `json:"text,omitempty"`
		Base64     []byte            `json:"base64,omitempty"`
	}{ID: l.ID, When: wireTime(l.When.UTC().Truncate(time.Millisecond)), Target: l.Target, Source: l.Source, Group: l.Group, Code: l.Code,
		Message: l.Message, Attempts: l.Attempts, Attributes: l.Attributes}
	switch text := string(l.Body); {
	case json.Valid(l.Body):
		line.JSON = l.Body
	case utf8.Valid(l.Body):
		line.Text = &text
	default:
		line.Base64 = l.Body
	}
	return line
}
