package mayfly_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/mayflydb/mayfly"
)

// A database in use is backed up, and restored into another directory.
func ExampleDB_Backup() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	db, err := mayfly.Open("", mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	createSessions(ctx, db)

	place, restored := filepath.Join(root, "backups"), filepath.Join(root, "restored")
	id, err := db.Backup(ctx, place, 24) // keep 24 backups
	if err != nil {
		log.Fatal(err)
	}
	if err := mayfly.Restore(ctx, place, id, restored); err != nil {
		log.Fatal(err)
	}
	again, err := mayfly.Open(restored, mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	out, err := again.DynamoDB().DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String("sessions")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*out.Table.TableName, out.Table.TableStatus)
	// Output: sessions ACTIVE
}

// A backup is a tar archive: of a database in use, or of a directory that none uses.
func ExampleDB_WriteBackup() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	db, err := mayfly.Open(root, mayfly.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var inUse, stopped bytes.Buffer
	if err := db.WriteBackup(ctx, &inUse, nil); err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
	if err := mayfly.WriteBackup(ctx, root, &stopped, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println(inUse.Len() > 0, stopped.Len() > 0)
	// Output: true true
}
