package keyfile

import (
	"fmt"
	"strings"

	"github.com/mayflydb/mayfly/internal/front/policy"
)

// FullAccess is the name for no restriction. It is no policy: nothing can restrict such a key.
const FullAccess = "full-access"

// Ready returns the text of a ready policy: read-only, backup, table:NAME for everything on a table,
// or guard:NAME for a worker of mayfly guard, which guard returns.
func Ready(name string, guard func(table string) string) (string, error) {
	switch name {
	case FullAccess:
		return "", fmt.Errorf("%s is no policy: a key with it may do everything", FullAccess)
	case "read-only":
		return policy.ReadOnly(), nil
	case "backup":
		return policy.Backup(), nil
	}
	kind, table, _ := strings.Cut(name, ":")
	switch {
	case kind != "table" && kind != "guard":
		return "", fmt.Errorf("unknown policy %q; %s; a policy of your own is the path of a file that ends in .json", name,
			suggest(name, []string{"full-access", "read-only", "backup", "table:NAME", "guard:NAME"}))
	case !isTable(table):
		return "", fmt.Errorf("%q does not name a table, such as %s:orders: 3 to 255 letters, digits, \"_\", \"-\" and \".\"", name, kind)
	case kind == "guard":
		return guard(table), nil
	}
	return policy.Table("arn:aws:dynamodb:*:*:table/" + table), nil
}

// isPolicyPath reports whether a policy is a path. Names of ready policies may end in .json too,
// because names of tables may.
func isPolicyPath(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, "table:") && !strings.HasPrefix(name, "guard:")
}
