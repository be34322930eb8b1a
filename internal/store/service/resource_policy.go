package service

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/engine"
)

const (
	policySizeMax        = 20 << 10 // bytes, with white space
	resourceARNLengthMax = 1283
	revisionIDLengthMax  = 255

	// noPolicy is the ExpectedRevisionId that expects a resource without a policy.
	noPolicy = "NO_POLICY"

	msgPolicyNotFound = "Resource-based policy not found for the provided ResourceArn: "
)

// PutResourcePolicy sets the resource policy of a table or stream. The same text again changes
// nothing, and keeps the revision.
//
// The order of checks: the shape; the ARN's form; the policy's size, then its document; the existence of
// the table or stream; the expected revision.
func (s *Service) PutResourcePolicy(ctx context.Context, in *PutResourcePolicyInput) (*RevisionOutput, error) {
	var sh shape
	sh.policyResource(in.ARN, in.Expected)
	sh.Required("policy", in.Policy.Text.Set)
	if err := sh.err(); err != nil {
		return nil, err
	}
	owner, err := parsePolicyOwner(in.ARN.V)
	if err != nil {
		return nil, err
	}
	if err := checkPolicy(in.Policy); err != nil {
		return nil, err
	}
	p, err := s.changePolicy(ctx, owner, func(p *engine.ResourcePolicy) error {
		if in.Expected.V != noPolicy || p.Text != "" {
			if err := owner.expect(in.Expected, *p); err != nil {
				return err
			}
		}
		p.Text = in.Policy.Text.V
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &RevisionOutput{RevisionID: revisionID(p)}, nil
}

// GetResourcePolicy returns the resource policy of a table or stream.
//
// The order of checks: the shape; the ARN's form; the existence of the table or stream, then of a policy.
func (s *Service) GetResourcePolicy(_ context.Context, in *ResourcePolicyInput) (*GetResourcePolicyOutput, error) {
	var sh shape
	sh.policyResource(in.ARN, Opt[string]{})
	if err := sh.err(); err != nil {
		return nil, err
	}
	owner, err := parsePolicyOwner(in.ARN.V)
	if err != nil {
		return nil, err
	}
	p, err := s.policyOf(owner)
	if err != nil {
		return nil, owner.apiError(err)
	}
	if p.Text == "" {
		return nil, policyNotFound(owner.arn)
	}
	return &GetResourcePolicyOutput{Policy: p.Text, RevisionID: revisionID(p)}, nil
}

// DeleteResourcePolicy removes the resource policy of a table or stream, and returns its revision.
// It accepts that there is none, unless the request expects a revision.
//
// The order of checks: the shape; the ARN's form; the existence of the table or stream; the expected
// revision.
func (s *Service) DeleteResourcePolicy(ctx context.Context, in *ResourcePolicyInput) (*RevisionOutput, error) {
	var sh shape
	sh.policyResource(in.ARN, in.Expected)
	if err := sh.err(); err != nil {
		return nil, err
	}
	owner, err := parsePolicyOwner(in.ARN.V)
	if err != nil {
		return nil, err
	}
	out := &RevisionOutput{}
	_, err = s.changePolicy(ctx, owner, func(p *engine.ResourcePolicy) error {
		if err := owner.expect(in.Expected, *p); err != nil {
			return err
		}
		out.RevisionID = revisionID(*p)
		p.Text = ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ResourcePolicy returns the resource policy that decides about requests for a resource, and its
// revision: for the ARN of a table or index the table's policy, for the ARN of a stream its own.
// The text is empty if there is none, if the ARN names nothing, and if the engine has failed; then
// the request itself fails too. ResourcePolicy is quick enough to be called for each request.
func (s *Service) ResourcePolicy(arn string) (text, revision string) {
	arn, _, _ = strings.Cut(arn, "/index/")
	var owner policyOwner
	if table, ok := strings.CutPrefix(arn, s.tables); ok && !strings.Contains(table, "/") {
		owner = policyOwner{arn: arn, table: table} // the common case, without splitting
	} else {
		var err error
		if owner, err = parsePolicyOwner(arn); err != nil {
			return "", ""
		}
	}
	p, err := s.policyOf(owner)
	if err != nil || p.Text == "" {
		return "", ""
	}
	return p.Text, revisionID(p)
}

// policyOwner is a table or stream, which may have a resource policy.
type policyOwner struct {
	arn   string
	table string
	label string // of the stream; empty: the table itself
}

// parsePolicyOwner returns the table or stream that an ARN names. Neither needs to exist.
func parsePolicyOwner(arn string) (policyOwner, error) {
	name, err := resourceName(arn)
	if err != nil {
		return policyOwner{}, err
	}
	table, label, isStream := strings.Cut(name, "/stream/")
	if table == "" || strings.Contains(table, "/") || isStream && label == "" || strings.Contains(label, "/") {
		return policyOwner{}, notResource(arn)
	}
	return policyOwner{arn: arn, table: table, label: label}, nil
}

// apiError is [apiError] with the message for a missing stream that names stream and table.
func (o policyOwner) apiError(err error) error {
	if errors.Is(err, engine.ErrStreamNotFound) {
		return notFound(": Stream: " + o.label + " not found for Table: " + o.table)
	}
	return apiError(err, o.table)
}

// expect returns an error if the present policy has another revision than the request expects.
func (o policyOwner) expect(expected Opt[string], p engine.ResourcePolicy) error {
	switch {
	case !expected.Set || expected.V == revisionID(p): // no request expects an empty revision
		return nil
	case p.Text == "":
		return policyNotFound(o.arn)
	case expected.V == noPolicy:
		return policyNotFound("Requested policy update expecting none to be present for table " + o.table +
			", but a policy exists with revision id " + revisionID(p) + ".")
	default:
		return policyNotFound("Requested update for policy with revision id " + expected.V +
			", but the policy associated to target table " + o.table + " has revision id " + revisionID(p) + ".")
	}
}

func policyNotFound(detail string) error {
	return &dynamo.Error{Code: dynamo.CodePolicyNotFound, Message: msgPolicyNotFound + detail}
}

// policyOf returns an owner's policy, once it is durable.
func (s *Service) policyOf(o policyOwner) (engine.ResourcePolicy, error) {
	if o.label != "" {
		d, err := s.engine.StreamByLabel(namespace, o.table, o.label)
		if err != nil {
			return engine.ResourcePolicy{}, err
		}
		return d.Policy, nil
	}
	_, d, err := s.describedTable(o.table)
	if err != nil {
		return engine.ResourcePolicy{}, err
	}
	return d.API.Policy, nil
}

// changePolicy changes an owner's policy and returns the new one.
func (s *Service) changePolicy(ctx context.Context, o policyOwner, change func(*engine.ResourcePolicy) error) (engine.ResourcePolicy, error) {
	if o.label != "" {
		p, err := s.engine.SetStreamPolicy(ctx, namespace, o.table, o.label, change)
		return p, o.apiError(err)
	}
	d, err := s.engine.Alter(ctx, namespace, o.table, func(d *engine.TableDesc, _ engine.Instant) error {
		return change(&d.API.Policy)
	})
	if err != nil {
		return engine.ResourcePolicy{}, o.apiError(err)
	}
	return d.API.Policy, nil
}

// revisionID returns the revision of a policy as the API shows it; empty for none.
func revisionID(p engine.ResourcePolicy) string {
	if p.Text == "" {
		return ""
	}
	return strconv.FormatInt(int64(p.Revision), 10)
}

func (s *shape) policyResource(arn, expected Opt[string]) {
	s.Required("resourceArn", arn.Set)
	s.length("resourceArn", arn, 1, resourceARNLengthMax)
	s.length("expectedRevisionId", expected, 1, revisionIDLengthMax)
}

func checkCreatePolicy(in *CreateTableInput) error { return checkPolicy(in.Policy) }

// checkPolicy refuses a policy that is too long, or whose document is faulty.
func checkPolicy(p PolicyArg) error {
	switch {
	case len(p.Text.V) > policySizeMax:
		return invalid(invalidValues + "Maximum policy size of " + strconv.Itoa(policySizeMax) + " bytes exceeded")
	case p.Err != nil:
		return invalid(invalidValues + "Invalid policy document: " + p.Err.Error())
	default:
		return nil
	}
}
