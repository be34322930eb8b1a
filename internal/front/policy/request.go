package policy

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Request is an authorization request: an action of a principal on a resource, with the facts that
// conditions and variables read. An empty fact is missing. An operation on several resources, such
// as BatchGetItem, is one Request for each of them.
type Request struct {
	Action   string // "dynamodb:GetItem"
	Resource string // the ARN of a table, index or stream; "*" for an action without a resource

	Principal string // aws:PrincipalArn: the ARN of the user or of the role
	Session   string // the ARN of the role's session; empty for a user
	UserName  string // aws:username; empty for a role
	UserID    string // aws:userid

	SourceIP        netip.Addr // aws:SourceIp; an IPv4 address in IPv6 form counts as IPv4
	Time            time.Time  // aws:CurrentTime and aws:EpochTime, in whole seconds
	SecureTransport bool       // aws:SecureTransport, which is never missing

	LeadingKeys            []string // dynamodb:LeadingKeys: the partition keys of the items, as text
	Attributes             []string // dynamodb:Attributes: the names of top-level attributes
	Select                 string   // dynamodb:Select
	ReturnValues           string   // dynamodb:ReturnValues
	ReturnConsumedCapacity string   // dynamodb:ReturnConsumedCapacity
	EnclosingOperation     string   // dynamodb:EnclosingOperation: "TransactWriteItems"
	FullTableScan          Flag     // dynamodb:FullTableScan, of PartiQL statements
}

// caller returns the ARN for messages: the session's if there is one.
func (r *Request) caller() string { return cmp.Or(r.Session, r.Principal) }

// Flag is a Boolean fact that can be missing.
type Flag uint8

// The values of a Flag.
const (
	Missing Flag = iota
	False
	True
)

// Key is a condition key.
type Key uint8

// The condition keys.
const (
	KeyAttributes Key = iota
	KeyEnclosingOperation
	KeyFullTableScan
	KeyLeadingKeys
	KeyReturnConsumedCapacity
	KeyReturnValues
	KeySelect
	KeyCurrentTime
	KeyEpochTime
	KeyPrincipalArn
	KeySecureTransport
	KeySourceIP
	KeyUserID
	KeyUserName
)

// keys are the names and types of the condition keys. Those that are many can have several values
// in a request, and so require a set operator and cannot be variables.
var keys = [...]struct {
	name     string
	families []family // of the operators that compare the key
	many     bool
}{
	KeyAttributes:             {"dynamodb:Attributes", []family{textFamily}, true},
	KeyEnclosingOperation:     {"dynamodb:EnclosingOperation", []family{textFamily}, false},
	KeyFullTableScan:          {"dynamodb:FullTableScan", []family{boolFamily}, false},
	KeyLeadingKeys:            {"dynamodb:LeadingKeys", []family{textFamily}, true},
	KeyReturnConsumedCapacity: {"dynamodb:ReturnConsumedCapacity", []family{textFamily}, false},
	KeyReturnValues:           {"dynamodb:ReturnValues", []family{textFamily}, false},
	KeySelect:                 {"dynamodb:Select", []family{textFamily}, false},
	KeyCurrentTime:            {"aws:CurrentTime", []family{dateFamily}, false},
	KeyEpochTime:              {"aws:EpochTime", []family{dateFamily, numberFamily}, false},
	KeyPrincipalArn:           {"aws:PrincipalArn", []family{arnFamily, textFamily}, false},
	KeySecureTransport:        {"aws:SecureTransport", []family{boolFamily}, false},
	KeySourceIP:               {"aws:SourceIp", []family{addressFamily}, false},
	KeyUserID:                 {"aws:userid", []family{textFamily}, false},
	KeyUserName:               {"aws:username", []family{textFamily}, false},
}

func (k Key) String() string { return keys[k].name }

// keyNamed returns the key with a name, in any case.
func keyNamed(name string) (Key, bool) {
	for k := range keys {
		if strings.EqualFold(keys[k].name, name) {
			return Key(k), true
		}
	}
	return 0, false
}

// keyNames returns the names of all keys, or only of those that can be variables.
func keyNames(variables bool) string {
	var names []string
	for _, k := range keys {
		if !variables || !k.many {
			names = append(names, k.name)
		}
	}
	return strings.Join(names, ", ")
}

// count returns the number of values that a key has in the request. Values that are all empty count
// as none, as in IAM's rule for set operators.
func (r *Request) count(k Key) int {
	present := false
	switch k {
	case KeyAttributes:
		return countTexts(r.Attributes)
	case KeyLeadingKeys:
		return countTexts(r.LeadingKeys)
	case KeyFullTableScan:
		present = r.FullTableScan != Missing
	case KeyCurrentTime, KeyEpochTime:
		present = !r.Time.IsZero()
	case KeySecureTransport:
		present = true
	case KeySourceIP:
		present = r.SourceIP.IsValid()
	default:
		present = r.text(k, 0) != ""
	}
	if present {
		return 1
	}
	return 0
}

func countTexts(texts []string) int {
	for _, t := range texts {
		if t != "" {
			return len(texts)
		}
	}
	return 0
}

// text returns a value of a key as text, for comparisons and variables.
func (r *Request) text(k Key, i int) string {
	switch k {
	case KeyAttributes:
		return r.Attributes[i]
	case KeyLeadingKeys:
		return r.LeadingKeys[i]
	case KeyEnclosingOperation:
		return r.EnclosingOperation
	case KeyReturnConsumedCapacity:
		return r.ReturnConsumedCapacity
	case KeyReturnValues:
		return r.ReturnValues
	case KeySelect:
		return r.Select
	case KeyPrincipalArn:
		return r.Principal
	case KeyUserID:
		return r.UserID
	case KeyUserName:
		return r.UserName
	case KeySourceIP:
		return r.SourceIP.Unmap().String()
	case KeyCurrentTime:
		return r.Time.UTC().Format("2006-01-02T15:04:05Z")
	case KeyEpochTime:
		return strconv.FormatInt(r.Time.Unix(), 10)
	default:
		return strconv.FormatBool(r.truth(k))
	}
}

// truth returns the value of a Boolean key.
func (r *Request) truth(k Key) bool {
	if k == KeySecureTransport {
		return r.SecureTransport
	}
	return r.FullTableScan == True
}
