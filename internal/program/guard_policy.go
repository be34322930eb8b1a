package program

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly/guard"
	"github.com/mayflydb/mayfly/guard/journal"
)

type guardPolicyCommand struct {
	Table    []string `help:"Table that is guarded. Repeatable." required:"" placeholder:"NAME"`
	Strategy string   `help:"Strategy of mayfly guard run: stream, index, schedule or scan. --for init, undo, proxy and scheduler-role need none." enum:",stream,index,schedule,scan" default:""`
	For      string   `help:"Command that gets the policy: run, init, status, undo or proxy; scheduler-role is the role that the schedules assume." enum:"run,init,status,undo,proxy,scheduler-role" default:"run"`
	Region   string   `help:"Region in the ARNs. Default: any." placeholder:"REGION"`
	Account  string   `help:"Account in the ARNs, 12 digits. Default: any." placeholder:"ID"`

	Attribute string  `help:"TTL attribute, if the command names it. Default: the command asks for the table's own." placeholder:"NAME"`
	Index     string  `help:"Index of the index strategy. Default: any of the table." placeholder:"NAME"`
	Deadlines string  `help:"Directory given to mayfly guard run --deadlines." placeholder:"DIR"`
	Mark      string  `help:"Attribute given to mayfly guard run --mark." placeholder:"NAME"`
	Archive   string  `help:"Target given to mayfly guard run --archive. The target's own permissions are not in the policy." placeholder:"ARN"`
	AuditRCU  float64 `name:"audit-rcu" help:"Read units given to mayfly guard run --audit-rcu; 0: there is no audit." default:"5" placeholder:"N"`
	Undo      string  `help:"Directory or s3://bucket/prefix given to mayfly guard run --undo. A bucket's own permissions are not in the policy." placeholder:"DIR"`
	leasesFlag
	deadlinesTableFlag
	ownTableFlags
	DryRun         bool   `help:"The command is a dry run."`
	SchedulerRole  string `help:"ARN of the role that the schedules assume." placeholder:"ARN"`
	SchedulerQueue string `help:"ARN of the SQS queue for deletions that the schedules failed to make." placeholder:"ARN"`
}

func (guardPolicyCommand) Help() string {
	return `Examples:

    mayfly guard policy --table orders --strategy stream
    mayfly guard policy --table orders --strategy index --index by-deadline --region eu-west-1 --account 123456789012
    mayfly guard policy --table orders --strategy schedule --scheduler-role arn:aws:iam::123456789012:role/expiry
    mayfly guard policy --table orders --for status --strategy stream >policy.json

It prints the smallest IAM policy for a mayfly guard command, as JSON. It calls nothing. Give it the flags of that command:
they decide which permissions are needed.`
}

// Run prints the policy.
func (c guardPolicyCommand) Run(_ context.Context, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	tables, err := c.tables(c.LeasesTable, c.DeadlinesTable)
	if err != nil {
		return err
	}
	return writeIndentedJSON(s.out, c.policy(tables))
}

