// Package backup keeps copies of a database in a directory or a bucket. It knows files, and neither
// keys nor tables.
//
// A backup stream has the files of a database at one instant. It is a tar archive: first an entry
// "BACKUP" with a List in JSON, then each file that the receiver does not have. So
//
//	curl -X POST http://127.0.0.1:8000/_mayfly/backup | tar -x -C DIR
//
// makes a directory that mayfly serve opens.
//
// A repository has two folders:
//
//	files/<name>-<size>-<CRC-32C>      content of a file; backups share those that have not changed
//	snapshots/<time>-<CRC-32C>.json    a List, written last: without it a backup does not exist
//	lock/<time>-<random>.json          the writer at work
//
// Everything is written whole or not at all, read again afterwards, and never changed. A time is in
// UTC, as 20060102T150405.000Z. The last 8 digits of the name of a List are its checksum, in
// hexadecimal.
package backup
