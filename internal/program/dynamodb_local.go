package program

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mayflydb/mayfly/internal/option"
)

// localFlags are the flags of DynamoDB Local, with the word for the value of those that take one.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/DynamoDBLocal.UsageNotes.html
var localFlags = map[string]string{
	"-sharedDb": "", "-inMemory": "", "-port": "N", "-dbPath": "DIR", "-cors": "ORIGINS", "-delayTransientStatuses": "",
	"-optimizeDbBeforeStartup": "", "-disableTelemetry": "", "-help": "",
}

// localHelp is the answer to DynamoDB Local's -help.
const localHelp = `Usage: mayfly [-jar DynamoDBLocal.jar] [flags of DynamoDB Local] [flags of mayfly serve]

It serves the DynamoDB API as "mayfly serve" does. GET / answers as DynamoDB Local does.

  -sharedDb                   All clients share the data. Otherwise each access key and region has its own.
  -inMemory                   Keep everything in memory.
  -dbPath DIR                 Keep the data in DIR/shared-local-instance, or in DIR/KEY_REGION without -sharedDb.
                              Default: the working directory. Files of DynamoDB Local are left alone.
  -port N                     Port to listen on. Default: 8000.
  -cors ORIGINS               Origins whose web pages may call the server, separated by commas, or *. Default: none.
  -delayTransientStatuses     Show CREATING, UPDATING and DELETING for half a second after a change of a table.
  -optimizeDbBeforeStartup, -disableTelemetry
                              Accepted without effect: there is nothing to optimize and no telemetry.
  -help                       Show this help.

"mayfly serve --help" shows the other flags. docs/run-the-server.md#in-place-of-dynamodb-local has the differences.
`

// localSharedName is the name that DynamoDB Local gives to the file of shared data.
const localSharedName = "shared-local-instance"

// errLocalHelp asks for localHelp.
var errLocalHelp = errors.New("help")

// fromDynamoDBLocal returns the command line of mayfly serve for one of DynamoDB Local, with or
// without "serve" and the Java machine's own arguments in front. It returns any other unchanged.
func fromDynamoDBLocal(args []string) ([]string, error) {
	words := args
	if len(words) > 0 && words[0] == "serve" {
		words = words[1:]
	}
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") { // another command
		return args, nil
	}
	words, java := withoutJava(words)
	if !java && !slices.ContainsFunc(words, isLocalFlag) {
		return args, nil
	}
	out := []string{"serve", "--like-local"}
	given := map[string]string{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		value, known := localFlags[word]
		switch {
		case !known && !strings.HasPrefix(word, "--") && strings.HasPrefix(word, "-"):
			return nil, unknownLocalFlag(word)
		case !known: // a flag of mayfly serve, or its value
			out = append(out, word)
			continue
		case value == "":
			given[word] = "yes"
			continue
		case len(words) == 0 || strings.HasPrefix(words[0], "-"):
			return nil, misused(fmt.Errorf("%s needs a value", word), "%s %s", word, value)
		}
		given[word], words = words[0], words[1:]
	}
	if given["-help"] != "" {
		return nil, errLocalHelp
	}
	return localArguments(out, given)
}

// localArguments adds the flags of mayfly serve that correspond to DynamoDB Local's.
func localArguments(out []string, given map[string]string) ([]string, error) {
	shared, inMemory, dir := given["-sharedDb"] != "", given["-inMemory"] != "", given["-dbPath"]
	switch {
	case inMemory && dir != "":
		return nil, misused(errors.New("-inMemory and -dbPath cannot be used together"), "leave one of them out")
	case inMemory:
		out = append(out, "--memory")
	case shared:
		out = append(out, "--data", filepath.Join(dir, localSharedName))
	default:
		out = append(out, "--data", filepath.Clean(dir))
	}
	if !shared {
		out = append(out, "--separate")
	}
	if given["-delayTransientStatuses"] != "" {
		out = append(out, "--transient-states", "500ms")
	}
	for flag, ours := range map[string]string{"-port": "--port", "-cors": "--cors"} {
		if given[flag] != "" {
			out = append(out, ours+"="+given[flag])
		}
	}
	return out, nil
}

// withoutJava returns the arguments behind the Java machine's own, and whether there were any:
// -Djava.library.path=…, -Xmx1g, -jar DynamoDBLocal.jar.
func withoutJava(words []string) (rest []string, found bool) {
	for len(words) > 0 {
		switch word := words[0]; {
		case strings.HasPrefix(word, "-D") || strings.HasPrefix(word, "-X"):
			words = words[1:]
		case word == "-jar" && len(words) > 1:
			words = words[2:]
		default:
			return words, found
		}
		found = true
	}
	return words, found
}

func isLocalFlag(word string) bool {
	_, known := localFlags[word]
	return known
}

func unknownLocalFlag(word string) error {
	var names []string
	for name := range localFlags {
		names = append(names, name)
	}
	next := "mayfly -help"
	if near := option.Nearest(word, names); len(near) > 0 {
		next = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return misused(fmt.Errorf("unknown flag %s", word), "%s", next)
}