var regionID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]+(-[a-z]+)+-[0-9]+$`) })

func isAccount(id string) bool { return len(id) == 12 && strings.Trim(id, "0123456789") == "" }

// check returns an error for flags that make no policy.
func (c guardPolicyCommand) check() error {
	use := guard.Use(c.For)
	strategy := guard.Strategy(c.Strategy)
	switch {
	case strategy == guard.Auto && (use == guard.UseRun || use == guard.UseStatus):
		return misused(errors.New("missing flag: --strategy=STRING"), "set it to the strategy that guard prints when it begins: stream, index, schedule or scan")
	case c.Account != "" && !isAccount(c.Account):
		return misused(fmt.Errorf("--account %s is not 12 digits", c.Account), "aws sts get-caller-identity --query Account --output text")
	case c.Region != "" && !regionID().MatchString(c.Region):
		return misused(fmt.Errorf("--region %s is not the name of a region", c.Region), "for example --region eu-west-1")
	case c.Deadlines != "" && strategy != guard.Stream:
		return misused(errors.New("--deadlines works only with the stream strategy"), "drop --deadlines, or use --strategy stream")
	case (c.Mark != "" || c.Archive != "" || c.Undo != "") && strategy == guard.Schedule:
		return misused(errors.New("--mark, --archive and --undo do not work with the schedule strategy: the Scheduler deletes the items"), "drop them, or use --strategy stream, index or scan")
	case use == guard.UseRun && strategy == guard.Schedule && c.SchedulerRole == "":
		return misused(errors.New("the schedule strategy needs --scheduler-role: the policy allows to pass that role, and no other"), "create the role with: mayfly guard policy --for scheduler-role --table %s", c.Table[0])
	case c.SchedulerRole != "" && !strings.HasPrefix(c.SchedulerRole, "arn:"):
		return misused(fmt.Errorf("--scheduler-role %s is not an ARN", c.SchedulerRole), "for example --scheduler-role arn:aws:iam::123456789012:role/expiry")
	case c.SchedulerQueue != "" && !strings.HasPrefix(c.SchedulerQueue, "arn:"):
		return misused(fmt.Errorf("--scheduler-queue %s is not an ARN", c.SchedulerQueue), "for example --scheduler-queue arn:aws:sqs:eu-west-1:123456789012:expiry")
	}
	return nil
}

// iamPolicy is an IAM policy, of any service.
type iamPolicy struct {
	Version   string
	Statement []iamStatement
}

// iamStatement allows actions on resources.
type iamStatement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string]string `json:",omitempty"`
}

// sids are the names of statements. IAM allows letters and digits only.
var sids = map[guard.Resource]string{
	guard.OnTable: "Table", guard.OnIndex: "Index", guard.OnStream: "Stream", guard.OnLeases: "Leases", guard.OnDeadlines: "Deadlines",
	guard.OnSchedules: "Schedules", guard.OnScheduleGroup: "ScheduleGroup", guard.OnRole: "SchedulerRole", guard.OnAnything: "Endpoint", guard.OnKey: "Key",
}

// policy returns a policy with a statement for each kind of resource.
func (c guardPolicyCommand) policy(tables guard.Tables) iamPolicy {
	p := iamPolicy{Version: "2012-10-17"}
	for _, one := range guard.Permissions(guard.Use(c.For), c.options(tables)) {
		i := slices.IndexFunc(p.Statement, func(s iamStatement) bool { return s.Sid == sids[one.On] })
		if i < 0 {
			i = len(p.Statement)
			p.Statement = append(p.Statement, iamStatement{Sid: sids[one.On], Effect: "Allow", Resource: c.arns(one.On)})
			switch one.On {
			case guard.OnRole:
				p.Statement[i].Condition = map[string]map[string]string{"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}}
			case guard.OnKey:
				p.Statement[i].Condition = map[string]map[string]string{"StringLike": {"kms:ViaService": "dynamodb.*.amazonaws.com*"}}
				if strings.HasPrefix(c.OwnTableKMSKey, "alias/") { // an ARN of a policy cannot contain it
					p.Statement[i].Condition["ForAnyValue:StringEquals"] = map[string]string{"kms:ResourceAliases": c.OwnTableKMSKey}
				}
			}
		}
		p.Statement[i].Action = append(p.Statement[i].Action, one.Action)
	}
	if guard.Use(c.For) == guard.UseFirings && c.SchedulerQueue != "" {
		p.Statement = append(p.Statement, iamStatement{Sid: "DeadLetters", Effect: "Allow", Action: []string{"sqs:SendMessage"}, Resource: []string{c.SchedulerQueue}})
	}
	return p
}

// options returns the options of the command that gets the policy, as far as they matter.
func (c guardPolicyCommand) options(tables guard.Tables) guard.Options {
	o := guard.Options{Strategy: guard.Strategy(c.Strategy), Attribute: c.Attribute, IndexName: c.Index, Mark: c.Mark, DryRun: c.DryRun, Role: c.SchedulerRole, Tables: tables}
	if c.Deadlines != "" {
		o.Deadlines = new(dynamodb.Client)
	}
	if c.AuditRCU == 0 {
		o.AuditRCU = -1
	}
	if c.Archive != "" {
		o.Archive = addressed{arn: c.Archive}
	}
	if c.Undo != "" {
		o.Undo = new(journal.Journal)
	}
	return o
}

// arns returns the ARNs of a kind of resource, for all tables.
func (c guardPolicyCommand) arns(on guard.Resource) (all []string) {
	switch on {
	case guard.OnAnything:
		return []string{"*"}
	case guard.OnRole:
		return []string{c.SchedulerRole}
	case guard.OnKey:
		switch {
		case strings.HasPrefix(c.OwnTableKMSKey, "arn:"):
			return []string{c.OwnTableKMSKey}
		case strings.HasPrefix(c.OwnTableKMSKey, "alias/"):
			return []string{c.arn("kms", "key/*")}
		}
		return []string{c.arn("kms", "key/"+c.OwnTableKMSKey)}
	case guard.OnLeases:
		return []string{c.arn("dynamodb", "table/"+c.LeasesTable)}
	case guard.OnDeadlines:
		return []string{c.arn("dynamodb", "table/"+c.DeadlinesTable)}
	}
	for _, name := range c.Table {
		switch on {
		case guard.OnTable:
			all = append(all, c.arn("dynamodb", "table/"+name))
		case guard.OnIndex:
			index := c.Index
			if index == "" {
				index = "*"
			}
			all = append(all, c.arn("dynamodb", "table/"+name+"/index/"+index))
		case guard.OnStream:
			all = append(all, c.arn("dynamodb", "table/"+name+"/stream/*"))
		case guard.OnSchedules:
			all = append(all, c.arn("scheduler", "schedule/"+guard.ScheduleGroup(name)+"/*"))
		case guard.OnScheduleGroup:
			all = append(all, c.arn("scheduler", "schedule-group/"+guard.ScheduleGroup(name)))
		}
	}
	return all
}

// arn returns an ARN in the region and account of the flags.
func (c guardPolicyCommand) arn(service, resource string) string {
	region, account, partition := c.Region, c.Account, "aws"
	switch {
	case strings.HasPrefix(region, "cn-"):
		partition = "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		partition = "aws-us-gov"
	}
	if region == "" {
		region = "*"
	}
	if account == "" {
		account = "*"
	}
	return strings.Join([]string{"arn", partition, service, region, account, resource}, ":")
}
