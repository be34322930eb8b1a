// Command mayfly is a DynamoDB-compatible database with exact expiry, in one program.
//
//	mayfly serve     the server
//	mayfly demo      watch real data expire
//	mayfly bench     measure this server, or any DynamoDB endpoint
//	mayfly version   what this program was built from
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
