package lambdatest

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// handlerVariable names the handler that a process of the test's own program serves.
const handlerVariable = "LAMBDATEST_HANDLER"

// Main turns a test's program into its own Lambda functions. TestMain calls it first. In a process
// of [Self] it serves the handler (a function that lambda.Start of aws-lambda-go accepts) and does
// not return; in other processes it returns at once.
func Main(handlers map[string]any) {
	if handler, chosen := handlers[os.Getenv(handlerVariable)]; chosen {
		lambda.Start(handler)
		os.Exit(0)
	}
}

// Self returns a function whose process is this program again, serving one of the handlers passed
// to [Main].
func Self(handler string) Function {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return Function{Command: []string{program}, Env: []string{handlerVariable + "=" + handler}}
}
