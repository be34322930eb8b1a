package lambdatest

import (
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// whichVariable names the handler that a test's own program is to be.
const whichVariable = "LAMBDATEST_HANDLER"

// Main makes a test's program its own Lambda functions. TestMain calls it first: in a process that [Self] describes it serves that handler (a function such as
// lambda.Start of aws-lambda-go takes) and does not return; elsewhere it returns at once.
func Main(handlers map[string]any) {
	if handler, chosen := handlers[os.Getenv(whichVariable)]; chosen {
		lambda.Start(handler)
		os.Exit(0)
	}
}

// Self is the function whose process is this program again, serving one of the handlers that it gives to [Main].
func Self(handler string) Function {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return Function{Command: []string{program}, Env: []string{whichVariable + "=" + handler}}
}
