// Package rpc reads and writes the messages of an AWS API that is served in several protocols at
// once, as CloudWatch's is: AWS JSON 1.0, Smithy RPC v2 CBOR, and the query protocol, whose
// requests are forms and whose answers are XML.
//
// A message is a Go structure whose fields have the names of the API's members. Optional members
// are pointers, and a nil pointer or slice is absent. Instants are [Time].
//
// Each protocol's reader turns the bytes into a tree of maps, lists and scalars, with bounds on
// depth and size; one function puts a tree into a structure. Each writer is a sink for one walk
// over a structure.
package rpc
