package aws

import (
	"errors"
	"strings"

	"github.com/mayflydb/mayfly/target"
)

// arn is a target's ARN, taken apart.
type arn struct {
	text                     string
	service, region, account string
	resource                 string // all that follows the account
	// of arn:aws:scheduler:::aws-sdk:<service>:<action>: our name of the service, and the action
	universalOf, universalCall string
}

var errNotARN = errors.New("not an ARN")

// universalMark begins the resource of a universal target's ARN.
const universalMark = "aws-sdk:"

// parseARN takes "arn:<partition>:<service>:<region>:<account>:<resource>" apart.
func parseARN(text string) (arn, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[1] != "aws" && !strings.HasPrefix(parts[1], "aws-") || parts[2] == "" || parts[5] == "" {
		return arn{}, errNotARN
	}
	a := arn{text: text, service: parts[2], region: parts[3], account: parts[4], resource: parts[5]}
	if a.region != "" && !regionLike(a.region) {
		return arn{}, errNotARN
	}
	rest, universal := strings.CutPrefix(a.resource, universalMark)
	if a.service == "scheduler" && universal {
		service, call, two := strings.Cut(rest, ":")
		if !two {
			return arn{}, errNotARN
		}
		a.universalOf, a.universalCall = canonical(service), call
	}
	return a, nil
}

// name returns the resource without its kind: "resize" of "function:resize", "clicks" of
// "stream/clicks".
func (a arn) name(kind string) (string, error) {
	name, ok := strings.CutPrefix(a.resource, kind)
	if !ok || name == "" {
		return "", target.Permanent(codeInvalid, "The ARN "+a.text+" does not name what is expected there: "+kind+"<name>")
	}
	return name, nil
}

// elsewhere lists the services of templated targets that this package lacks, with their
// substitutes.
var elsewhere = map[string]string{
	"ecs":          "starting tasks needs a cluster; map the ARN to a webhook, a command or a function that starts them",
	"codebuild":    "map the ARN to a webhook or a command that starts the build",
	"codepipeline": "map the ARN to a webhook or a command that starts the pipeline",
	"sagemaker":    "map the ARN to a webhook or a command that starts the pipeline",
	"inspector":    "map the ARN to a webhook or a command",
	"batch":        "map the ARN to a webhook or a command that submits the job",
	"dynamodb":     "the scheduler itself calls DynamoDB, through arn:aws:scheduler:::aws-sdk:dynamodb:<action>",
}

// unsupported is the answer to an ARN that this package has no call for.
func unsupported(a arn) error {
	advice, known := elsewhere[a.service]
	if a.universalOf != "" {
		advice, known = elsewhere[a.universalOf]
	}
	if !known {
		advice = "map the ARN to a webhook, a broker, a command or a function"
	}
	if a.universalOf == "" {
		return target.Permanent(codeUnsupported, "AWS targets do not deliver to "+a.service+" ("+a.text+"): "+advice)
	}
	calls := callsOf(a.universalOf)
	if calls == "" {
		return target.Permanent(codeUnsupported, "AWS targets make no calls of "+a.universalOf+" ("+a.text+"): "+advice)
	}
	return target.Permanent(codeUnsupported, "AWS targets do not call "+a.universalCall+" of "+a.universalOf+"; they call "+calls)
}
