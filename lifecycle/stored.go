package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/mayflydb/mayfly/internal/constraint"
	"github.com/mayflydb/mayfly/internal/work/attr"
	"github.com/mayflydb/mayfly/internal/work/ensure"
	"github.com/mayflydb/mayfly/internal/work/items"
)

// each calls f for every entity of a lifecycle.
func (l *Lifecycles) each(ctx context.Context, lifecycle string, f func(*entity) error) error {
	found := items.Scan(ctx, l.o.DB, &dynamodb.ScanInput{
		TableName: aws.String(EntityTable(lifecycle)), FilterExpression: aws.String("#part = :entity"),
		ExpressionAttributeNames: map[string]string{"#part": attrPart}, ExpressionAttributeValues: Item{":entity": attr.S(partEntity)},
	})
	for it, err := range found {
		if err != nil {
			return err
		}
		if err := f(readEntity(it)); err != nil {
			return err
		}
	}
	return nil
}

// definition is a stored definition.
type definition struct {
	version int64 // from 1; 0: never stored
	text    string
	deleted bool // a deleted definition keeps a version, since calls may be under way
}

// load reads a definition. It returns ErrNoLifecycle if none was ever stored.
func (l *Lifecycles) load(ctx context.Context, name string) (d definition, err error) {
	it, err := items.Get(ctx, l.o.DB, TableName, Item{attrName: attr.S(name)})
	if ensure.Missing(err) || err == nil && it == nil {
		return d, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	if err != nil {
		return d, err
	}
	return definition{attr.Integer(it[attrVersion]), attr.String(it[attrText]), it[attrDeleted] != nil}, nil
}

// store writes a definition if the stored version is the one before.
func (l *Lifecycles) store(ctx context.Context, name string, d definition) error {
	it := Item{attrName: attr.S(name), attrVersion: attr.Int(d.version), attrText: attr.S(d.text)}
	if d.deleted {
		it[attrDeleted] = attr.Millis(l.now())
	}
	in := &dynamodb.PutItemInput{
		TableName: aws.String(TableName), Item: it, ConditionExpression: aws.String("attribute_not_exists(#v)"), ExpressionAttributeNames: map[string]string{"#v": attrVersion},
	}
	if d.version > 1 {
		in.ConditionExpression, in.ExpressionAttributeValues = aws.String("#v = :v"), Item{":v": attr.Int(d.version - 1)}
	}
	_, err := l.o.DB.PutItem(ctx, in)
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return fmt.Errorf("lifecycle %q was changed at the same time by another process; try again", name)
	}
	return err
}

// plan returns the compiled definition in the table. It returns ErrNoLifecycle if the definition
// does not exist or was deleted.
func (l *Lifecycles) plan(ctx context.Context, name string) (*plan, error) {
	p, err := l.planOf(ctx, name)
	if err == nil && p.deleted {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	return p, err
}

// planOf is like plan, and also returns a deleted definition.
func (l *Lifecycles) planOf(ctx context.Context, name string) (*plan, error) {
	if !constraint.IsName(name) {
		return nil, fmt.Errorf("%w: %q", ErrNoLifecycle, name)
	}
	stored, err := l.load(ctx, name)
	if err != nil {
		return nil, err
	}
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil && p.version == stored.version {
		return p, nil
	}
	// an unknown handler is reported when it is called
	d, err := Read(strings.NewReader(stored.text), nil)
	if err != nil {
		return nil, fmt.Errorf("lifecycle %q cannot be read from its table: %w", name, err)
	}
	if p, err = d.plan(nil); err != nil {
		return nil, err
	}
	p.version, p.deleted = stored.version, stored.deleted
	l.cachePlan(p)
	// a process without these handlers may have applied the definition
	if l.o.Streams != nil && !p.deleted {
		for _, f := range FaultsOf(d.Check(l.handler)) {
			l.o.Logger.Warn("calls will become dead letters", "lifecycle", name, "version", p.version, "problem", f.Error())
		}
	}
	return p, nil
}

// latest reads a definition again. A missing one counts as deleted.
func (l *Lifecycles) latest(ctx context.Context, p *plan) (*plan, error) {
	now, err := l.planOf(ctx, p.Name)
	if errors.Is(err, ErrNoLifecycle) {
		gone := *p
		gone.version, gone.deleted = 0, true
		return &gone, nil
	}
	return now, err
}

// cachedPlan returns the cached definition, and reads it if there is none.
func (l *Lifecycles) cachedPlan(ctx context.Context, name string) (*plan, error) {
	l.plans.Lock()
	p := l.plans.byName[name]
	l.plans.Unlock()
	if p != nil {
		return p, nil
	}
	return l.planOf(ctx, name)
}

func (l *Lifecycles) cachePlan(p *plan) {
	l.plans.Lock()
	defer l.plans.Unlock()
	l.plans.byName[p.Name] = p
}

// Definition returns the stored definition of a lifecycle and its version.
func (l *Lifecycles) Definition(ctx context.Context, name string) (Definition, int64, error) {
	p, err := l.plan(ctx, name)
	if err != nil {
		return Definition{}, 0, err
	}
	return p.Definition, p.version, nil
}

// Names returns the names of the stored lifecycles.
func (l *Lifecycles) Names(ctx context.Context) ([]string, error) { return l.names(ctx, false) }

// names is like Names. It includes deleted lifecycles if deleted is set.
func (l *Lifecycles) names(ctx context.Context, deleted bool) (names []string, err error) {
	found := items.Scan(ctx, l.o.DB, &dynamodb.ScanInput{
		TableName: aws.String(TableName), ProjectionExpression: aws.String("#name, #deleted"),
		ExpressionAttributeNames: map[string]string{"#name": attrName, "#deleted": attrDeleted},
	})
	for it, err := range found {
		if err != nil {
			return nil, err
		}
		if deleted || it[attrDeleted] == nil {
			names = append(names, attr.String(it[attrName]))
		}
	}
	slices.Sort(names)
	return names, nil
}
