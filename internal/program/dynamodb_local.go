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
	if args[0] == "serve" && !java && !slices.ContainsFunc(words, selectsLocalData) {
		word := words[slices.IndexFunc(words, isLocalFlag)]
		return nil, misused(fmt.Errorf("unknown flag %s", word), "did you mean -%s? With DynamoDB Local's flags, add -sharedDb or -inMemory", strings.ToLower(word))
	}
	var own []string // flags of mayfly serve, and their values
	given := map[string]string{}
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		name, inline, hasValue := strings.Cut(word, "=")
		value, known := localFlags[name]
		switch {
		case !known && !strings.HasPrefix(word, "--") && strings.HasPrefix(word, "-"):
			return nil, unknownLocalFlag(word)
		case !known:
			own = append(own, word)
			continue
		case value == "":
			given[name] = "yes"
			continue
		case hasValue:
			given[name] = inline
			continue
		case len(words) == 0 || strings.HasPrefix(words[0], "-"):
			return nil, misused(fmt.Errorf("%s needs a value", word), "%s %s", word, value)
		}
		given[name], words = words[0], words[1:]
	}
	if given["-help"] != "" {
		return nil, errLocalHelp
	}
	return localArguments(given, own)
}

// selectsLocalData reports whether a flag of DynamoDB Local says where its data is.
func selectsLocalData(word string) bool {
	return word == "-sharedDb" || word == "-inMemory" || word == "-dbPath" || word == "-help"
}

// localArguments returns the command line of mayfly serve for the flags of DynamoDB Local that are
// given, followed by the user's own flags of mayfly serve, which therefore count.
func localArguments(given map[string]string, own []string) ([]string, error) {
	shared, inMemory, dir := given["-sharedDb"] != "", given["-inMemory"] != "", given["-dbPath"]
	chosen := slices.ContainsFunc(own, func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return name == "--data" || name == "--memory"
	})
	out := []string{"serve", "--like-local"}
	switch {
	case inMemory && dir != "":
		return nil, misused(errors.New("-inMemory and -dbPath cannot be used together"), "leave one of them out")
	case chosen && (inMemory || dir != ""):
		return nil, misused(errors.New("--data and --memory cannot be used together with -inMemory and -dbPath"), "leave one of them out")
	case chosen:
	case inMemory:
		out = append(out, "--memory", "--data=") // not the environment's
	case shared:
		out = append(out, "--data="+filepath.Join(dir, localSharedName))
	default:
		out = append(out, "--data="+filepath.Clean(dir))
	}
	if !shared {
		out = append(out, "--separate")
	}
	if given["-delayTransientStatuses"] != "" {
		out = append(out, "--transient-states=500ms")
	}
	for _, flag := range []string{"-port", "-cors"} {
		if given[flag] != "" {
			out = append(out, "-"+flag+"="+given[flag])
		}
	}
	return append(out, own...), nil
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
	name, _, _ := strings.Cut(word, "=")
	_, known := localFlags[name]
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
