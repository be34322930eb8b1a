// Package journal keeps the images of items that guard removes, so that guard.PutBack can restore
// them. A worker writes an item's image before it deletes the item, and the outcome afterwards.
//
//	ImageFirst    Writer.Write returns nil only when the entry is durable
//	DamageIsLocal a damaged part of a file is reported with its place, and the entries behind it
//	              are read
//	OwnFiles      each writer has its own files, so workers can share a directory or a bucket
//
// # Files
//
// A journal is a directory, or a prefix in an object store. Nothing is ever deleted from it. A
// file's name has the endpoint's time at its first write, the writer's name and id, and a number:
//
//	2030-01-01/120000.250-worker-k3v9x2ab-7.undo1
//
// The writes to a file are from the same hour. In a directory, a writer appends to its file until
// the hour ends or the file has 64 MB. In an object store, each group of entries is a file.
//
// # Entries
//
// An entry is a line: the CRC-32C of its JSON in eight hexadecimal digits, a space, the JSON, and a
// line feed. JSON has no line feed inside, so a reader finds the next entry behind any damage.
//
//	d1f2a3b4 {"kind":"image","id":"k3v9x2ab-1","at":"…","table":"arn:…","key":{…},…,"item":{…}}
//
// An entry is an image, or an outcome with the same id. Some images have no outcome: the worker
// died, or the endpoint did not answer. Then the item was removed, or another attempt has an image
// of its own.
//
// A last line without a line feed is a write that a crash has cut off. No item was removed for it.
//
// The digit at the end of a name is the version of the format.
package journal
