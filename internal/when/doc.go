// Package when parses the durations and instants of flags, files and endpoints, so that all of them
// have one syntax.
package when
